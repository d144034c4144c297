"""What hooks decide: how the end of one is read, and what several of them say together. Pure.

The contract is Claude Code's: exit code 0 with a JSON answer or without, 2 to block, anything else is a failure. An
answer can forbid more than the rules do, and can spare a person a question; it never lifts a rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, Literal

import msgspec

from covey.lifecycle.hook_trouble import looks_broken
from covey.protocol.hook_events import HookEvent, OnFailure

TEXT_LIMIT = 10_000
"""Characters of what a hook says that count (H7)."""
SAYS_CONTEXT: frozenset[HookEvent] = frozenset({"UserPromptSubmit", "SessionStart"})
"""Where plain words on stdout are told to the model."""
STOP_BLOCKS = 3
"""How often in a row hooks may keep a turn from ending (H6)."""


class HookDecision(IntEnum):
    """What is to become of a call, a prompt or an end: of several, the highest counts."""

    NONE = 0
    ALLOW = 1
    ASK = 2
    DEFER = 3
    """Leave it to the rules, whatever other hooks allow."""
    DENY = 4


@dataclass(frozen=True, slots=True)
class HookEnd:
    """How the process of a hook ended."""

    exit_code: int | None = None
    """None: it could not be started, or did not end in time."""
    stdout: str = ""
    stderr: str = ""
    trouble: str = ""
    """Why there is no exit code, for people."""
    missing: str = ""
    """The script that it should have run, and that is not there."""


@dataclass(frozen=True, slots=True)
class HookAnswer:
    """What one hook says, or several together."""

    decision: HookDecision = HookDecision.NONE
    reason: str = ""
    """For the model, and for whoever is asked."""
    updated_input: Mapping[str, Any] | None = None
    context: str = ""
    """What the model is told besides."""
    output: str | None = None
    """What the model reads instead of the result of a call."""
    stops: bool = False
    """The run is to end now."""
    stop_reason: str = ""
    told: tuple[str, ...] = ()
    """For people: messages of hooks, and what went wrong with them."""


class _Specific(msgspec.Struct, frozen=True, rename="camel"):
    permission_decision: Literal["allow", "deny", "ask", "defer"] | None = None
    permission_decision_reason: str = ""
    updated_input: dict[str, Any] | None = None
    additional_context: str = ""
    updated_tool_output: Any = None


class _Answer(msgspec.Struct, frozen=True, rename="camel"):
    """The JSON that a hook prints. Fields that nobody here knows are left alone."""

    continue_: bool = msgspec.field(default=True, name="continue")
    stop_reason: str | None = None
    system_message: str | None = None
    decision: Literal["block", "approve", "allow", "deny"] | None = None
    reason: str | None = None
    hook_specific_output: _Specific | None = None


_DECISIONS = {
    "allow": HookDecision.ALLOW,
    "approve": HookDecision.ALLOW,
    "ask": HookDecision.ASK,
    "defer": HookDecision.DEFER,
    "deny": HookDecision.DENY,
    "block": HookDecision.DENY,
}


def read_answer(
    event: HookEvent, name: str, end: HookEnd, on_failure: OnFailure = "ask", source: str = "its file"
) -> HookAnswer:
    """What a hook says, by how it ended. `name`: what people know it by; `source`: where it can be switched off."""
    stderr, stdout = end.stderr.strip()[:TEXT_LIMIT], end.stdout.strip()[:TEXT_LIMIT]
    if end.exit_code == 2:
        return _forbids(name, end.missing, stderr, source)
    if end.exit_code != 0:
        why = end.trouble or f"it ended with {end.exit_code}{f': {stderr}' if stderr else ''}"
        return _failed(name, why, on_failure)
    if not stdout.startswith("{"):
        return HookAnswer(context=stdout if event in SAYS_CONTEXT else "")
    try:
        answer = msgspec.json.decode(end.stdout.strip(), type=_Answer)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        return _failed(name, f"its answer cannot be read: {str(error)[:200]}", on_failure)
    return _understood(name, answer)


def _forbids(name: str, missing: str, stderr: str, source: str) -> HookAnswer:
    """Exit code 2. It forbids whatever the reason is, and one that is only broken is told apart (H3)."""
    reason = stderr or f"the hook {name} forbids it"
    if not missing and not looks_broken(stderr):
        return HookAnswer(HookDecision.DENY, reason)
    why = f"its script {missing} is not there" if missing else "it probably did not find a file"
    off = f"Mend it, or switch it off with `enabled = false` in {source}."
    told = f"The hook {name} is broken, and forbids everything that it is asked about: {why}: {stderr}. {off}"
    return HookAnswer(HookDecision.DENY, f"{reason}\n(The hook is broken: {why}. Tell the user.)", told=(told,))


def _failed(name: str, why: str, on_failure: OnFailure) -> HookAnswer:
    """A hook that gave no answer: what its entry says holds, and it is told each time (H3)."""
    decision = {"ask": HookDecision.ASK, "deny": HookDecision.DENY, "ignore": HookDecision.NONE}[on_failure]
    reason = "" if on_failure == "ignore" else f"The hook {name} failed: {why}"
    return HookAnswer(decision, reason, told=(f"The hook {name} failed: {why}",))


def _understood(name: str, answer: _Answer) -> HookAnswer:
    specific = answer.hook_specific_output or _Specific()
    word = specific.permission_decision or answer.decision
    decision = _DECISIONS[word] if word else HookDecision.NONE
    reason = specific.permission_decision_reason or answer.reason or ""
    if decision is HookDecision.DENY and not reason:
        reason = f"the hook {name} forbids it"
    output = specific.updated_tool_output
    return HookAnswer(
        decision,
        reason[:TEXT_LIMIT],
        specific.updated_input,
        specific.additional_context[:TEXT_LIMIT],
        _as_text(output) if output is not None else None,
        stops=not answer.continue_,
        stop_reason=(answer.stop_reason or f"the hook {name} says so")[:TEXT_LIMIT] if not answer.continue_ else "",
        told=(f"{name}: {answer.system_message[:TEXT_LIMIT]}",) if answer.system_message else (),
    )


def _as_text(value: Any) -> str:
    return (value if isinstance(value, str) else msgspec.json.encode(value).decode())[:TEXT_LIMIT]


def merged(answers: Sequence[HookAnswer], given: Mapping[str, Any] | None = None) -> HookAnswer:
    """What hooks say together, in the order of their file. `given`: the input of the call, as each of them saw it."""
    decision = max((answer.decision for answer in answers), default=HookDecision.NONE)
    reasons = [answer.reason for answer in answers if answer.decision is decision and answer.reason]
    stopping = next((answer for answer in answers if answer.stops), None)
    outputs = [answer.output for answer in answers if answer.output is not None]
    changes = [answer.updated_input for answer in answers if answer.updated_input is not None]
    return HookAnswer(
        decision,
        "\n".join(reasons),
        _rewritten(given or {}, changes) if changes else None,
        "\n".join(filter(None, (answer.context for answer in answers))),
        outputs[-1] if outputs else None,
        stops=stopping is not None,
        stop_reason=stopping.stop_reason if stopping else "",
        told=tuple(line for answer in answers for line in answer.told),
    )


def _rewritten(given: Mapping[str, Any], changes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What each hook changed, in order: every one of them saw the original, so only what it changed is meant (H4)."""
    result = dict(given)
    for changed in changes:
        for name in given:
            if name not in changed:
                result.pop(name, None)
        result.update({name: value for name, value in changed.items() if name not in given or given[name] != value})
    return result


@dataclass(frozen=True, slots=True)
class StopGuard:
    """Counts how often in a row hooks kept a turn from ending."""

    blocked: int = 0

    @property
    def is_active(self) -> bool:
        """Whether the turn goes on because of a hook: what the next one is told."""
        return self.blocked > 0

    @property
    def is_used_up(self) -> bool:
        return self.blocked >= STOP_BLOCKS

    def block(self) -> StopGuard:
        return replace(self, blocked=self.blocked + 1)
