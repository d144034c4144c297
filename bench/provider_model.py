"""A model that speaks every wire format and costs almost nothing, as a process: `python -m bench.provider_model`.

The prompt says how much it answers, as in `bench.fast_model`: `@bench chunks=20000 gap=0@`. With a gap, each chunk is a
write of its own; without one, many go out together. Either way each is an HTTP chunk, as providers send them.
"""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any, cast

import uvloop

from bench.fast_model import HEAD, Directive, directive_of, piece

WORD = "word "
BATCH = 256
"""Chunks in one write where there is no gap."""


def _event(**fields: Any) -> bytes:
    name = f"event: {fields['type']}\n" if "type" in fields else ""
    return f"{name}data: {json.dumps(fields, separators=(',', ':'))}\n\n".encode()


def _chat(delta: dict[str, Any], finish: str | None = None, **fields: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    head = {
        "id": "chatcmpl-b",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "service_tier": "default",
    }
    return _event(**head, system_fingerprint="fp", choices=[choice], obfuscation="abcd", **fields)


def _google(text: str, **candidate: Any) -> bytes:
    content = {"parts": [{"text": text}], "role": "model"}
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
    chosen = {"content": content, "index": 0, **candidate}
    return _event(candidates=[chosen], usageMetadata=usage, modelVersion="m", responseId="r")


_RESPONSE: dict[str, Any] = {
    "id": "resp_b",
    "object": "response",
    "created_at": 1,
    "model": "m",
    "output": [],
    "tools": [],
}
_RESPONSE |= {"parallel_tool_calls": True, "tool_choice": "auto"}
_USED = {
    "input_tokens": 10,
    "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
    "output_tokens": 5,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 15,
}
_MESSAGE: dict[str, Any] = {
    "id": "msg_b",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [],
    "stop_reason": None,
}
_USAGE = {"input_tokens": 10, "output_tokens": 1}

ANSWERS: dict[str, tuple[bytes, bytes, bytes]] = {
    "/chat/completions": (
        _chat({"role": "assistant", "content": ""}),
        _chat({"content": WORD}),
        _chat({}, "stop", usage={"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15})
        + b"data: [DONE]\n\n",
    ),
    "/responses": (
        _event(type="response.created", sequence_number=0, response=_RESPONSE | {"status": "in_progress"}),
        _event(
            type="response.output_text.delta",
            sequence_number=4,
            item_id="msg_b",
            output_index=0,
            content_index=0,
            delta=WORD,
            logprobs=[],
            obfuscation="abcdefghijk",
        ),
        _event(
            type="response.completed", sequence_number=9, response=_RESPONSE | {"status": "completed", "usage": _USED}
        ),
    ),
    "/messages": (
        _event(type="message_start", message=_MESSAGE | {"usage": _USAGE})
        + _event(type="content_block_start", index=0, content_block={"type": "text", "text": ""}),
        _event(type="content_block_delta", index=0, delta={"type": "text_delta", "text": WORD}),
        _event(type="content_block_stop", index=0)
        + _event(type="message_delta", delta={"stop_reason": "end_turn", "stop_sequence": None}, usage=_USAGE)
        + _event(type="message_stop"),
    ),
    ":streamGenerateContent": (b"", _google(WORD), _google("", finishReason="STOP")),
}
"""For a part of the path: how an answer begins, a chunk of it, and how it ends."""


class Model(asyncio.Protocol):
    """One connection."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._input = bytearray()
        self._writable = asyncio.Event()
        self._writable.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._writable.set()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def data_received(self, data: bytes) -> None:
        self._input += data
        head, blank, body = bytes(self._input).partition(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: *(\d+)", head)
        if blank and length and len(body) >= int(length[1]):
            self._input.clear()
            path = head.split(b" ", 2)[1].decode()
            parts = next(answer for part, answer in ANSWERS.items() if part in path)
            self._answering = self._loop.create_task(self._answer(directive_of(body), *parts))

    async def _answer(self, directive: Directive, first: bytes, chunk: bytes, last: bytes) -> None:
        self._transport.write(HEAD + (piece(first) if first else b""))
        batch = 1 if directive.gap else BATCH
        start = self._loop.time()
        for sent in range(0, directive.chunks, batch):
            if directive.gap:
                await asyncio.sleep(start + sent * directive.gap - self._loop.time())
            await self._writable.wait()
            if self._transport.is_closing():
                return
            self._transport.write(piece(chunk) * min(batch, directive.chunks - sent))
        self._transport.write(piece(last) + b"0\r\n\r\n")


async def serve() -> None:
    server = await asyncio.get_running_loop().create_server(Model, "127.0.0.1", 0, backlog=1024)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve())
