"""Short ways to ask a model, and to collect what it answers."""

from __future__ import annotations

import traceback
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from covey.config.schema import ProviderSettings
from covey.lifecycle.reply import ModelFact, TextDelta
from covey.models.base import ModelClient, ModelFailed, ModelRequest
from covey.models.openai_compatible import OpenAICompatible
from covey.models.wire import WireClient
from covey.protocol.messages import Message, Part, Role, Text, TextPart
from tests.support.fake_model import FakeModel, Recorded, Reply

KEY = "sk-very-secret"


def message(role: Role, *parts: Part | str, message_id: str = "m1") -> Message:
    return Message(
        id=message_id,
        role=role,
        session_id="s1",
        parts=tuple(TextPart(data=Text(text=part)) if isinstance(part, str) else part for part in parts),
        model="big",
        provider="local",
        created_at=0,
        updated_at=0,
    )


def request(*messages: Message | str, **fields: Any) -> ModelRequest:
    """A request; a plain string is a user message."""
    return ModelRequest(
        model="big",
        system=fields.pop("system", ""),
        messages=[message("user", entry) if isinstance(entry, str) else entry for entry in messages],
        **fields,
    )


async def answer(client: ModelClient, asked: ModelRequest | str = "hello") -> list[ModelFact]:
    asked = request(asked) if isinstance(asked, str) else asked
    return [fact async for fact in client.stream(asked)]


def text(facts: list[ModelFact]) -> str:
    return "".join(fact.text for fact in facts if isinstance(fact, TextDelta))


@asynccontextmanager
async def client(url: str, kind: type[WireClient] = OpenAICompatible, **settings: Any) -> AsyncIterator[WireClient]:
    """A client for the fake model at `url`."""
    fields: dict[str, Any] = {"type": "openai-compatible", "base_url": url, "api_key": KEY, "idle_timeout_s": 60.0}
    opened = kind("local", ProviderSettings(**fields | settings))
    try:
        yield opened
    finally:
        await opened.aclose()


async def failure(model: FakeModel, **settings: Any) -> ModelFailed:
    """How asking the fake model fails. Whatever happens, the key is not shown."""
    async with client(model.url, **settings) as opened:
        with pytest.raises(ModelFailed) as failed:
            await answer(opened)
    assert KEY not in "".join(traceback.format_exception(failed.value))
    return failed.value


def one_after_the_other(*replies: Reply) -> Callable[[Recorded], Reply]:
    """The n-th request gets the n-th reply."""
    left = list(replies)
    return lambda _: left.pop(0)
