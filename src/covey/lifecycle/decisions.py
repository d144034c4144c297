"""What the rules about runs speak of: an open run, and what a lane may decide about it. Values, without rules.

The rules are in `runs.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from covey.protocol.runs import Mode

Places = tuple[tuple[str, int], ...]
"""Run ids and their places in the queue."""


class Phase(StrEnum):
    """Where an open run is. A run that ended is no longer in its lane."""

    ACCEPTED = "accepted"
    QUEUED = "queued"
    ACTIVE = "active"
    FOLDED = "folded"


class Outcome(StrEnum):
    """How a run ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"


class LaneClosing(Exception):
    """The workspace is closing: nothing more is accepted."""


class LaneFull(Exception):
    """As many runs wait as may wait."""


class LaneHeld(Exception):
    """Something that is not a run, such as an undo, changes the conversation."""


class LaneBusy(Exception):
    """Runs are open, so the conversation cannot be held."""


class DuplicateRun(Exception):
    """This run id is open already."""


class NotQueued(Exception):
    """A run can only be moved to a place beside one that waits in the queue."""


class TooLate(Exception):
    """The run is not waiting any more: it runs, was folded, or ended."""


@dataclass(frozen=True, slots=True)
class OpenRun:
    """One run that has not ended, as far as the rules care about it."""

    run_id: str
    seq: int
    folds: bool
    """It may join the turn of another run (R7)."""
    phase: Phase = Phase.ACCEPTED
    cancelled: bool = False
    """A cancel covers it. Lasting: waking up whoever runs it is only a hint."""
    entered: bool = False
    """It has reached the lane. Only of interest while it is accepted and cancelled: then it waits to be recorded."""
    host: str = ""
    """The run whose turn it was folded into."""
    hosts: bool = True
    """Other runs may join its turn. Not if it has options of its own: those are not what the others asked for."""
    delegate: bool = False
    """It works for another run, which waits for its end."""
    interrupts: bool = False
    """It cancels the active run when it enters, and is the next to run."""
    parked: bool = False
    """Somebody edits it: it stays in the queue and is passed over."""
    place: int = 0
    """Where it stands in the queue: the lowest is next. The places of queued runs are some order of their seqs."""


@dataclass(frozen=True, slots=True)
class QueueChange:
    """What somebody wants to be different about a queued prompt. What is not given stays as it is."""

    prompt: str | None = None
    is_moved: bool = False
    before: str = ""
    after: str = ""
    """Moved before or after another queued run; with neither, it becomes the first."""
    parked_by: str | None = None
    """Parked by this client; '' unparks it."""


@dataclass(frozen=True, slots=True)
class Queue:
    """The run waits for the active one to end."""

    run_id: str
    places: Places = ()
    """If it does not stand last: the queued runs whose places change with this."""


@dataclass(frozen=True, slots=True)
class Reorder:
    """These queued runs have new places."""

    places: Places


@dataclass(frozen=True, slots=True)
class Park:
    """The queued run is passed over from now on: this client edits it."""

    run_id: str
    by: str


@dataclass(frozen=True, slots=True)
class Unpark:
    """The queued run is not passed over any more."""

    run_id: str


@dataclass(frozen=True, slots=True)
class Start:
    """Begin this run's turn: a cancel reaches it from now on."""

    run_id: str


@dataclass(frozen=True, slots=True)
class StopTurn:
    """Wake the active turn: it has been cancelled."""

    run_id: str


@dataclass(frozen=True, slots=True)
class Fold:
    """Add this run's prompt to the turn of `into`."""

    run_id: str
    into: str


@dataclass(frozen=True, slots=True)
class RecordCancelled:
    """Cancelled on entry: write its prompt, an answer finished `canceled`, and its end."""

    run_id: str


@dataclass(frozen=True, slots=True)
class End:
    """Write the terminal event of this run: the only decision that ends one, beside `RecordCancelled`."""

    run_id: str
    outcome: Outcome
    found: Phase
    """What it was until now: a queued run that ends leaves no messages, an active one does."""
    folded_into: str = ""


Decision = Queue | Reorder | Park | Unpark | Start | StopTurn | Fold | RecordCancelled | End
Decisions = tuple[Decision, ...]


def waits_as(asked: Mode | None, *, is_named: bool, has_options: bool) -> Mode:
    """How a prompt waits for an active run (R7): as it asked to, else by whether its caller gave it an id.

    One with options of its own never joins the turn of another: they could not hold there.
    """
    if has_options and asked != "interrupt":
        return "own_turn"
    return asked or ("own_turn" if is_named else "fold")
