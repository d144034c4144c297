"""OpenRouter: Chat Completions, with what its models need beyond that. https://openrouter.ai/docs

Claude and Gemini cache only what is marked, as with their own makers. Thoughts come as `reasoning_details`, which have
to go back exactly as they came: signed and encrypted ones are in it. They are kept as one part of the answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from covey.lifecycle.reply import ModelFact, ReasoningDelta, UsageReported
from covey.models.base import ModelRequest
from covey.models.chat_answer import ChatAnswer, ChatDelta, ChatUsage
from covey.models.chat_request import body_of
from covey.models.openai_compatible import OpenAICompatible, used_call_ids
from covey.models.pieces import is_of
from covey.protocol.messages import Message, ReasoningPart

CACHED_VENDORS = ("anthropic/", "google/")
"""Whose models cache what is marked; the others do it by themselves."""
MARKED_MESSAGES = 2
"""The last one, and the one before it, which the last step has marked: so its cache is found."""
DETAILS_LIMIT = 1024 * 1024
"""Characters of details that are kept for one answer; of more, none are. A long thought has some 100,000."""

DETAILS = "openrouter:"
"""What begins the signature that holds them."""
_CACHE = {"type": "ephemeral"}
_GROWING = {"reasoning.text": "text", "reasoning.summary": "summary"}
"""The kinds of details that come in pieces, and where the text of each is."""

_Json = dict[str, Any]


class OpenRouter(OpenAICompatible):
    """OpenRouter, and whatever stands in for it."""

    key_check_path = "/key"  # its list of models is open to everybody

    def _encode(self, request: ModelRequest) -> bytes:
        body = body_of(request, self.max_tokens_field, lambda answer: _details(answer, request, self._provider_id))
        body["usage"] = {"include": True}
        if request.model.startswith(CACHED_VENDORS):
            _mark(body)
        return msgspec.json.encode(body)

    def _decoder(self, request: ModelRequest) -> OpenRouterAnswer:
        return OpenRouterAnswer(used_call_ids(request))


class OpenRouterAnswer(ChatAnswer):
    """One answer: its details are collected, and follow all that was said."""

    def __init__(self, used_call_ids: Iterable[str] = ()) -> None:
        super().__init__(used_call_ids)
        self._details: list[_Detail] = []
        self._size = 0

    def _take(self, delta: ChatDelta) -> None:
        super()._take(delta)
        is_said = bool(delta.reasoning_content or delta.reasoning)
        for fields in delta.reasoning_details if isinstance(delta.reasoning_details, list) else ():
            if isinstance(fields, dict):
                self._add(_Detail(fields), is_said=is_said)

    def end(self) -> list[ModelFact]:
        *facts, stopped = super().end()
        if self._details:
            kept = msgspec.json.encode([detail.whole() for detail in self._details]).decode()
            facts.append(ReasoningDelta("", f"{DETAILS}{kept}"))
        return [*facts, stopped]

    def _counted(self, usage: ChatUsage) -> UsageReported:
        """OpenRouter says what it charged. With a key of the user's own the other provider charges too."""
        cost = usage.cost if isinstance(usage.cost, int | float) else None
        details = usage.cost_details if isinstance(usage.cost_details, dict) else {}
        upstream = details.get("upstream_inference_cost")
        if cost is not None and usage.is_byok is True and isinstance(upstream, int | float):
            cost += upstream
        return msgspec.structs.replace(super()._counted(usage), cost=cost)

    def _add(self, detail: _Detail, *, is_said: bool) -> None:
        if detail.text and not is_said:
            self._grow(ReasoningDelta, detail.text)
        self._size += detail.size
        if self._size > DETAILS_LIMIT:
            self._details.clear()
        elif not self._details or not self._details[-1].goes_on_with(detail):
            self._count_item()
            self._details.append(detail)


class _Detail:
    """One thought, which may come in pieces."""

    def __init__(self, fields: _Json) -> None:
        self._fields = fields
        self._field = _GROWING.get(str(fields.get("type")), "")
        text = fields.get(self._field)
        self.text = text if isinstance(text, str) else ""
        self._pieces = [self.text]
        self.size = sum(len(value) for value in fields.values() if isinstance(value, str))

    def goes_on_with(self, other: _Detail) -> bool:
        """Take the other as a further piece of this one, if it is. One of them brings the signature."""
        mine, its = self._fields, other._fields
        if not self._field or (mine.get("type"), mine.get("index")) != (its.get("type"), its.get("index")):
            return False
        self._pieces.append(other.text)
        mine.update((key, value) for key, value in its.items() if value is not None)
        return True

    def whole(self) -> _Json:
        return self._fields | ({self._field: "".join(self._pieces)} if self._field else {})


def _details(answer: Message, request: ModelRequest, provider_id: str) -> _Json:
    """The field with what this very model thought; nothing if there is none."""
    if not is_of(answer, provider_id, request.model):
        return {}
    for part in answer.parts:
        if isinstance(part, ReasoningPart) and part.data.signature.startswith(DETAILS):
            return {"reasoning_details": msgspec.Raw(part.data.signature.removeprefix(DETAILS).encode())}
    return {}


def _mark(body: _Json) -> None:
    """Mark the tools, the system prompt and the last messages as worth keeping."""
    if tools := body.get("tools"):
        tools[-1]["cache_control"] = _CACHE
    system = [entry for entry in body["messages"] if entry["role"] == "system"]
    others = [entry for entry in body["messages"] if entry["role"] in ("user", "tool") and entry["content"]]
    for entry in (*system, *others[-MARKED_MESSAGES:]):
        content = entry["content"]
        pieces = [{"type": "text", "text": content}] if isinstance(content, str) else content
        pieces[-1] = pieces[-1] | {"cache_control": _CACHE}
        entry["content"] = pieces
