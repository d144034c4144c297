"""A model on this machine, in a process of its own: needs no key, no network and no server of the user's.

Without `model_file` it is the very small one of `config.local_model`, and is treated like that: whatever it is sent, it
gets a short system prompt, no tools, and as much of the conversation as fits. A model file of the user's own is an
OpenAI-compatible model like any other. The process is `embedded_child`'s business; this file asks it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import msgspec

from covey.config import local_model
from covey.config.schema import ProviderSettings
from covey.lifecycle.reply import ModelFact
from covey.models.base import ModelFailed, ModelRequest
from covey.models.embedded_child import Child, ChildAddress, ChildFailed, ChildSpec, share
from covey.models.openai_compatible import OpenAICompatible
from covey.protocol.messages import BinaryPart, Message, TextPart

OWN_CONTEXT_WINDOW = 16_384
"""Tokens, for a model file whose settings name none: what an agent needs, in memory that most machines have."""
MAX_SYSTEM_CHARS = 1600
"""What is asked for in few words, such as a title, is left as it is; a whole agent's duties are not for this model."""
TINY_SYSTEM_PROMPT = (
    "You are Covey, a coding agent that runs as a server, so that many people can share one session. Answer briefly."
)
CHARS_PER_TOKEN = 3
"""Fewer than in English text: better to leave out a message too many than to be refused."""


class Embedded:
    """One provider of type `embedded`."""

    def __init__(self, provider_id: str, settings: ProviderSettings) -> None:
        self.is_tiny = not settings.model_file
        """It cannot use tools, and a long system prompt only confuses it."""
        self._provider_id = provider_id
        self._settings = settings
        self._spec = self._find()
        self._child: Child | None = None
        self._client: OpenAICompatible | None = None
        self._client_for: ChildAddress | None = None

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelFact, None]:
        if self.is_tiny:
            request = fit(request, self._spec.context_window)
        if self._child is None:
            self._child = share(self._spec)
        child, seen = self._child, False
        try:
            async with child.turn(self._settings.idle_timeout_s) as address:
                try:
                    client = await self._client_at(address)
                    async with aclosing(client.stream(request)) as facts:
                        async for fact in facts:
                            seen = True
                            yield fact
                except ModelFailed as failure:
                    last_output = "" if failure.overflow else await child.last_output()
                    raise self._failed(last_output, busy=not seen) if last_output else failure from None
        except ChildFailed as failure:
            raise self._failed(str(failure), busy=True) from None

    async def aclose(self) -> None:
        client, self._client, self._client_for = self._client, None, None
        if client:
            await client.aclose()
        child, self._child = self._child, None
        if child:
            child.leave()

    async def _client_at(self, address: ChildAddress) -> OpenAICompatible:
        """The process has another address each time that it was started."""
        if self._client and self._client_for == address:
            return self._client
        if self._client:
            await self._client.aclose()
        settings = msgspec.structs.replace(
            self._settings,
            type="openai-compatible",
            base_url=address.base_url,
            api_key=address.api_key,
            headers={},
            max_attempts=1,  # what goes wrong on this machine goes wrong again
        )
        self._client, self._client_for = OpenAICompatible(self._provider_id, settings), address
        return self._client

    def _find(self) -> ChildSpec:
        """What to load; raises ModelFailed if it is not there, with what to do."""
        if not local_model.has_runtime():
            raise self._failed("the embedded model needs xllamacpp: install covey[local]")
        window = max((model.context_window for model in self._settings.models), default=0)
        if own := self._settings.model_file:
            path = Path(own).expanduser()
            if not path.is_file():
                raise self._failed(f"there is no model file {path} (model_file)")
            return ChildSpec(path.absolute(), window or OWN_CONTEXT_WINDOW)
        found = local_model.find_weights()
        if found is None:
            raise self._failed("the embedded model is not there yet: `covey models get` gets it")
        return ChildSpec(found, window or local_model.CONTEXT_WINDOW, local_model.SMOLLM2.sha256, is_tiny=True)

    def _failed(self, text: str, *, busy: bool = False) -> ModelFailed:
        return ModelFailed(f"{self._provider_id}: {text}", busy=busy)


def fit(request: ModelRequest, context_window: int) -> ModelRequest:
    """The request as a very small model can take it: the last words of a conversation, and nothing but words.

    A prompt that does not fit even alone is not cut: the model refuses it, which is an overflow.
    """
    max_tokens = min(request.max_tokens or local_model.MAX_TOKENS, context_window // 2)
    system = request.system if 0 < len(request.system) <= MAX_SYSTEM_CHARS else TINY_SYSTEM_PROMPT
    left = (context_window - max_tokens) * CHARS_PER_TOKEN - len(system)
    kept: list[Message] = []
    for message in reversed([words for message in request.messages if (words := _words(message))]):
        left -= _length(message)
        if left < 0 and kept:
            break
        kept.insert(0, message)
    while len(kept) > 1 and kept[0].role != "user":
        del kept[0]  # an answer without its question says nothing
    return replace(
        request,
        system=system,
        messages=kept,
        tools=[],
        max_tokens=max_tokens,
        effort="",
        sees_images=False,
    )


def _words(message: Message) -> Message | None:
    """What was said: prompts as they are, answers without their tool calls; None for everything else."""
    if message.role == "user":
        return message
    if message.role != "assistant" or not message.text:
        return None
    parts = tuple(part for part in message.parts if isinstance(part, TextPart))
    return msgspec.structs.replace(message, parts=parts)


def _length(message: Message) -> int:
    """In characters. Attached files are longer here than what is sent of them."""
    return len(message.text) + sum(len(part.data.Data) for part in message.parts if isinstance(part, BinaryPart))
