"""Every order of inputs to one lane, visited completely: no prompt is lost, no cancel is lost, nothing ends twice.

The rules are the real `lifecycle/runs.py`. Around them stands the smallest shell that keeps its contract: what a
ruling decides goes, in order, to a journal that writes one record at a time; a run enters once its prompt is on disk,
a turn makes steps once its start is; a crash forgets whatever is not on disk. All that clients, turns, the disk and
the power supply may do is an input, and each state that any order of inputs can reach is visited breadth first, so
that a violation comes with a shortest way to it.

    python -m tests.sim.core_exploration --prompts 4 --crashes 1

Bounded are the prompts, the crashes, the resends of a prompt that was refused or lost, and how far the disk may be
behind. Cancels, clears, removals, steps and closings are not: there may be any number of them, at any moment. Options
of a run, work for another run, a short queue and undos can be added, each or in pairs. This is not a test of the real
shell.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace

from covey.lifecycle.decisions import (
    DuplicateRun,
    End,
    LaneBusy,
    LaneClosing,
    LaneFull,
    LaneHeld,
    OpenRun,
    Outcome,
    Phase,
    Start,
    StopTurn,
    TooLate,
    waits_as,
)
from covey.lifecycle.early_cancels import EarlyCancels
from covey.lifecycle.runs import CancelRuling, Lane
from covey.protocol.runs import Mode
from tests.sim.core_inputs import Bounds, Input, World, inputs, progress, remaining
from tests.sim.core_promises import Accepted, Covered, Entry, Violation, check, written


def step(world: World, given: Input, queue: int = Bounds().queue) -> World:
    """The world after one input."""
    lane, live = world.lane, world.live
    match given:
        case Input("post" | "post again", run_id):
            return _post(world, given, queue)
        case Input("hold"):
            return _hold(world)
        case Input("release"):
            return world._replace(lane=lane.release())
        case Input("write"):
            return world._replace(disk=written(world.disk, world.pending[0]), pending=world.pending[1:])
        case Input("refuse to write", run_id):
            runs = tuple(run for run in live.runs if run.run_id != run_id)
            world = world._replace(live=live._replace(runs=runs), pending=world.pending[1:])
            return world._replace(lane=lane.retract(run_id))
        case Input("enter", run_id):
            run = live.open(run_id)
            stopped = live.active if run.interrupts and not run.cancelled else None
            return _cancelled(world, lane.enter(run_id), [stopped] if stopped else [])
        case Input("park" | "move first", run_id):
            return _queue_changed(world, given, live.open(run_id))
        case Input("move before", run_id, beside):
            return _decided(world, *lane.move(run_id, before=beside))
        case Input("move after", run_id, beside):
            return _decided(world, *lane.move(run_id, after=beside))
        case Input("unpark", run_id):
            return _decided(world, *lane.unpark(run_id))
        case Input("step", run_id):
            return _decided(world, *lane.begin_step(run_id))
        case Input("finish", run_id, outcome):
            lane, decisions = lane.finish(run_id, Outcome(outcome))
            interrupted = any(isinstance(d, End) and d.outcome is Outcome.INTERRUPTED for d in decisions)
            check(not interrupted, "only a restart interrupts")
            return _decided(world, lane, decisions)
        case Input("cancel session"):
            return _cancelled(world, lane.cancel(world.newest_seq), live.runs)
        case Input("cancel session up to", run_id):
            mark = live.open(run_id).seq
            covered = [run for run in live.runs if run.seq <= mark]
            hosts = {"", *(run.run_id for run in covered)}  # what was folded can only end with its host
            return _cancelled(world, lane.cancel(mark), [run for run in covered if run.host in hosts])
        case Input("cancel run", run_id):
            run = live.open(run_id)
            return _cancelled(world, lane.cancel_run(run_id), [] if run.phase is Phase.FOLDED else [run])
        case Input("clear queue"):
            return _cancelled(world, lane.clear_queue(), [run for run in live.runs if run.phase is Phase.QUEUED])
        case Input("remove", run_id):
            return _remove(world, live.open(run_id))
        case Input("close"):
            world = _cancelled(world, lane.close(world.newest_seq), live.runs)
            check(world.lane.closing, "a closing lane says so")
            return world
        case Input("rest"):
            return _at_rest(world._replace(lane=lane.rest()), True)
        case Input("hand over"):
            return _handed_over(world)
        case Input("crash and restart"):
            return _restarted(world)
    raise AssertionError(given)


def _restarted(world: World) -> World:
    """Memory is gone, and with it whoever held the conversation: an undo is gone on with before anything else."""
    before = world.disk
    lane, decisions, covered = Lane.of(before.runs).recover()
    waiting = (run for run in before.runs if run.phase in (Phase.ACCEPTED, Phase.QUEUED) and not run.cancelled)
    abandoned = [run.run_id for run in waiting if run.delegate]
    check([run.run_id for run in covered] == abandoned, f"the restart cancelled {covered} and not {abandoned}")
    world = world._replace(live=before, pending=(), crashes=world.crashes + 1, newest_seq=before.last_seq)
    world = _at_rest(world, False)
    return _decided(world, lane, [*([Covered(frozenset(abandoned))] if abandoned else []), *decisions])


def _at_rest(world: World, resting: bool) -> World:
    """No record says that the workspace is handed over, but what they may say depends on it."""
    disk, live = world.disk._replace(is_resting=resting), world.live._replace(is_resting=resting)
    return world._replace(disk=disk, live=live)


def _handed_over(world: World) -> World:
    """The next owner takes up what is on disk: that is all there is, and none of it is cut off."""
    ended = {run.run_id for run in world.live.runs if run.delegate or run.cancelled}
    after = _restarted(world)._replace(crashes=world.crashes)
    lost = [entry for entry in after.pending if isinstance(entry, End) and entry.run_id not in ended]
    check(not lost, f"the hand-over ended {lost}")
    waiting = [run for run in after.live.runs if not run.cancelled]
    check(bool(after.live.active) or all(not run.entered for run in waiting), f"{waiting} wait for nothing")
    return after


def _hold(world: World) -> World:
    """An undo may begin if and only if nothing is open and nothing closes."""
    free = not world.live.runs and not world.lane.closing
    try:
        lane = world.lane.hold()
    except (LaneBusy, LaneClosing):
        check(not free, "an undo was refused although the session is idle")
        return world
    check(free, "an undo began beside a run, or while closing")
    return world._replace(lane=lane)


def _post(world: World, given: Input, queue: int) -> World:
    is_new = given.run_id == f"r{world.posted + 1}"
    kind = given.how.partition(",")[0]
    has_options = kind in ("options", "delegate")
    overtaken = EarlyCancels().remember(given.run_id, now=0.0, keep_s=60.0) if "early" in given.how else EarlyCancels()
    early = overtaken.covers(given.run_id, now=59.0)
    seq = world.newest_seq + 1
    asked: Mode | None = "interrupt" if kind == "interrupt" else None
    mode = waits_as(asked, is_named=kind == "own_turn", has_options=has_options)
    run = OpenRun(
        given.run_id,
        seq,
        mode == "fold",
        cancelled=early,
        hosts=not has_options,
        delegate=kind == "delegate",
        interrupts=mode == "interrupt",
        place=seq,
    )
    waiting = sum(other.phase in (Phase.ACCEPTED, Phase.QUEUED) for other in world.live.runs)
    try:
        lane = world.lane.accept(run, queue)
    except LaneClosing:
        check(world.lane.closing, f"{given.run_id} was refused although nothing closes")
        return world
    except LaneHeld:
        check(world.lane.held and not world.live.runs, f"{given.run_id} was refused although nobody undoes anything")
        return world
    except LaneFull:
        check(waiting >= queue, f"{given.run_id} was refused although there is room")
        return world
    except DuplicateRun:
        check(given.what == "post again", f"{given.run_id} was taken for another")
        return world
    refused = world.lane.closing or world.lane.held or waiting >= queue
    check(given.what == "post" and not refused, f"{given.run_id} was accepted and must not be")
    world = world._replace(posted=world.posted + is_new, resends=world.resends + (not is_new), newest_seq=seq)
    return _decided(world, lane, [Accepted(run)])


def _queue_changed(world: World, given: Input, run: OpenRun) -> World:
    """What waits in the queue may be parked and moved, and nothing else may."""
    try:
        ruling = world.lane.park(run.run_id, "kim") if given.what == "park" else world.lane.move(run.run_id)
    except TooLate:
        check(run.phase is not Phase.QUEUED, f"{run} waits in the queue, and it was too late for {given}")
        return world
    check(run.phase is Phase.QUEUED, f"{given} of {run}")
    world = _decided(world, *ruling)
    first = world.lane.queued[0]
    check(given.what == "park" or first.run_id == run.run_id, f"{run} was moved first, and {first} is")
    return world


def _remove(world: World, run: OpenRun) -> World:
    editable = run.phase in (Phase.ACCEPTED, Phase.QUEUED) and not run.cancelled
    try:
        ruling = world.lane.remove(run.run_id)
    except TooLate:
        check(not editable, f"{run} can be removed and was not")
        return world
    check(editable, f"{run} was removed although it is too late")
    return _cancelled(world, ruling, [run])


def _cancelled(world: World, ruling: CancelRuling, runs: Iterable[OpenRun]) -> World:
    """A cancel must cover exactly these runs, say in which phase it found each, and reach all of them at once."""
    expected = {run.run_id: run.phase for run in runs}
    found = {run.run_id: run.phase for run in ruling.covered}
    check(found == expected, f"the cancel covered {found} and not {expected}")
    active = [run_id for run_id, phase in expected.items() if phase is Phase.ACTIVE]
    stopped = [decision.run_id for decision in ruling.decisions if isinstance(decision, StopTurn)]
    check(stopped == active, f"the cancel woke {stopped} and not {active}")
    news = frozenset(run.run_id for run in world.live.runs if run.run_id in expected and not run.cancelled)
    world = _decided(world, ruling.lane, [*([Covered(news)] if news else []), *ruling.decisions])
    queued = [run.run_id for run in world.live.runs if run.phase is Phase.QUEUED and run.cancelled]
    check(not queued, f"{queued} are cancelled and still in the queue")
    return world


def _decided(world: World, lane: Lane, entries: Iterable[Entry | StopTurn]) -> World:
    """The shell hands all of a ruling to the journal, but for wake-ups; its memory moves on at once."""
    to_write = tuple(entry for entry in entries if not isinstance(entry, StopTurn))
    live = world.live
    for entry in to_write:
        begins = isinstance(entry, Start) and live.is_resting and not live.open(entry.run_id).delegate
        check(not begins, f"{entry} although the workspace is about to be handed over")
        live = written(live, entry)
    return world._replace(lane=lane, live=live, pending=world.pending + to_write)


def agree(world: World) -> None:
    """The lane and the records tell the same story. That a run has entered is not recorded until it leads somewhere."""
    lane = tuple(replace(run, entered=False) if run.phase is Phase.ACCEPTED else run for run in world.lane.runs)
    check(lane == world.live.runs, f"the lane says {lane}, the records say {world.live.runs}")
    check(not (world.lane.held and world.lane.runs), "a run is open while the conversation is held")


# ── the search ──


@dataclass(frozen=True, slots=True)
class Exploration:
    """What was visited and, if a promise was broken, a shortest way to that."""

    states: int
    transitions: int
    seconds: float
    violation: str = ""
    path: tuple[Input, ...] = ()

    def __str__(self) -> str:
        text = f"{self.states:,} states, {self.transitions:,} transitions, {self.seconds:.1f} s"
        if not self.violation:
            return f"{text}: every promise holds"
        return "\n".join([f"{text}: {self.violation}, after", *(f"  {given}" for given in self.path)])


def explore(bounds: Bounds) -> Exploration:
    """Visit every world that can be reached within the bounds, or stop at the first broken promise."""
    began = time.perf_counter()
    worlds = [World()]
    came_by: list[tuple[int, Input]] = [(0, Input("start"))]
    visited = {worlds[0]}
    transitions = number = 0
    given: Input | None = None
    try:
        while number < len(worlds):
            world, given = worlds[number], None
            check(not world.live.runs or any(progress(world)), "a run is stranded: nothing that may happen ends it")
            for given in inputs(world, bounds):
                after = _after(world, given, bounds)
                transitions += 1
                if after not in visited:
                    visited.add(after)
                    worlds.append(after)
                    came_by.append((number, given))
            number += 1
    except (Violation, AssertionError) as broken:
        path = [given] if given else []
        while number:
            number, given = came_by[number]
            path.insert(0, given)
        return Exploration(len(worlds), transitions, time.perf_counter() - began, repr(broken), tuple(path))
    return Exploration(len(worlds), transitions, time.perf_counter() - began)


def _after(world: World, given: Input, bounds: Bounds) -> World:
    """One step, judged. Once no crash can come, it only matters when a prompt is written: the rest is at once."""
    after = step(world, given, bounds.queue)
    agree(after)
    while after.crashes == bounds.crashes and after.pending and not isinstance(after.pending[0], Accepted):
        after = step(after, Input("write"))
    if given.what in ("write", "enter", "finish", "unpark"):
        check(remaining(after) < remaining(world), "a lane that nobody disturbs can go on for ever")
    return after


def main() -> int:
    parser = argparse.ArgumentParser(description="Visit every state that one lane can reach.")
    for name, default in Bounds()._asdict().items():
        parser.add_argument(f"--{name}", type=int, default=default)
    exploration = explore(Bounds(**vars(parser.parse_args())))
    print(exploration)
    return 1 if exploration.violation else 0


if __name__ == "__main__":
    sys.exit(main())
