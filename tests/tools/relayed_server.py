"""A scripted MCP server on standard input and output, for tests of `handover relay`.

usage: relayed_server.py WITNESS

Appends every line that it reads to the file WITNESS, and what its tools do to WITNESS.acts. Tools:
  act {"note"}        does something at once
  work {}             works until it is cancelled, and then says so: well-behaved
  stubborn {"s"}      works for so many seconds, adding a line every 20 ms, and does not care for cancellation;
                      or until there is the file that "until" names
  silent {}           works until it is cancelled, and never answers
  fork {}             leaves a child in a session of its own, deaf to TERM, that adds a line every 20 ms
  complain {"text"}   writes a line to standard error
  garble {}           writes something that is no MCP
  pad {"size"}        answers with a record of so many bytes, most of them spaces
  leave {"status"}    ends the server
  list_things {}      read-only;  take_screenshot {}  read-only, and shows the screen
"""

import json
import os
import signal
import sys
import threading
import time

witness = open(sys.argv[1], "a", buffering=1)
acts = open(sys.argv[1] + ".acts", "a", buffering=1)
out = threading.Lock()
cancelled = {}


def say(**message):
    with out:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def done(number, text):
    acts.write(f"{text}\n")
    say(id=number, result={"content": [{"type": "text", "text": text}]})


def tick(what, seconds, until=None):
    end = time.monotonic() + seconds
    while time.monotonic() < end and not (until and os.path.exists(until)):
        acts.write(f"{what} {time.time()}\n")
        time.sleep(0.02)


def child():
    if os.fork():
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.environ.clear()
    tick("child", 600)
    os._exit(0)


def call(number, tool, arguments):
    if tool == "act":
        done(number, f"acted {arguments.get('note', '')}")
    elif tool in ("work", "silent"):
        acts.write(f"{tool} begins\n")
        cancelled[json.dumps(number)].wait()
        acts.write(f"{tool} ends\n")
        if tool == "work":
            say(id=number, error={"code": 0, "message": "cancelled"})
    elif tool == "stubborn":
        tick("stubborn", arguments["s"], arguments.get("until"))
        done(number, "stubborn ends")
    elif tool == "complain":
        sys.stderr.write(arguments["text"] + "\n")
        sys.stderr.flush()
        done(number, "complained")
    elif tool == "garble":
        with out:
            sys.stdout.write("Traceback (most recent call last):\n")
            sys.stdout.flush()
    elif tool == "pad":
        answer = json.dumps({"jsonrpc": "2.0", "id": number, "result": {}})
        with out:
            sys.stdout.write(answer.ljust(arguments["size"]) + "\n")
            sys.stdout.flush()
    elif tool == "leave":
        os._exit(arguments["status"])
    elif tool == "echo":
        say(id=number, result=arguments)
    else:
        done(number, f"{tool} is done")


def tools():
    def tool(name, read_only=False):
        return {
            "name": name,
            "inputSchema": {"type": "object"},
            "annotations": {"readOnlyHint": read_only},
        }

    acting = ["act", "work", "stubborn", "silent", "fork", "complain", "garble", "pad", "leave", "echo"]
    looking = ["list_things", "take_screenshot"]
    return [tool(name) for name in acting] + [tool(name, True) for name in looking]


def handle(message):
    method, number = message.get("method"), message.get("id")
    if method == "initialize":
        say(id=number, result={
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "relayed", "version": "1"},
        })
    elif method == "tools/list":
        say(id=number, result={"tools": tools()})
    elif method == "ping":
        say(id=number, result={})
    elif method == "tools/call":
        cancelled[json.dumps(number)] = threading.Event()
        params = message["params"]
        arguments = params.get("arguments") or {}
        if params["name"] == "fork":
            child()
            return done(number, "forked")
        threading.Thread(target=call, args=(number, params["name"], arguments), daemon=True).start()
    elif method == "notifications/cancelled":
        event = cancelled.get(json.dumps(message["params"]["requestId"]))
        if event:
            event.set()
    elif method and number is not None:
        say(id=number, error={"code": -32601, "message": "no such method"})


for line in sys.stdin:
    witness.write(line)
    read = json.loads(line)
    for message in read if isinstance(read, list) else [read]:
        handle(message)
