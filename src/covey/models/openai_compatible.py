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
from urllib.parse import urlsplit

from covey.config.defaults import OWN_URLS
from covey.config.schema import ProviderSettings
from covey.models.base import ModelRequest
from covey.models.chat_answer import ChatAnswer
from covey.models.chat_request import encode_request
from covey.models.wire import WireClient

_THOUGHTS_MISSED = re.compile(rb"(?i)missing .{0,3}reasoning_content|reasoning_content.{0,80} passed back")


class OpenAICompatible(WireClient):
    """One provider that speaks Chat Completions."""

    optional_fields = {"reasoning_effort": rb"reasoning_effort", "stream_options": rb"stream_options"}
    max_tokens_field = "max_tokens"

    def _path(self, request: ModelRequest) -> str:
        return "/chat/completions"

    def __init__(self, provider_id: str, settings: ProviderSettings) -> None:
        super().__init__(provider_id, settings)
        if provider_id == "openrouter" or urlsplit(settings.base_url).hostname == "openrouter.ai":
            self.key_check_path = "/key"  # its list of models is open to everybody
        self._thinkers: set[str] = set()
        """The models that want their thoughts back, as DeepSeek's do since 2026 and did not before."""

    def _encode(self, request: ModelRequest) -> bytes:
        thinker = self._provider_id if request.model in self._thinkers else ""
        return encode_request(request, self.max_tokens_field, thinker)

    def _learn(self, model: str, error: bytes) -> None:
        super()._learn(model, error)
        if _THOUGHTS_MISSED.search(error):
            self._thinkers.add(model)

    def _decoder(self, request: ModelRequest) -> ChatAnswer:
        return ChatAnswer(call.id for message in request.messages for call in message.tool_calls)


class OpenAIChat(OpenAICompatible):
    """OpenAI itself, by its older API. Newer models there want the limit under another name than everybody else."""

    default_base_url = OWN_URLS["openai"]
    max_tokens_field = "max_completion_tokens"
