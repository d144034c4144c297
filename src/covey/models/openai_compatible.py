"""Chat Completions with streaming, as OpenAI made it and as most other servers speak it.

What goes out is `chat_request`, what comes back is `chat_answer`, everything else is `wire`.

Azure needs no type of its own. Its newer address is enough with a key:

    base_url = "https://NAME.openai.azure.com/openai/v1"
    headers = { api-key = "..." }

and the older one carries the deployment and the version, which stay where they are in every request:

    base_url = "https://NAME.openai.azure.com/openai/deployments/DEPLOYMENT?api-version=2024-10-21"
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from covey.config.defaults import OWN_URLS
from covey.models.base import ModelRequest
from covey.models.chat_answer import ChatAnswer
from covey.models.chat_request import Kept, all_thoughts, encode_request, thoughts_of_turn
from covey.models.wire import WireClient

_THOUGHTS_MISSED = re.compile(
    rb"(?i)missing .{0,3}reasoning_content|reasoning_content.{0,80} (passed back|missing|required)"
)
"""How DeepSeek and Moonshot (Kimi) ask for them."""


class OpenAICompatible(WireClient):
    """One provider that speaks Chat Completions."""

    optional_fields = {
        "reasoning_effort": rb"reasoning_effort",
        "stream_options": rb"stream_options",
        "tool_choice": rb"tool_choice",
        "response_format": rb"response_format|json_schema|(?i:schema|grammar)",
    }
    max_tokens_field = "max_tokens"

    def _path(self, request: ModelRequest) -> str:
        return "/chat/completions"

    def _encode(self, request: ModelRequest) -> bytes:
        return encode_request(request, self.max_tokens_field, self._kept(request))

    def _kept(self, request: ModelRequest) -> Kept:
        """Which thoughts go back. A server that sends them can mostly read them, and some insist on it in a turn."""
        if request.model in self._lessons.thinkers:
            return all_thoughts(request, self._provider_id)
        if request.model in self._lessons.thinking:
            return thoughts_of_turn(request, self._provider_id)
        return lambda answer: {}

    def _learn(self, model: str, error: bytes) -> None:
        super()._learn(model, error)
        if _THOUGHTS_MISSED.search(error):
            self._lessons.thinkers.add(model)
        elif b"reasoning_content" in error:
            self._lessons.refuse_thoughts.add(model)
            self._lessons.thinking.discard(model)

    def _decoder(self, request: ModelRequest) -> ChatAnswer:
        def thinks() -> None:
            if request.model not in self._lessons.refuse_thoughts:
                self._lessons.thinking.add(request.model)

        return ChatAnswer(used_call_ids(request), on_thoughts=thinks)


def used_call_ids(request: ModelRequest) -> Iterator[str]:
    return (call.id for message in request.messages for call in message.tool_calls)


class OpenAIChat(OpenAICompatible):
    """OpenAI itself, by its older API. Newer models there want the limit under another name than everybody else."""

    default_base_url = OWN_URLS["openai"]
    max_tokens_field = "max_completion_tokens"
