"""An OpenAI-compatible model that costs almost nothing, in a process of its own: `python -m bench.fast_model`.

The prompt says what it answers, in a form that survives JSON untouched:

    @bench chunks=2000 gap=0.02 stamp=1@

`chunks` words, `gap` seconds apart and each in a write of its own (0: as fast as the loop turns). A word is `~` and
four letters; with `stamp` it is `~` and the nanoseconds of the clock that all processes of a machine share. With
`calls` it first makes so many tool calls, as fast as it can, and says its words once it has the results; with `print`,
one call of a command that prints so many bytes. Not a fake for tests: it does nothing else, checks nothing, and does it
fast.
"""

from __future__ import annotations

import asyncio
import re
import time
from dataclasses import dataclass
from typing import cast

import uvloop

DIRECTIVE = re.compile(rb"@bench ([a-z0-9=. ]*)@")
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
WORD = b"~word"
RESULT = b'"role":"tool"'
BEFORE = b'data: {"id":"b","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"'
BEHIND = b'"},"finish_reason":null}]}\n\n'
LAST = (
    b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
    b'data: {"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":10}}\n\n'
    b"data: [DONE]\n\n"
)


@dataclass
class Directive:
    chunks: int = 1
    gap: float = 0.0
    stamp: bool = False
    calls: int = 0
    print: int = -1


def directive_of(body: bytes) -> Directive:
    """The last one counts: the older ones are the history of the session."""
    found = list(DIRECTIVE.finditer(body))
    fields = dict(pair.split(b"=") for pair in found[-1][1].split()) if found else {}
    has_results = bool(found) and body.find(RESULT, found[-1].end()) > 0
    return Directive(
        int(fields.get(b"chunks", 1)),
        float(fields.get(b"gap", 0)),
        bool(int(fields.get(b"stamp", 0))),
        0 if has_results else int(fields.get(b"calls", 0)),
        -1 if has_results else int(fields.get(b"print", -1)),
    )


def piece(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


PLAIN = piece(BEFORE + WORD + BEHIND)


def tool_calls(count: int) -> bytes:
    """An answer of calls that differ, of a tool that does not exist: they cost what a call costs, and nothing else."""
    call = (
        b'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":%d,"id":"call_%d","type":"function",'
        b'"function":{"name":"nothing","arguments":"{\\"number\\":%d}"}}]}}]}\n\n'
    )
    return b"".join(piece(call % (number, number, number)) for number in range(count)) + piece(LAST) + b"0\r\n\r\n"


def printing(size: int) -> bytes:
    """An answer with one command, which prints lines of 64 bytes."""
    call = (
        b'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_0","type":"function",'
        b'"function":{"name":"bash","arguments":"{\\"command\\":\\"yes %b | head -c %d\\"}"}}]}}]}\n\n'
    )
    return piece(call % (b"x" * 63, size)) + piece(LAST) + b"0\r\n\r\n"


class Model(asyncio.Protocol):
    """One connection."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._input = bytearray()
        self._left = 0
        self._gone = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._gone = True

    def data_received(self, data: bytes) -> None:
        self._input += data
        head, blank, body = bytes(self._input).partition(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: *(\d+)", head)
        if blank and length and len(body) >= int(length[1]):
            self._input.clear()
            self._answer(directive_of(body))

    def _answer(self, directive: Directive) -> None:
        self._directive, self._left = directive, directive.chunks
        self._next_at = self._loop.time() + directive.gap
        if directive.calls:
            self._transport.write(HEAD + tool_calls(directive.calls))
            return
        if directive.print >= 0:
            self._transport.write(HEAD + printing(directive.print))
            return
        self._transport.write(HEAD + self._chunk())
        self._go_on()

    def _chunk(self) -> bytes:
        self._left -= 1
        return piece(BEFORE + b"~%d" % time.perf_counter_ns() + BEHIND) if self._directive.stamp else PLAIN

    def _go_on(self) -> None:
        if self._left == 0:
            self._transport.write(piece(LAST) + b"0\r\n\r\n")
        elif self._directive.gap:
            self._loop.call_at(self._next_at, self._send)
        else:
            self._loop.call_soon(self._send)

    def _send(self) -> None:
        if not self._gone:
            self._next_at += self._directive.gap
            self._transport.write(self._chunk())
            self._go_on()


async def serve() -> None:
    server = await asyncio.get_running_loop().create_server(Model, "127.0.0.1", 0, backlog=1024)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve())
