"""Chat Completions with streaming, as OpenAI made it and as most other servers speak it.

What goes out is `chat_request`, what comes back is `chat_answer`, everything else is `wire`.

Azure needs no type of its own. Its newer address is enough with a key:

    base_url = "https://NAME.openai.azure.com/openai/v1"
    headers = { api-key = "..." }

and the older one carries the deployment and the version, which stay where they are in every request:

    base_url = "https://NAME.openai.azure.com/openai/deployments/DEPLOYMENT?api-version=2024-10-21"
"""

from __future__ import annotations

from covey.models.base import ModelRequest
from covey.models.chat_answer import ChatAnswer
from covey.models.chat_request import encode_request
from covey.models.wire import WireClient

OPENAI_URL = "https://api.openai.com/v1"


class OpenAICompatible(WireClient):
    """One provider that speaks Chat Completions."""

    optional_fields = {"reasoning_effort": rb"reasoning_effort", "stream_options": rb"stream_options"}
    max_tokens_field = "max_tokens"

    def _path(self, request: ModelRequest) -> str:
        return "/chat/completions"

    def _encode(self, request: ModelRequest) -> bytes:
        return encode_request(request, self.max_tokens_field)

    def _decoder(self, request: ModelRequest) -> ChatAnswer:
        return ChatAnswer(call.id for message in request.messages for call in message.tool_calls)


class OpenAIChat(OpenAICompatible):
    """OpenAI itself, by its older API. Newer models there want the limit under another name than everybody else."""

    default_base_url = OPENAI_URL
    max_tokens_field = "max_completion_tokens"
