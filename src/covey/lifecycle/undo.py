"""What an undo takes back, and what stands in its way; where a session may be cut to be forked. Pure.

A turn is taken back with its messages and with the files that it changed. Of each file three states count: as it was
before the first of the turns, as the last of them left it, and as it is now. It is restored only if nobody but those
turns has changed it; else that is a conflict, and then nothing at all is changed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from covey.lifecycle import history
from covey.protocol.changes import Origin, was_watched
from covey.protocol.effects import Effect
from covey.protocol.endings import CallEnd, call_end, never_ran
from covey.protocol.messages import Message, ToolResult

CHANGED = "it was changed since, by hand or by a command of somebody else"
DELETED = "it was deleted since, by hand or by a command of somebody else"
IN_BETWEEN = "between two of the recorded changes somebody else changed it too"
NOT_KEPT = "its old content is not kept: it is too large, or too long ago"
NOT_RESTORABLE = "what a command found there is not kept: it was too large, or no regular file"
NOT_COMPARABLE = "what a command left there cannot be compared with what is there now: it was too large"
UNSURE = "a command and somebody else were at work at the same time: it is not known who changed it"

_MARK = ":"
"""In what a content is known by that nobody has read; a digest has none."""


class _Noted(msgspec.Struct, frozen=True):
    """What a call of `todos` notes beside its result; an empty list is not noted."""

    todos: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class FileStep:
    """One recorded change of a file. Contents are known by their digest, None where there was no file."""

    run_id: str
    message_id: str
    path: str
    before: str | None
    after: str | None
    mode: int
    """Of the file before, if it is known; 0: it is not."""
    before_kept: bool
    """The content before can still be had."""
    origin: Origin = field(default_factory=Origin)

    @property
    def is_by_tool(self) -> bool:
        """A tool made it that knows what it does; else a command was at work, and the change was found afterwards."""
        return self.origin.made_by == "tool"


@dataclass(frozen=True, slots=True)
class Odd:
    """What is at a path now, if it is no file that can be compared; the text says why."""

    why: str


Found = str | None | Odd
"""What is at a path now: a digest, nothing, or something else."""


@dataclass(frozen=True, slots=True)
class Restore:
    """Give a file its old content back, if it still has the one that was found (None: no file)."""

    path: str
    found: str | None
    target: str | None
    mode: int
    executable: bool | None = None
    """Whether it may be executed then; None: that stays as it is."""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a file cannot be restored."""

    path: str
    why: str


@dataclass(frozen=True, slots=True)
class Plan:
    restore: tuple[Restore, ...]
    conflicts: tuple[Obstacle, ...]
    left: tuple[Obstacle, ...] = ()
    """Files that only commands changed and that cannot be restored: that is no reason to undo nothing."""


# ── turns ──


def turns_from(messages: Sequence[Message], hosts: Mapping[str, str], run_id: str) -> Sequence[Message]:
    """The messages from the turn of this run to the end ('': from the newest turn). Empty: it has left none.

    `hosts` says into which run's turn another was folded: a turn is undone as a whole.
    """
    if not run_id:
        run_id = next((message.run_id for message in reversed(messages) if message.run_id), "")
    wanted = hosts.get(run_id, run_id)
    for index, message in enumerate(messages):
        if message.run_id and hosts.get(message.run_id, message.run_id) == wanted:
            return messages[index:]
    return ()


def last_summary(messages: Sequence[Message]) -> str:
    """The message that stands for all before it; '' if there is none. One that was cut short stands for nothing."""
    for message in reversed(messages):
        if message.is_summary_message and message.finish and message.finish.reason == "end_turn":
            return message.id
    return ""


def todos_before(kept: Sequence[Message], cut: Sequence[Message]) -> dict[str, Any]:
    """The list of things to do as the messages that stay have left it: a field of the session.

    Nothing, if those that go have not changed it: somebody may have, by hand.
    """
    if not any(_todos_set(message) for message in cut):
        return {}
    for message in reversed(kept):
        if found := _todos_set(message):
            return {"todos": found[-1]}
    return {"todos": None}


def _todos_set(message: Message) -> list[tuple[dict[str, Any], ...]]:
    """What the calls of `todos` in a message have made of the list, in their order; one that failed changed nothing."""
    made = [result for result in message.tool_results if result.name == "todos" and not result.is_error]
    return [_noted(result) for result in made]


def _noted(result: ToolResult) -> tuple[dict[str, Any], ...]:
    try:
        return msgspec.json.decode(result.metadata, type=_Noted).todos
    except msgspec.MsgspecError:
        return ()


