"""The Responses API of OpenAI, with streaming and without anything stored there.

What goes out is `responses_request`, what comes back is `responses_answer`, everything else is `wire`.
"""

from __future__ import annotations

from covey.config.defaults import OWN_URLS
from covey.models.base import ModelRequest
from covey.models.responses_answer import ResponsesAnswer
from covey.models.responses_request import encode_request
from covey.models.wire import WireClient


class OpenAIResponses(WireClient):
    """One provider that speaks Responses."""

    default_base_url = OWN_URLS["openai"]
    optional_fields = {
        "include": rb"(?i)encrypted[ _]content|'include'",
        "reasoning.summary": rb"(?i)reasoning[. ]summar",
        "reasoning": rb"(?i)reasoning\.effort|'reasoning'|\"param\": *\"reasoning\"",
        "text": rb"text\.format|json_schema|(?i:invalid schema)",
    }
    """Models that do not think refuse the first three, and accounts that are not verified the summary.

    Not every schema is taken, and not by every model: whether an answer fits is checked elsewhere.
    """

    def _path(self, request: ModelRequest) -> str:
        return "/responses"

    def _encode(self, request: ModelRequest) -> bytes:
        return encode_request(request, self._provider_id)

    def _decoder(self, request: ModelRequest) -> ResponsesAnswer:
        return ResponsesAnswer(call.id for message in request.messages for call in message.tool_calls)
