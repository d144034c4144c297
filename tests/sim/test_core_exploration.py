"""The rules hold in every state within the bounds, and an exploration that finds nothing could have found something."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from covey.lifecycle.decisions import (
    Decisions,
    End,
    Fold,
    OpenRun,
    Outcome,
    Phase,
    Queue,
    RecordCancelled,
    Reorder,
    Start,
    StopTurn,
    Unpark,
)
from covey.lifecycle.runs import CancelRuling, Lane, Ruling
from tests.sim.core_exploration import Exploration, explore
from tests.sim.core_inputs import Bounds

# The real methods, for defects that are nearly right.
accept = Lane.accept
enter = Lane.enter
move = Lane.move
cancel_all = Lane._cancel
begin_step = Lane.begin_step
finish = Lane.finish
next_run = Lane._next
recover = Lane.recover


@pytest.mark.parametrize(
    "bounds",
    [
        pytest.param(Bounds(prompts=3, crashes=2, resends=0, backlog=1), marks=pytest.mark.heavy),
        Bounds(prompts=3, crashes=1, resends=0, backlog=1),
        Bounds(prompts=2, crashes=1, resends=1, backlog=2),
        Bounds(prompts=2, crashes=1, resends=0, backlog=9),
    ],
    ids=str,
)
def test_every_promise_holds_in_every_reachable_state(bounds: Bounds) -> None:
    exploration = explore(bounds)
    print(bounds, exploration)
    assert not exploration.violation, str(exploration)
    assert exploration.states > 5_000, "the search hardly moved"


@pytest.mark.parametrize(
    "bounds",
    [
        Bounds(2, 1, 0, 1, options=1, delegates=1),
        Bounds(2, 1, 1, 1, options=1, queue=1),
        Bounds(2, 1, 0, 1, options=1, undos=1),
        Bounds(2, 1, 1, 1, delegates=1, queue=1),
        Bounds(2, 1, 0, 1, delegates=1, undos=1),
        Bounds(2, 1, 1, 1, undos=1, queue=1),
        Bounds(2, 1, 0, 1, options=1, interrupts=1),
        Bounds(2, 1, 0, 1, delegates=1, interrupts=1),
        Bounds(2, 1, 0, 1, delegates=1, parks=1),
        Bounds(2, 1, 0, 1, undos=1, parks=1),
        Bounds(2, 1, 0, 1, queue=1, interrupts=1),
        Bounds(2, 2, 0, 1, parks=1, interrupts=1),
        Bounds(3, 0, 0, 1, moves=1, parks=1),
        Bounds(3, 0, 0, 1, moves=1, interrupts=1),
        pytest.param(Bounds(3, 0, 0, 1, rests=1), marks=pytest.mark.heavy),
        pytest.param(Bounds(2, 1, 1, 2, rests=1), marks=pytest.mark.heavy),
        Bounds(2, 1, 0, 1, rests=1),
        Bounds(2, 1, 0, 1, rests=1, delegates=1),
        Bounds(2, 1, 0, 1, rests=1, interrupts=1),
        Bounds(2, 1, 0, 1, rests=1, parks=1),
        Bounds(2, 1, 0, 1, rests=1, undos=1),
    ],
    ids=str,
)
def test_what_else_runs_and_sessions_may_be_breaks_no_promise_each_with_each(bounds: Bounds) -> None:
    exploration = explore(bounds)
    print(bounds, exploration)
    assert not exploration.violation, str(exploration)
    assert exploration.states > 1_000, "the search hardly moved"


def test_the_search_is_complete_and_repeatable() -> None:
    """The same bounds visit the same states: the number only changes when the rules, or what may happen, do."""
    first, second = explore(Bounds(2, 1, 0, 1)), explore(Bounds(2, 1, 0, 1))
    assert (first.states, first.transitions) == (second.states, second.transitions)


# ── defects ──


def mark_off_by_one(self: Lane, newest: int) -> CancelRuling:
    return replace(self, mark=newest)._cancel(run for run in self.runs if run.seq < newest)


def cancel_touches_a_later_prompt(self: Lane, newest: int) -> CancelRuling:
    return replace(self, mark=newest)._cancel(self.runs)


def cancel_lost_before_entry(self: Lane, runs: Iterable[OpenRun]) -> CancelRuling:
    lane, decisions, covered = cancel_all(self, runs)
    for run in covered:
        if run.phase is Phase.ACCEPTED:
            lane = lane._with(run)
    return CancelRuling(lane, decisions, covered)


def cancel_without_wake_up(self: Lane, runs: Iterable[OpenRun]) -> CancelRuling:
    lane, decisions, covered = cancel_all(self, runs)
    return CancelRuling(lane, tuple(d for d in decisions if not isinstance(d, StopTurn)), covered)


def cancel_wins_nothing(self: Lane, run_id: str, outcome: Outcome) -> Ruling:
    return finish(self._with(replace(self._open(run_id), cancelled=False)), run_id, outcome)


def queue_is_stranded(self: Lane, run_id: str, outcome: Outcome) -> Ruling:
    run = self._open(run_id)
    return self._end(run, Outcome.CANCELLED if run.cancelled else outcome)


def queue_is_stranded_by_failures(self: Lane, run_id: str, outcome: Outcome) -> Ruling:
    return (queue_is_stranded if outcome is Outcome.FAILED else finish)(self, run_id, outcome)


def ends_twice(self: Lane, run_id: str, outcome: Outcome) -> Ruling:
    lane, decisions = finish(self, run_id, outcome)
    return Ruling(lane, (decisions[0], *decisions))


def ends_and_stays(self: Lane, run: OpenRun, outcome: Outcome) -> Ruling:
    return Ruling(self, (End(run.run_id, outcome, run.phase, run.host),))


def forgets_the_folded(self: Lane, run: OpenRun, outcome: Outcome) -> Ruling:
    return Ruling(self._without(run.run_id), (End(run.run_id, outcome, run.phase, run.host),))


def folds_own_turns(self: Lane, run_id: str) -> Ruling:
    lane, decisions = self, []
    for run in self.queued:
        lane = lane._with(replace(run, phase=Phase.FOLDED, host=run_id))
        decisions.append(Fold(run.run_id, run_id))
    return Ruling(lane, tuple(decisions))


def folds_into_a_stopping_turn(self: Lane, run_id: str) -> Ruling:
    lane, decisions = self, []
    for run in self.queued:
        if run.folds:
            lane = lane._with(replace(run, phase=Phase.FOLDED, host=run_id))
            decisions.append(Fold(run.run_id, run_id))
    return Ruling(lane, tuple(decisions))


def idle_cancel_poisons_the_next(self: Lane, run: OpenRun, limit: int | None = None) -> Lane:
    poisoned = run.cancelled or (not self.runs and 0 < self.mark == run.seq - 1)
    return accept(self, replace(run, cancelled=poisoned), limit)


def starts_the_newest(self: Lane) -> Ruling:
    waiting = [run for run in self.runs if run.entered and run.phase in (Phase.ACCEPTED, Phase.QUEUED)]
    if not waiting:
        return Ruling(self, ())
    return Ruling(self._with(replace(waiting[-1], phase=Phase.ACTIVE)), (Start(waiting[-1].run_id),))


def pops_and_loses(self: Lane) -> Ruling:
    lane, _ = next_run(self)
    return Ruling(lane._without(lane.active.run_id) if lane.active else lane, ())


def starts_beside_the_active(self: Lane, run_id: str) -> CancelRuling:
    return CancelRuling(*self._with(replace(self._open(run_id), entered=True))._next(), ())


def records_in_the_middle_of_a_turn(self: Lane, run_id: str) -> CancelRuling:
    run = self._open(run_id)
    if run.cancelled:
        return CancelRuling(self._without(run_id), (RecordCancelled(run_id),), ())
    return CancelRuling(self._with(replace(run, phase=Phase.ACTIVE)), (Start(run_id),), ())


def recovers_without_looking(self: Lane) -> CancelRuling:
    """Knows only of the active run: neither of dropped runs nor of those whose host has already ended."""
    decisions: Decisions = ()
    lane = self
    if run := self.active:
        lane, decisions = self._end(run, Outcome.CANCELLED if run.cancelled else Outcome.INTERRUPTED)
    lane, started = lane._next()
    return CancelRuling(lane, decisions + started, ())


def runs_again_after_a_crash(self: Lane) -> CancelRuling:
    return CancelRuling(self, tuple(Start(run.run_id) for run in self.runs if run.phase is Phase.ACTIVE), ())


def accepts_while_closing(self: Lane, run: OpenRun, limit: int | None = None) -> Lane:
    return accept(replace(self, closing=False), run, limit)


def accepts_while_held(self: Lane, run: OpenRun, limit: int | None = None) -> Lane:
    return replace(accept(replace(self, held=False), run, limit), held=self.held)


def accepts_one_too_many(self: Lane, run: OpenRun, limit: int | None = None) -> Lane:
    return accept(self, run, None if limit is None else limit + 1)


def holds_beside_runs(self: Lane) -> Lane:
    return replace(self, held=True)


def folds_into_a_turn_with_options(self: Lane, run_id: str) -> Ruling:
    return begin_step(self._with(replace(self._open(run_id), hosts=True)), run_id)


def delegates_outlive_a_crash(self: Lane) -> CancelRuling:
    return recover(self._with(*(replace(run, delegate=False) for run in self.runs)))


def begins_although_it_rests(self: Lane, run: OpenRun) -> bool:
    return True


def hand_over_interrupts(self: Lane) -> CancelRuling:
    """Takes the first that waits for one that was cut off."""
    if self.active or not self.queued:
        return recover(self)
    return recover(self._with(replace(self.queued[0], phase=Phase.ACTIVE)))


def folds_what_is_parked(self: Lane, run_id: str) -> Ruling:
    return begin_step(self._with(*(replace(run, parked=False) for run in self.runs)), run_id)


def unparks_and_forgets(self: Lane, run_id: str) -> Ruling:
    return Ruling(self._with(replace(self._open(run_id), parked=False)), (Unpark(run_id),))


def starts_what_is_parked(self: Lane) -> Ruling:
    return next_run(self._with(*(replace(run, parked=False) for run in self.runs)))


def moves_to_a_new_place(self: Lane, run_id: str, *, before: str = "", after: str = "") -> Ruling:
    lane, _ = move(self, run_id, before=before, after=after)
    return Ruling(lane._with(replace(lane._open(run_id), place=0)), (Reorder(((run_id, 0),)),))


def interrupts_nobody(self: Lane, run_id: str) -> CancelRuling:
    return enter(self._with(replace(self._open(run_id), interrupts=False)), run_id)


def interrupts_and_stands_last(self: Lane, run_id: str) -> Ruling:
    return Ruling(self._with(replace(self._open(run_id), entered=True, phase=Phase.QUEUED)), (Queue(run_id),))


DEFECTS: list[tuple[str, Callable[..., object]]] = [
    ("cancel", mark_off_by_one),
    ("cancel", cancel_touches_a_later_prompt),
    ("_cancel", cancel_lost_before_entry),
    ("_cancel", cancel_without_wake_up),
    ("finish", cancel_wins_nothing),
    ("finish", queue_is_stranded),
    ("finish", queue_is_stranded_by_failures),
    ("finish", ends_twice),
    ("_end", ends_and_stays),
    ("_end", forgets_the_folded),
    ("begin_step", folds_own_turns),
    ("begin_step", folds_into_a_stopping_turn),
    ("accept", idle_cancel_poisons_the_next),
    ("accept", accepts_while_closing),
    ("_next", starts_the_newest),
    ("_next", pops_and_loses),
    ("enter", starts_beside_the_active),
    ("enter", records_in_the_middle_of_a_turn),
    ("recover", recovers_without_looking),
    ("recover", runs_again_after_a_crash),
]
FURTHER_DEFECTS: list[tuple[str, Callable[..., object], Bounds]] = [
    ("accept", accepts_while_held, Bounds(1, 0, 0, 1, undos=1)),
    ("accept", accepts_one_too_many, Bounds(3, 0, 0, 1, queue=1)),
    ("hold", holds_beside_runs, Bounds(1, 0, 0, 1, undos=1)),
    ("begin_step", folds_into_a_turn_with_options, Bounds(2, 0, 0, 1, options=1)),
    ("recover", delegates_outlive_a_crash, Bounds(1, 1, 0, 1, delegates=1)),
    ("begin_step", folds_what_is_parked, Bounds(2, 0, 0, 1, parks=1)),
    ("unpark", unparks_and_forgets, Bounds(2, 0, 0, 1, parks=1)),
    ("_next", starts_what_is_parked, Bounds(2, 0, 0, 1, parks=1)),
    ("move", moves_to_a_new_place, Bounds(3, 0, 0, 1, moves=1)),
    ("_queue", interrupts_and_stands_last, Bounds(3, 0, 0, 1, interrupts=1)),
    ("enter", interrupts_nobody, Bounds(2, 0, 0, 1, interrupts=1)),
    ("_may_begin", begins_although_it_rests, Bounds(2, 0, 0, 1, rests=1)),
    ("recover", hand_over_interrupts, Bounds(2, 0, 0, 1, rests=1)),
]


@pytest.mark.parametrize(("method", "defect"), DEFECTS, ids=[defect.__name__ for _, defect in DEFECTS])
def test_a_deliberate_defect_is_caught(
    monkeypatch: pytest.MonkeyPatch, method: str, defect: Callable[..., object]
) -> None:
    monkeypatch.setattr(Lane, method, defect)
    exploration = _first_violation()
    print(exploration)
    assert exploration.violation
    assert exploration.path, "a violation comes with the way to it"


@pytest.mark.parametrize(
    ("method", "defect", "bounds"), FURTHER_DEFECTS, ids=[defect.__name__ for _, defect, _ in FURTHER_DEFECTS]
)
def test_a_deliberate_defect_of_a_further_fact_is_caught(
    monkeypatch: pytest.MonkeyPatch, method: str, defect: Callable[..., object], bounds: Bounds
) -> None:
    """Without the defect the exploration of each fact finds nothing, as shown above."""
    monkeypatch.setattr(Lane, method, defect)
    assert explore(bounds).violation


def test_the_way_to_a_violation_is_a_shortest_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Lane, "_next", pops_and_loses)
    assert [str(given) for given in _first_violation().path] == ["post r1 fold", "write", "enter r1"]


def _first_violation() -> Exploration:
    """Few defects need a crash or a third prompt to show: without these the way to the others is found sooner."""
    for bounds in (Bounds(2, 0, 0, 2), Bounds(2, 1, 0, 2), Bounds(3, 0, 0, 2)):
        exploration = explore(bounds)
        if exploration.violation:
            break
    return exploration
