"""The seam between a turn and a model: one method that streams facts.

A model client is stateless between calls. Cancelling the task that iterates `stream` closes the connection to the
provider at once; so does closing the iterator.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from covey.lifecycle.reply import ModelFact
from covey.protocol.messages import Message


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as the model sees it. `parameters` is a JSON Schema object."""

    name: str
    description: str
    parameters: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Retry:
    """A failed attempt that will be repeated: shown to people, so that a silent run is never a riddle."""

    attempt: int
    delay_s: float
    error: str


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One step: everything the model needs to answer. `messages` have been through `lifecycle.history.for_model`."""

    model: str
    system: str
    messages: list[Message]
    tools: list[ToolSpec] = field(default_factory=list)
    may_call: bool = True
    """False: only words are wanted. The tools stay declared, since the conversation has calls of them: without them
    some providers refuse it, and all of them would read it anew, at full price."""
    max_tokens: int | None = None
    effort: str = ""
    """How long to think, for models that think: low, medium, high; '' leaves it to the provider."""
    output_schema: dict[str, Any] | None = None
    """What the last answer of the turn has to fit, as the system prompt says. A provider may help the model with it."""
    sees_images: bool = True
    """False: the model refuses pictures, so a sentence stands in their place."""
    on_retry: Callable[[Retry], None] = lambda retry: None
    on_connected: Callable[[], None] = lambda: None
    trace: Callable[[str, str], None] | None = None
    """For people who want to see what is sent and what comes back: which of them, and the text. Never a header."""
    on_warning: Callable[[str], None] = lambda text: None
    """Something that people should know before they read the answer."""


class ModelFailed(Exception):
    """The model gave no usable answer. The text is for people: it names the provider and says what to do if it can.

    `auth`: the key was refused, so trying again is useless until somebody gives a new one.
    `overflow`: the conversation is too long for the model; a shorter one may do.
    `busy`: unreachable, overloaded or out of quota, with nothing of an answer seen: another model may do.
    `broken`: no end of an answer came: asking once more may do, if what was said can be taken back.
    `silent`: it is broken because the model said nothing for so long; finding that out again takes as long again.
    """

    def __init__(
        self,
        message: str,
        *,
        auth: bool = False,
        overflow: bool = False,
        busy: bool = False,
        broken: bool = False,
        silent: bool = False,
    ) -> None:
        super().__init__(message)
        self.auth = auth
        self.overflow = overflow
        self.busy = busy
        self.broken = broken
        self.silent = silent


class ModelClient(Protocol):
    """One configured provider."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelFact, None]:
        """Stream one answer. Ends after a `Stopped` fact; raises ModelFailed if there is no usable answer."""
        ...

    async def aclose(self) -> None:
        """Close idle connections. Streams under way are not waited for."""
        ...


@runtime_checkable
class KnowsWindows(Protocol):
    """A client that has asked its server how much fits into a model."""

    def window_of(self, model: str) -> int:
        """Tokens; 0: not known."""
        ...
