"""Ollama, on this machine: Chat Completions, and what its own API says about the window that a model really has.

Ollama gives a model the window of its settings, 4,096 tokens on most machines, whatever the model could have, and drops
in silence what does not fit. Chat Completions has no way to ask for more. So it is looked up, and people are warned.
Who sets a `context_window` for the model gets just that: then its own chat is used, which can ask for it
(`ollama_chat`).
https://docs.ollama.com/context-length
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from typing import Any

import msgspec

from covey.config.schema import ProviderSettings
from covey.lifecycle.reply import ModelFact
from covey.models.base import ModelRequest
from covey.models.http import ProviderEndpoint, ProviderHttpFailed, ProviderResponse, open_http
from covey.models.ollama_chat import OllamaChat
from covey.models.openai_compatible import OpenAICompatible

MAX_ANSWER_BYTES = 4 * 1024 * 1024
"""Of one answer of Ollama's own API. What it shows of a model has its licence and its template in it."""
BYTES_PER_TOKEN = 4
"""For the guess how long a request is: what code and English have on average."""
SUGGESTED_WINDOW = 65_536
"""What Ollama's own documentation recommends for agents."""

_NUM_CTX = re.compile(r"(?m)^num_ctx\s+(\d+)")


class _Shown(msgspec.Struct):
    """What /api/show says of a model."""

    parameters: str = ""
    model_info: dict[str, Any] = {}


class _Running(msgspec.Struct):
    name: str = ""
    model: str = ""
    context_length: int = 0


class _Loaded(msgspec.Struct):
    """What /api/ps says: the models in memory."""

    models: list[_Running] = []


class Ollama(OpenAICompatible):
    """A server of Ollama's, which is asked about itself first."""

    answers_aside = False
    """It mostly has one place for all requests: what is asked beside the work would take it, and its cache."""

    def __init__(self, provider_id: str, settings: ProviderSettings) -> None:
        super().__init__(provider_id, settings)
        endpoint = ProviderEndpoint(
            url=self._address().removesuffix("/v1"),
            headers=self._headers(),
            connect_timeout_s=settings.connect_timeout_s,
            idle_timeout_s=settings.idle_timeout_s,
        )
        self._native = open_http(endpoint)
        self._wished = {model.id: model.context_window for model in settings.models if model.context_window}
        """For each model whose window somebody has set: what it is to be."""
        self._chat: OllamaChat | None = None
        self._windows: dict[str, int] = {}
        """For each model that was asked about, its window; 0: not known."""

    def window_of(self, model: str) -> int:
        """Tokens that fit into the model as it runs now; 0: not known."""
        return self._wished.get(model, 0) or self._windows.get(model, 0)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelFact, None]:
        is_wished = request.model in self._wished
        if not is_wished and request.model not in self._windows:
            self._windows[request.model], most = await self._look(request.model)
            self._warn(request, most)
        facts = self._own_chat().stream(request) if is_wished else super().stream(request)
        try:
            async for fact in facts:
                yield fact
        finally:
            await facts.aclose()

    def _own_chat(self) -> OllamaChat:
        if self._chat is None:
            settings = msgspec.structs.replace(self._settings, base_url=self._address().removesuffix("/v1"))
            self._chat = OllamaChat(self._provider_id, settings, self._wished.__getitem__)
        return self._chat

    async def aclose(self) -> None:
        if self._chat:
            await self._chat.aclose()
        await self._native.aclose()
        await super().aclose()

    def _warn(self, request: ModelRequest, most: int) -> None:
        window, needed = self._windows[request.model], len(self._body(request)) // BYTES_PER_TOKEN
        if not window or needed < window:
            return
        wanted = min(most or SUGGESTED_WINDOW, SUGGESTED_WINDOW)
        request.on_warning(
            f"{self._provider_id}: Ollama runs {request.model} with a window of {window:,} tokens, and what it is "
            f"asked has some {needed:,} already: it drops the rest in silence, and the model does not know what to do. "
            f"Set context_window = {wanted} for the model in your configuration, which asks Ollama for it, or start "
            f"Ollama with OLLAMA_CONTEXT_LENGTH={wanted}."
        )

    async def _look(self, model: str) -> tuple[int, int]:
        """The window of a model and the largest that it could have; 0 for what cannot be known."""
        shown = await self._ask_native("/api/show", _Shown, {"model": model})
        if shown is None:
            return 0, 0  # not Ollama, or a model that it does not have: the request itself will tell
        lengths = [value for key, value in shown.model_info.items() if key.endswith(".context_length")]
        most = next((value for value in lengths if isinstance(value, int)), 0)
        # Without a prompt it is only loaded, which the request would do too: then its window is known.
        await self._ask_native("/api/generate", msgspec.Raw, {"model": model, "stream": False})
        loaded = await self._ask_native("/api/ps", _Loaded)
        names = (model, f"{model}:latest")
        running = next((m for m in loaded.models if m.name in names or m.model in names), None) if loaded else None
        own = _NUM_CTX.search(shown.parameters)
        return (running.context_length if running else 0) or (int(own[1]) if own else 0), most

    async def _ask_native(self, path: str, answer_type: Any, body: dict[str, Any] | None = None) -> Any:
        """What Ollama's own API answers; None for anything but a good answer."""
        try:
            if body is None:
                answer = await self._native.get(path)
            else:
                answer = await self._native.post(msgspec.json.encode(body), path)
            data = await _whole(answer)
            return msgspec.json.decode(data, type=answer_type) if answer.status == 200 else None
        except (ProviderHttpFailed, msgspec.MsgspecError, RecursionError):
            return None


async def _whole(answer: ProviderResponse) -> bytes:
    data = b""
    try:
        while len(data) <= MAX_ANSWER_BYTES and (more := await answer.read()):
            data += more
        await answer.finish()
    finally:
        await answer.close()
    return data if len(data) <= MAX_ANSWER_BYTES else b""
