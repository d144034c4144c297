"""What a streamed chunk costs for each wire format, from the bytes of the socket to facts, and what the SDK would take.

The model is a process of its own, so only the client's CPU is counted. "Blast": one stream as fast as it goes, many
chunks in one read. "One by one": 100 streams of 50 chunks a second, each chunk in a packet of its own, as models talk.
The SDKs are measured where they are installed.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import uvloop

from bench.processes import running, scratch
from bench.provider_model import WORD
from bench.report import Figure
from bench.rig import Options
from covey.config.schema import ProviderSettings, ProviderType
from covey.models.base import ModelRequest
from covey.models.connect import open_client
from covey.protocol.messages import Message, Text, TextPart

TARGET_BLAST_US = 15.0
TARGET_ONE_BY_ONE_US = 35.0
STREAMS = 100
GAP_S = 0.02

Ask = Callable[[str], Awaitable[int]]
"""Gives a prompt to a model, reads its answer to the end, and says how long its text was."""


@dataclass(frozen=True)
class Format:
    name: str
    module: str
    type: ProviderType
    base_path: str
    sdk: str


FORMATS = (
    Format("chat", "covey.models.openai_compatible", "openai-compatible", "/v1", "openai"),
    Format("responses", "covey.models.openai_responses", "openai", "/v1", "openai"),
    Format("anthropic", "covey.models.anthropic", "anthropic", "/v1", "anthropic"),
    Format("google", "covey.models.google", "google", "/v1beta", "google.genai"),
)


def measure(options: Options) -> Iterator[Figure]:
    chunks = options.size(20_000, 5_000)
    seconds = options.size(4, 1)
    with scratch() as place, running([sys.executable, "-m", "bench.provider_model"], place / "model.log") as model:
        url = f"http://127.0.0.1:{model.port}"
        for wire in FORMATS:
            if find_spec(wire.module):
                yield from _figures(wire, url, chunks, seconds)


def _figures(wire: Format, url: str, chunks: int, seconds: int) -> Iterator[Figure]:
    paced = f"@bench chunks={int(seconds / GAP_S)} gap={GAP_S}@"
    ours = _cost(_ours(wire, url), [f"@bench chunks={chunks} gap=0@"], chunks)
    theirs = _sdk_cost(wire, url, chunks)
    note = f"the SDK takes {theirs:.0f} us, {theirs / ours:.0f} x as much" if theirs else "its SDK is not installed"
    yield Figure(f"{wire.name}: CPU per chunk, blast", ours, "us", TARGET_BLAST_US, note=note)
    slow = _cost(_ours(wire, url), [paced] * STREAMS, int(seconds / GAP_S) * STREAMS)
    yield Figure(f"{wire.name}: CPU per chunk, {STREAMS} streams one by one", slow, "us", TARGET_ONE_BY_ONE_US)


def _cost(asking: Any, prompts: list[str], chunks: int) -> float:
    """Microseconds of CPU of this process for each chunk."""

    async def run() -> float:
        async with asking as ask:
            await ask("@bench chunks=10 gap=0@")
            start = time.process_time()
            lengths = await asyncio.gather(*(ask(prompt) for prompt in prompts))
            used = time.process_time() - start
            assert sum(lengths) == chunks * len(WORD), "text was lost"
            return used / chunks * 1e6

    return uvloop.run(run())


def _sdk_cost(wire: Format, url: str, chunks: int) -> float | None:
    try:
        import_module(wire.sdk)
    except ImportError:
        return None
    asked = {"chat": _openai_chat, "responses": _openai_responses, "anthropic": _anthropic, "google": _google}
    return _cost(nullcontext(asked[wire.name](url)), [f"@bench chunks={chunks} gap=0@"], chunks)


@asynccontextmanager
async def _ours(wire: Format, url: str) -> AsyncIterator[Ask]:
    api: Any = {"api": "responses"} if wire.name == "responses" else {}
    settings = ProviderSettings(type=wire.type, base_url=url + wire.base_path, api_key="bench", **api)
    client = open_client("bench", settings)

    async def ask(prompt: str) -> int:
        return sum([len(getattr(fact, "text", "")) async for fact in client.stream(_request(prompt))])

    yield ask
    await client.aclose()


def _request(prompt: str) -> ModelRequest:
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
    return ModelRequest(model="bench", system="", messages=[message])


def _openai_chat(url: str) -> Ask:
    client = import_module("openai").AsyncOpenAI(base_url=f"{url}/v1", api_key="bench")

    async def ask(prompt: str) -> int:
        messages = [{"role": "user", "content": prompt}]
        stream = await client.chat.completions.create(model="bench", messages=messages, stream=True)
        return sum([len(choice.delta.content or "") async for chunk in stream for choice in chunk.choices])

    return ask


def _openai_responses(url: str) -> Ask:
    client = import_module("openai").AsyncOpenAI(base_url=f"{url}/v1", api_key="bench")

    async def ask(prompt: str) -> int:
        stream = await client.responses.create(model="bench", input=prompt, stream=True)
        return sum([len(event.delta) async for event in stream if event.type == "response.output_text.delta"])

    return ask


def _anthropic(url: str) -> Ask:
    client = import_module("anthropic").AsyncAnthropic(base_url=url, api_key="bench")

    async def ask(prompt: str) -> int:
        messages = [{"role": "user", "content": prompt}]
        stream = await client.messages.create(model="bench", max_tokens=9, messages=messages, stream=True)
        return sum([len(event.delta.text) async for event in stream if event.type == "content_block_delta"])

    return ask


def _google(url: str) -> Ask:
    genai = import_module("google.genai")
    client = genai.Client(api_key="bench", http_options=genai.types.HttpOptions(base_url=url))

    async def ask(prompt: str) -> int:
        stream = await client.aio.models.generate_content_stream(model="bench", contents=prompt)
        return sum([len(chunk.text or "") async for chunk in stream])

    return ask
