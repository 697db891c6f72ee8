#!/usr/bin/env python3
"""Speaks pi's RPC mode without any model: what it is told, it does.

A message is its own script. Whatever stands behind `run: ` is run by a shell, and its output is the
answer; what stands behind `may: ` is asked as an extension asks, and the decision is the answer; `hold` leaves the turn open until a message says `finish`; anything else is answered with
`heard`. Every message is added to the file that PI_HEARD names, one JSON text a line.
"""

import json
import os
import subprocess
import sys


def say(**message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def respond(command, **data):
    say(id=command.get("id"), type="response", command=command["type"], success=True, data=data)


def message(role, text, **more):
    whole = {"role": role, "content": [{"type": "text", "text": text}], **more}
    say(type="message_start", message={**whole, "content": []} if role == "assistant" else whole)
    say(type="message_end", message=whole)
    return whole


class Pi:
    def __init__(self):
        self.working = False
        self.holding = False
        self.answers = 0
        # What came while it asked.
        self.later = []

    def prompt(self, command):
        text = command["message"]
        with open(os.environ["PI_HEARD"], "a") as heard:
            heard.write(json.dumps(text) + "\n")
        respond(command, disposition="queued" if self.working else "started")
        if not self.working:
            self.working = True
            say(type="agent_start")
        message("user", text)
        if "run: " in text:
            script = text.split("run: ", 1)[1]
            ran = subprocess.run(script, shell=True, stdin=subprocess.DEVNULL, capture_output=True, text=True)
            answer = f"{ran.returncode} {ran.stdout}{ran.stderr}"
        elif "may: " in text:
            answer = self.ask(text.split("may: ", 1)[1])
        else:
            answer = "heard"
        self.holding = (self.holding or "hold" in text) and "finish" not in text
        self.answers += 1
        last = message("assistant", answer, stopReason="stop", responseId=str(self.answers))
        if not self.holding:
            self.settle(last)

    def ask(self, what):
        say(type="extension_ui_request", id="q1", method="confirm", title="Allow?", message=what)
        while line := sys.stdin.readline():
            command = json.loads(line)
            if command["type"] == "extension_ui_response":
                return "allowed" if command.get("confirmed") else "refused"
            self.later.append(command)

    def settle(self, *messages):
        self.working = False
        self.holding = False
        say(type="agent_end", messages=list(messages))
        say(type="agent_settled")

    def next(self):
        if self.later:
            return self.later.pop(0)
        line = sys.stdin.readline()
        return json.loads(line) if line else None

    def serve(self):
        while command := self.next():
            kind = command["type"]
            if kind == "prompt":
                self.prompt(command)
            elif kind == "abort":
                if self.working:
                    self.settle()
                respond(command)
            elif kind == "clear_queue":
                respond(command, steering=[], followUp=[])
            elif kind == "get_state":
                respond(command, isStreaming=self.working, pendingMessageCount=0)
            else:
                respond(command)


Pi().serve()