def may_have_more_effects(
    messages: Iterable[Message], steps: Iterable[FileStep], effects: Mapping[str, Effect]
) -> bool:
    """Something was run whose effects are not all recorded: a command that was not watched, or a call cut off.

    `effects`: of the tools, by name. One that is not among them may have done anything.
    """
    steps = list(steps)
    if any(step.origin.missed for step in steps):
        return True
    recorded = {step.message_id for step in steps}
    return any(
        _has_unknown_effects(result, effects.get(result.name, Effect.RUNS_COMMANDS))
        for message in messages
        if message.id not in recorded
        for result in message.tool_results
    )


def _has_unknown_effects(result: ToolResult, effect: Effect) -> bool:
    if effect.leaves_nothing_to_undo or never_ran(result) or was_watched(result):
        return False
    return not (effect is Effect.CHANGES_FILES and call_end(result) is CallEnd.FAILED)


# ── files ──


def plan(steps: Iterable[FileStep], found: Mapping[str, Found], forced: Collection[str] = ()) -> Plan:
    """What to restore. `forced`: files that are restored whatever was done to them since."""
    restore, conflicts, left = [], [], []
    for path, chain in chains(steps).items():
        now, first, executable = found[path], chain[0], restored_bit(chain)
        if now == first.before and executable is None:
            continue  # it is as it was before already
        if why := stays(chain, now, forced=path in forced):
            left.append(Obstacle(path, why))
        elif isinstance(now, Odd):
            conflicts.append(Obstacle(path, now.why))
        elif now != first.before and (why := _obstacle(chain, now, forced=path in forced)):
            conflicts.append(Obstacle(path, why))
        else:
            restore.append(Restore(path, now, first.before, first.mode, executable))
    return Plan(tuple(restore), tuple(conflicts), tuple(left))


def chains(steps: Iterable[FileStep]) -> dict[str, list[FileStep]]:
    """The changes of each file, in order."""
    by_path: dict[str, list[FileStep]] = {}
    for step in steps:
        if step.path:
            by_path.setdefault(step.path, []).append(step)
    return by_path


def restored_bit(chain: Sequence[FileStep]) -> bool | None:
    """Whether the file could be executed before, if that is different now."""
    before, after = chain[0].mode, next((s.origin.mode_after for s in reversed(chain) if s.origin.mode_after), 0)
    if chain[0].before is None or chain[-1].after is None or not before or not after:
        return None
    return bool(before & 0o100) if (before ^ after) & 0o100 else None


def stays(chain: Sequence[FileStep], now: Found, *, forced: bool = False) -> str:
    """Why a file that only commands changed stays as it is; '' if it need not."""
    if any(step.is_by_tool for step in chain):
        return ""
    if not chain[0].before_kept:
        return NOT_RESTORABLE
    if isinstance(now, Odd):
        return now.why
    if forced:
        return ""
    if not all(step.origin.is_sure for step in chain):
        return UNSURE
    return NOT_COMPARABLE if _MARK in (chain[-1].after or "") else ""


def _obstacle(chain: Sequence[FileStep], now: str | None, *, forced: bool) -> str:
    """Why the file must be left alone; '' if it need not."""
    if not chain[0].before_kept:
        return NOT_KEPT
    if forced:
        return ""
    if now != chain[-1].after:
        return DELETED if now is None else CHANGED
    if not all(step.origin.is_sure for step in chain):
        return UNSURE
    parted = any(chain[place].before != chain[place - 1].after for place in range(1, len(chain)))
    return IN_BETWEEN if parted else ""


# ── forks ──


def whole_until(messages: Sequence[Message], message_id: str) -> Sequence[Message]:
    """The messages up to this one ('': all), so that no tool call is parted from its results.

    Results that follow are taken along; a step that is not finished yet is left out.
    """
    end = len(messages)
    if message_id:
        end = next(place for place, message in enumerate(messages, 1) if message.id == message_id)
    while end < len(messages) and _is_beside_a_call(messages[end]) and not _is_whole(messages[:end]):
        end += 1
    chosen = messages[:end]
    return chosen if _is_whole(chosen) else chosen[: _last_answer(chosen)]


def _is_beside_a_call(message: Message) -> bool:
    """It may come between a call and the last result of its step: another result, or a person's own command."""
    return message.role == "tool" or message.is_command


def _is_whole(messages: Sequence[Message]) -> bool:
    """Its last step is finished. What is wrong further back does not become worse by a cut here."""
    step = messages[_last_answer(messages) :]
    begun = any(message.role == "assistant" and not message.finish for message in step)
    return not begun and not history.open_calls(step)


def _last_answer(messages: Sequence[Message]) -> int:
    return max((place for place, message in enumerate(messages) if message.role == "assistant"), default=0)
