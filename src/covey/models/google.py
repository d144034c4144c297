"""Google's Gemini API with streaming. The key goes into a header, never into the address."""

from __future__ import annotations

import re
from urllib.parse import quote

from covey.config.defaults import OWN_URLS
from covey.models.base import ModelRequest
from covey.models.google_answer import GeminiAnswer, trouble_of
from covey.models.google_request import encode_request
from covey.models.trouble import Trouble
from covey.models.wire import AnswerDecoder, WireClient

_RETRY_DELAY = re.compile(rb'"retryDelay"\s*:\s*"(\d+(?:\.\d+)?)s"')


class Google(WireClient):
    """One provider that speaks the Gemini API."""

    default_base_url = OWN_URLS["google"]
    optional_fields = {
        "generationConfig.responseSchema": rb"(?i)response_?schema",
        "generationConfig.responseMimeType": rb"(?i)response_?mime_?type",
    }

    def _path(self, request: ModelRequest) -> str:
        model = request.model.removeprefix("models/")
        return f"/models/{quote(model, safe='/')}:streamGenerateContent?alt=sse"

    def _auth_headers(self) -> dict[str, str]:
        return {"x-goog-api-key": self._api_key} if self._api_key else {}

    def _encode(self, request: ModelRequest) -> bytes:
        return encode_request(request, self._provider_id)

    def _decoder(self, request: ModelRequest) -> AnswerDecoder:
        return GeminiAnswer(call.id for message in request.messages for call in message.tool_calls)

    def _judge(self, status: int, body: bytes) -> Trouble:
        return trouble_of(status, body)

    def _retry_after(self, body: bytes) -> float | None:
        """Google says in the body, and not in a header, how long to wait."""
        found = _RETRY_DELAY.search(body)
        return float(found[1]) if found else None
