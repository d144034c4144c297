"""Anthropic's Messages API, as Claude speaks it, and as other servers do for Claude's sake."""

from __future__ import annotations

import msgspec

from covey.config.defaults import OWN_URLS
from covey.models.anthropic_answer import MessagesAnswer, trouble_of
from covey.models.anthropic_request import encode_request
from covey.models.base import ModelRequest
from covey.models.trouble import Trouble
from covey.models.wire import AnswerDecoder, WireClient

API_VERSION = "2023-06-01"
BINDING = "thinking-binding-controls-2026-08-01"
"""Lets a request say what happens to a thought whose beginnings have changed: it is dropped, instead of an error."""


class _ErrorType(msgspec.Struct):
    type: str = ""


class _Refusal(msgspec.Struct):
    error: _ErrorType = msgspec.field(default_factory=_ErrorType)


class Anthropic(WireClient):
    """One provider that speaks the Messages API."""

    default_base_url = OWN_URLS["anthropic"]
    optional_fields = {"tool_choice": rb"tool_choice"}

    def _path(self, request: ModelRequest) -> str:
        return "/messages"

    def _auth_headers(self) -> dict[str, str]:
        headers = {"anthropic-version": API_VERSION, "anthropic-beta": BINDING}
        return headers | ({"x-api-key": self._api_key} if self._api_key else {})

    def _encode(self, request: ModelRequest) -> bytes:
        return encode_request(request, self._provider_id, binding=self._may_bind)

    def _decoder(self, request: ModelRequest) -> AnswerDecoder:
        return MessagesAnswer(call.id for message in request.messages for call in message.tool_calls)

    def _judge(self, status: int, body: bytes) -> Trouble:
        try:
            kind = msgspec.json.decode(body, type=_Refusal).error.type
        except (msgspec.DecodeError, RecursionError):
            kind = ""
        return trouble_of(kind, status, body)

    @property
    def _may_bind(self) -> bool:
        """A configured `anthropic-beta` header replaces ours, and may leave out what ours asks for."""
        own = {name.lower(): value for name, value in self._settings.headers.items()}
        return BINDING in own.get("anthropic-beta", BINDING)
