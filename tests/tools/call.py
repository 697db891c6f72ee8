#!/usr/bin/env python3
"""Makes calls on the attach socket and writes down what came of them.

    call.py SOCKET RESULTS CALLS

CALLS is a JSON list of `[method, params]`; `$token` in them is replaced by the token of the last `hello`,
`$spawned` by the name of the last agent. SOCKET is a path, or `@PATH` of a socket over which a connection is handed to us. RESULTS
appears at once when all is done: a list with the code of each refusal, or the result.
"""

import array
import json
import os
import socket
import sys


def connect(where):
    stream = socket.socket(socket.AF_UNIX)
    stream.connect(where.removeprefix("@"))
    if not where.startswith("@"):
        return stream
    handed = array.array("i")
    _, ancillary, _, _ = stream.recvmsg(1, socket.CMSG_LEN(handed.itemsize))
    handed.frombytes(ancillary[0][2])
    return socket.socket(fileno=handed[0])


def main():
    where, results, calls = sys.argv[1:]
    # Before the connection: what is open in us is ours alone.
    stream = connect(where)
    lines = stream.makefile("r")
    token, spawned, outcomes = "", "", []
    for number, (method, params) in enumerate(json.loads(calls), 1000):
        text = json.dumps(params).replace("$token", token).replace("$spawned", spawned)
        params = json.loads(text)
        line = json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        stream.sendall(line.encode() + b"\n")
        answer = json.loads(lines.readline())
        while answer.get("id") != number:
            answer = json.loads(lines.readline())
        if method == "hello" and "result" in answer:
            token = answer["result"]["callerToken"]
        if method == "spawn" and "result" in answer:
            spawned = answer["result"]["id"]
        outcomes.append(answer["error"]["data"]["code"] if "error" in answer else answer["result"])
    with open(results + ".new", "w") as file:
        json.dump(outcomes, file)
    os.rename(results + ".new", results)


main()
