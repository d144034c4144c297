"""Stands in for `covey.models.embedded_server` where there is no real model: the same life, and words that are known.

The last word of the prompt says what happens; the name of the model file, what happens at the start.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

import msgspec

from covey.models.embedded_server import Listening, Order, die_with, end_with


class Model:
    def __init__(self, order: Order) -> None:
        self._order = order
        self._computing = 0
        self._stubborn = False

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        assert f"authorization: bearer {self._order.api_key}".lower() in head, "a stranger"
        if head.startswith("get /slots "):
            body = json.dumps([{"id": 0, "is_processing": self._computing > 0 or self._stubborn}])
            writer.write(f"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n{body}".encode())
            writer.close()
            return
        (length,) = [line.partition(":")[2] for line in head.splitlines() if line.startswith("content-length:")]
        request = json.loads(await reader.readexactly(int(length)))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        self._computing += 1
        try:
            assert self._computing == 1, "two at once"
            await self._answer(request, reader, writer)
        finally:
            self._computing -= 1
            writer.close()

    async def _answer(self, request: Any, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        said = request["messages"][-1]["content"]
        said = said if isinstance(said, str) else said[-1]["text"]
        word = said.split()[-1]
        if word == "crash":
            sys.stderr.write("out of memory, or so\n")
            sys.stderr.flush()
            os._exit(3)
        self._stubborn = word == "stubborn"
        text = {"pid": str(os.getpid()), "env": " ".join(sorted(os.environ)), "request": json.dumps(request)}
        say(writer, text.get(word, f"You said: {said}"))
        await writer.drain()
        if word == "late-crash":
            os.abort()
        if word in ("endless", "stubborn"):
            await reader.read()  # until nobody listens any more
            return
        say(writer, "", "stop")
        writer.write(b"data: [DONE]\n\n")
        await writer.drain()


def say(writer: asyncio.StreamWriter, text: str, finish: str | None = None) -> None:
    chunk = {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]}
    writer.write(f"data: {json.dumps(chunk)}\n\n".encode())


async def main(order: Order) -> None:
    server = await asyncio.start_server(Model(order).serve, "127.0.0.1", 0)
    print(msgspec.json.encode(Listening(server.sockets[0].getsockname()[1])).decode(), flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    order = msgspec.json.decode(sys.stdin.buffer.readline(), type=Order)
    die_with(order.parent)
    watching = threading.Thread(target=end_with, args=(sys.stdin.buffer,), daemon=True)
    watching.start()
    match Path(order.model_file).stem:
        case "broken":
            sys.stderr.write("x" * 10_000 + " this file is no model\n")
            sys.stderr.flush()
            os._exit(1)
        case "slow":
            Path(order.model_file).with_suffix(".pid").write_text(str(os.getpid()))
            watching.join()
    asyncio.run(main(order))
