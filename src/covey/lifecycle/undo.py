"""What an undo takes back, and what stands in its way; where a session may be cut to be forked. Pure.

A turn is taken back with its messages and with the files that it changed. Of each file three states count: as it was
before the first of the turns, as the last of them left it, and as it is now. It is restored only if nobody but those
turns has changed it; else that is a conflict, and then nothing at all is changed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from covey.lifecycle import history
from covey.protocol.effects import Effect
from covey.protocol.endings import CallEnd, call_end
from covey.protocol.messages import Message, ToolResult

CHANGED = "it was changed since, by hand or by a command"
DELETED = "it was deleted since, by hand or by a command"
IN_BETWEEN = "between two of the recorded changes somebody else, or a command, changed it too"
NOT_KEPT = "its old content is not kept: it is too large, or too long ago"


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


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a file cannot be restored."""

    path: str
    why: str


@dataclass(frozen=True, slots=True)
class Plan:
    restore: tuple[Restore, ...]
    conflicts: tuple[Obstacle, ...]


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


def may_have_more_effects(
    messages: Iterable[Message], steps: Iterable[FileStep], effects: Mapping[str, Effect]
) -> bool:
    """Something was run whose effects nobody has recorded: a command, or a call that was cut off.

    `effects`: of the tools, by name. One that is not among them may have done anything.
    """
    recorded = {step.message_id for step in steps}
    return any(
        _has_unknown_effects(result, effects.get(result.name, Effect.RUNS_COMMANDS))
        for message in messages
        if message.id not in recorded
        for result in message.tool_results
    )


def _has_unknown_effects(result: ToolResult, effect: Effect) -> bool:
    if effect.leaves_nothing_to_undo:
        return False
    return not (effect is Effect.CHANGES_FILES and call_end(result) is CallEnd.FAILED)


# ── files ──


def plan(steps: Iterable[FileStep], found: Mapping[str, Found], forced: Collection[str] = ()) -> Plan:
    """What to restore. `forced`: files that are restored whatever was done to them since."""
    by_path: dict[str, list[FileStep]] = {}
    for step in steps:
        by_path.setdefault(step.path, []).append(step)
    restore, conflicts = [], []
    for path, chain in by_path.items():
        now, first = found[path], chain[0]
        if isinstance(now, Odd):
            conflicts.append(Obstacle(path, now.why))
        elif now == first.before:
            continue  # it is as it was before already
        elif why := _obstacle(chain, now, forced=path in forced):
            conflicts.append(Obstacle(path, why))
        else:
            restore.append(Restore(path, now, first.before, first.mode))
    return Plan(tuple(restore), tuple(conflicts))


def _obstacle(chain: Sequence[FileStep], now: str | None, *, forced: bool) -> str:
    """Why the file must be left alone; '' if it need not."""
    if not chain[0].before_kept:
        return NOT_KEPT
    if forced:
        return ""
    if now != chain[-1].after:
        return DELETED if now is None else CHANGED
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
    while end < len(messages) and messages[end].role == "tool" and not _is_whole(messages[:end]):
        end += 1
    chosen = messages[:end]
    return chosen if _is_whole(chosen) else chosen[: _last_answer(chosen)]


def _is_whole(messages: Sequence[Message]) -> bool:
    """Its last step is finished. What is wrong further back does not become worse by a cut here."""
    step = messages[_last_answer(messages) :]
    begun = any(message.role == "assistant" and not message.finish for message in step)
    return not begun and not history.open_calls(step)


def _last_answer(messages: Sequence[Message]) -> int:
    return max((place for place, message in enumerate(messages) if message.role == "assistant"), default=0)
