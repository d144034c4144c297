"""A model that replays a script: for demos, tests and benchmarks. Not an AI, needs no key and no network.

A script is a JSON file:

    {"replies": [
      {"when": "(?i)list files",
       "steps": [[{"text": "I look. "}, {"tool": "bash", "input": {"command": "ls"}}],
                 [{"text": "Done."}]]},
      {"steps": [[{"text": "You said: ${prompt}", "delay_ms": 20}]]}
    ]}

The first reply whose `when` (a regular expression, searched for in the last user message) fits is used; one without
`when` always fits. Of its steps, the first answers the prompt, the second is the next model call of the same turn, and
so on; the last one repeats. A step is a list of actions, done in order:

    {"text": "..."}            said word by word; with `delay_ms` before each word
    {"text": "...", "repeat": n}   said n times, each time in one piece; with `delay_ms` before each
    {"reasoning": "..."}       thought word by word; `delay_ms` and `repeat` as with text
    {"delay_ms": n}            a pause
    {"tool": "name", "input": {...}}   a tool call
    {"usage": [10, 5]}         tokens of the prompt and of the answer
    {"error": "..."}           the call fails; with `"auth": true` as if the key had been refused
    {"hang": true}             nothing more comes, until somebody cancels
    {"finish": "max_tokens"}   the step ends here, for this reason

`${prompt}` in texts stands for the last user message. A step without `finish` ends with `tool_use` if it called a tool,
else with `end_turn`. The same request always gets the same answer: nothing is remembered between calls.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec

from covey.config.schema import ProviderSettings
from covey.lifecycle.reply import (
    ModelFact,
    ReasoningDelta,
    Stopped,
    TextDelta,
    ToolCallBegun,
    ToolInputDelta,
    UsageReported,
)
from covey.models.base import ModelFailed, ModelRequest
from covey.protocol.messages import FinishReason

_VERBS = ("text", "reasoning", "tool", "usage", "error", "hang", "finish")
_WORDS = re.compile(r"\s*\S+\s*|\s+")


class Action(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One line of a script: exactly one verb, or a pause."""

    text: str | None = None
    reasoning: str | None = None
    tool: str | None = None
    usage: tuple[int, int] | None = None
    error: str | None = None
    hang: bool | None = None
    finish: FinishReason | None = None
    delay_ms: float = 0.0
    repeat: int = 0
    """0: once, word by word."""
    input: dict[str, Any] = {}
    auth: bool = False

    def __post_init__(self) -> None:
        verbs = [verb for verb in _VERBS if getattr(self, verb) is not None]
        if len(verbs) > 1:
            raise ValueError(f"An action does one thing, but this one has {' and '.join(verbs)}")
        if not verbs and not self.delay_ms:
            raise ValueError(f"An action needs one of {', '.join(_VERBS)} or delay_ms")
        if self.delay_ms < 0 or self.repeat < 0:
            raise ValueError("`delay_ms` and `repeat` must not be negative")


class ScriptedReply(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    steps: tuple[tuple[Action, ...], ...]
    when: str = ""

    def __post_init__(self) -> None:
        if not self.steps:
            raise ValueError("A reply needs at least one step")
        try:
            re.compile(self.when)
        except re.error as error:
            raise ValueError(f"`when` is not a regular expression: {error}") from None


class Script(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    replies: tuple[ScriptedReply, ...]


class Scripted:
    """A provider that replays `settings.script`, or the demo that Covey carries."""

    def __init__(self, provider_id: str, settings: ProviderSettings) -> None:
        self._provider_id = provider_id
        self._script = _load(provider_id, settings.script)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelFact, None]:
        prompt, call_number = _position(request)
        step = self._step(prompt, call_number)
        calls = 0
        request.on_connected()
        for action in step:
            if action.error is not None:
                raise ModelFailed(f"{self._provider_id}: {action.error}", auth=action.auth)
            if action.hang:
                await asyncio.Event().wait()
            if action.finish is not None:
                yield Stopped(action.finish)
                return
            if action.usage is not None:
                yield UsageReported(*action.usage)
            if action.tool is not None:
                # Results find their calls by id: message ids are unique, so these are too.
                call_id = f"call_{request.messages[-1].id if request.messages else 0}_{calls}"
                yield ToolCallBegun(calls, call_id, action.tool)
                yield ToolInputDelta(calls, json.dumps(action.input))
                calls += 1
            for delta in _deltas(action, prompt):
                await asyncio.sleep(action.delay_ms / 1000)
                if delta is not None:
                    yield delta
        yield Stopped("tool_use" if calls else "end_turn")

    async def aclose(self) -> None:
        pass

    def _step(self, prompt: str, call_number: int) -> tuple[Action, ...]:
        for reply in self._script.replies:
            if re.search(reply.when, prompt):
                return reply.steps[min(call_number, len(reply.steps) - 1)]
        raise ModelFailed(f"{self._provider_id}: the script has no reply for this prompt: {prompt[:200]}")


def _position(request: ModelRequest) -> tuple[str, int]:
    """The last user message's text, and how many answers there have been since."""
    answers = 0
    for message in reversed(request.messages):
        if message.role == "user":
            return message.text, answers
        answers += message.role == "assistant"
    return "", answers


def _deltas(action: Action, prompt: str) -> Iterator[TextDelta | ReasoningDelta | None]:
    """What the action says, in the pieces in which it is said; None for a mere pause."""
    said = action.text if action.text is not None else action.reasoning
    if said is None:
        if action.delay_ms:
            yield None
        return
    kind = TextDelta if action.text is not None else ReasoningDelta
    said = said.replace("${prompt}", prompt)
    for piece in [said] * action.repeat if action.repeat else _WORDS.findall(said):
        yield kind(piece)


def _load(provider_id: str, script: str) -> Script:
    source = Path(script).expanduser() if script else resources.files("covey.models").joinpath("demo_script.json")
    try:
        data = source.read_bytes()
    except OSError as error:
        raise ModelFailed(f"{provider_id}: the script {source} cannot be read: {error.strerror}") from None
    try:
        return msgspec.json.decode(data, type=Script)
    except msgspec.ValidationError as error:
        raise ModelFailed(f"{provider_id}: the script {source} is not valid: {error}") from None
    except msgspec.DecodeError as error:
        raise ModelFailed(f"{provider_id}: the script {source} is not JSON: {_where(data) or error}") from None


def _where(data: bytes) -> str:
    """The line and column of the first mistake, which only the slower parser reports."""
    try:
        json.loads(data)
    except ValueError as error:
        return str(error)
    return ""
