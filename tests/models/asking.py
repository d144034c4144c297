"""Short ways to build what a model is asked, and to collect what it answers."""

from __future__ import annotations

from typing import Any

from covey.lifecycle.reply import ModelFact, TextDelta
from covey.models.base import ModelClient, ModelRequest
from covey.protocol.messages import Message, Part, Role, Text, TextPart


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
