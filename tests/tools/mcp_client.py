"""Drives the official Python MCP client, one JSON command a line, for the tests in Rust.

usage: mcp_client.py legacy|auto PROGRAM ARGUMENT...

`legacy` greets the server with `initialize`; `auto` uses the newest protocol that both know.

Commands on standard input:
  {"id": 1, "do": "list"}                                      the tools
  {"id": 2, "do": "call", "tool": "...", "arguments": {...}}   a call, beside others
  {"id": 2, "do": "cancel"}                                    gives up call 2
  {"do": "answer", "text": "..."}                              what the person will say when asked
On standard output: {"id", "result"}, {"id", "error"}, {"id", "cancelled"}, {"id", "progress",
"message"}, {"asked"} for each question put to the person, {"unasked"} when one is withdrawn.
Ends with its input.
"""

import asyncio
import json
import os
import sys

from mcp import Client, StdioServerParameters
from mcp_types import ElicitResult


def say(**what):
    print(json.dumps(what), flush=True)


class Person:
    """Whoever sits at the client: answers a question when told what to say."""

    def __init__(self):
        self.words = asyncio.Queue()

    async def ask(self, _context, params):
        say(asked=params.message)
        try:
            text = await self.words.get()
        except asyncio.CancelledError:
            say(unasked=params.message)
            raise
        return ElicitResult(action="accept", content={"answer": text})


async def call(client, command):
    number = command["id"]

    async def progress(done, _total, message):
        say(id=number, progress=done, message=message)

    try:
        result = await client.call_tool(
            command["tool"], command.get("arguments", {}), progress_callback=progress
        )
        say(id=number, result=result.model_dump(mode="json", by_alias=True, exclude_none=True))
    except asyncio.CancelledError:
        say(id=number, cancelled=True)
        raise
    except Exception as error:  # The test decides whether an error is right.
        say(id=number, error=str(error))


async def commands():
    reader = asyncio.StreamReader(limit=1 << 24)
    protocol = asyncio.StreamReaderProtocol(reader)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
    while line := await reader.readline():
        yield json.loads(line)


async def main(mode, program, *arguments):
    person = Person()
    server = StdioServerParameters(command=program, args=list(arguments), env=dict(os.environ))
    calls = {}
    async with Client(server, mode=mode, elicitation_callback=person.ask) as client:
        say(protocol=client.protocol_version, server=client.server_info.name)
        async for command in commands():
            match command["do"]:
                case "list":
                    tools = (await client.list_tools()).tools
                    say(id=command["id"], result=[
                        tool.model_dump(mode="json", by_alias=True, exclude_none=True)
                        for tool in tools
                    ])
                case "call":
                    calls[command["id"]] = asyncio.create_task(call(client, command))
                case "cancel":
                    calls[command["id"]].cancel()
                case "answer":
                    person.words.put_nowait(command["text"])
        for task in calls.values():
            task.cancel()
        await asyncio.gather(*calls.values(), return_exceptions=True)
    say(ended=True)


asyncio.run(main(*sys.argv[1:]))
