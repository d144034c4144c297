"""What one streamed chunk costs on its way from the model's socket to a fact: `python -m bench.model_client`.

The fake model runs in a process of its own, so only the client's CPU is counted. Two patterns: "one by one", where each
chunk comes in a packet of its own (how models really talk), and "blast", where many come in one read. httpx2 is
measured beside our own HTTP client, with the same decoding behind it.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import httpx2
import uvloop

from covey.config.schema import ProviderSettings
from covey.models.base import ModelRequest
from covey.models.chat_answer import ChatAnswer
from covey.models.chat_request import encode_request
from covey.models.openai_compatible import OpenAICompatible
from covey.protocol.messages import Message, Text, TextPart

Stream = Callable[[ModelRequest], Awaitable[int]]
"""Reads one answer to its end and says how long its text was."""

TARGET_ONE_BY_ONE_US = 35
TARGET_BLAST_US = 15
WORD = "word "


@contextlib.contextmanager
def fake_model() -> Iterator[str]:
    command = [sys.executable, "-m", "tests.support.fake_model", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def asking(chunks: int, delay_ms: float) -> ModelRequest:
    prompt = "[" + json.dumps([{"text": WORD, "chunks": chunks, "delay_ms": delay_ms}]) + "]"
    message = Message(
        id="m1",
        role="user",
        session_id="s1",
        parts=(TextPart(data=Text(text=prompt)),),
        model="",
        provider="",
        created_at=0,
        updated_at=0,
    )
    return ModelRequest(model="fake", system="", messages=[message])


@contextlib.asynccontextmanager
async def ours(url: str) -> AsyncIterator[Stream]:
    client = OpenAICompatible("bench", ProviderSettings(type="openai-compatible", base_url=url))

    async def stream(request: ModelRequest) -> int:
        return sum([len(getattr(fact, "text", "")) async for fact in client.stream(request)])

    yield stream
    await client.aclose()


@contextlib.asynccontextmanager
async def with_httpx2(url: str) -> AsyncIterator[Stream]:
    async with httpx2.AsyncClient(timeout=60, limits=httpx2.Limits(max_connections=None)) as client:

        async def stream(request: ModelRequest) -> int:
            chat, length = ChatAnswer(), 0
            body = encode_request(request, "max_tokens")
            async with client.stream("POST", f"{url}/chat/completions", content=body) as response:
                async for data in response.aiter_raw():
                    length += sum(len(getattr(fact, "text", "")) for fact in chat.feed(data))
            return length

        yield stream


async def cpu_per_chunk(stream: Stream, streams: int, chunks: int, delay_ms: float) -> float:
    """Microseconds of CPU of this process for each chunk."""
    await stream(asking(10, 0))
    start = time.process_time()
    lengths = await asyncio.gather(*(stream(asking(chunks, delay_ms)) for _ in range(streams)))
    used = time.process_time() - start
    assert lengths == [chunks * len(WORD)] * streams, "text was lost"
    return used / (streams * chunks) * 1e6


async def measure(url: str, streams: int, seconds: float) -> None:
    one_by_one = (streams, int(50 * seconds), 20.0)
    blast = (1, 50_000, 0.0)
    print(f"{'CPU per chunk':<28}{'ours':>10}{'httpx2':>10}{'target':>10}")
    for name, pattern, target in (
        (f"one by one, {streams} streams", one_by_one, TARGET_ONE_BY_ONE_US),
        ("blast, 1 stream", blast, TARGET_BLAST_US),
    ):
        async with ours(url) as stream:
            our_cost = await cpu_per_chunk(stream, *pattern)
        async with with_httpx2(url) as stream:
            httpx2_cost = await cpu_per_chunk(stream, *pattern)
        print(f"{name:<28}{our_cost:>7.1f} us{httpx2_cost:>7.1f} us{target:>7} us")


def main() -> None:
    parser = argparse.ArgumentParser(description="CPU per streamed chunk, from the model's socket to a fact.")
    parser.add_argument("--streams", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=4.0, help="how long each stream with 50 chunks a second lasts")
    options = parser.parse_args()
    with fake_model() as url:
        uvloop.run(measure(url, options.streams, options.seconds))


if __name__ == "__main__":
    main()
