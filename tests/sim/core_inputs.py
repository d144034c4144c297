"""What may happen to one lane, and when: the inputs of its exploration."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

from covey.lifecycle.decisions import Outcome, Phase
from covey.lifecycle.runs import Lane
from tests.sim.core_promises import Accepted, Entry, Records


class World(NamedTuple):
    """One moment. `live` is `disk` with everything that is `pending`: what the shell's memory must agree with."""

    lane: Lane = Lane()
    newest_seq: int = 0
    disk: Records = Records()
    live: Records = Records()
    pending: tuple[Entry, ...] = ()
    posted: int = 0
    resends: int = 0
    crashes: int = 0


class Bounds(NamedTuple):
    prompts: int = 3
    crashes: int = 1
    resends: int = 1
    backlog: int = 3
    """How many entries may wait to be written while further inputs arrive."""
    options: int = 0
    """1: runs may have options of their own."""
    delegates: int = 0
    """1: runs may work for another run."""
    undos: int = 0
    """1: the conversation may be held by an undo."""
    queue: int = 99
    """How many runs may wait."""
    moves: int = 0
    """1: queued runs may be moved."""
    parks: int = 0
    """1: queued runs may be parked."""
    interrupts: int = 0
    """1: runs may interrupt the active one."""
    rests: int = 0
    """1: the workspace may be handed over, and again."""


class Input(NamedTuple):
    """Something that may happen now."""

    what: str
    run_id: str = ""
    how: str = ""

    def __str__(self) -> str:
        return " ".join(filter(None, self))


def inputs(world: World, bounds: Bounds) -> Iterator[Input]:
    """Everything that may happen now."""
    if world.crashes < bounds.crashes:
        yield Input("crash and restart")
    if world.pending and isinstance(world.pending[0], Accepted):
        yield Input("refuse to write", world.pending[0].run.run_id)
    if len(world.pending) >= bounds.backlog:
        yield Input("write")
        return
    yield from _prompts(world, bounds)
    for run in world.live.runs:
        yield Input("cancel run", run.run_id)
        yield Input("cancel session up to", run.run_id)
        yield Input("remove", run.run_id)
    yield from (Input("cancel session"), Input("clear queue"), Input("close"))
    if bounds.undos:
        yield Input("release" if world.lane.held else "hold")
    if (active := world.disk.active) and active == world.live.active:
        yield Input("step", active.run_id)
    if bounds.rests and not world.lane.resting:
        yield Input("rest")
    yield from _queue_inputs(world, bounds)
    yield from progress(world)


def _queue_inputs(world: World, bounds: Bounds) -> Iterator[Input]:
    """What people may do with queued runs. They are moved one place at a time: that leads to every order."""
    for run in world.live.runs if bounds.parks else ():
        yield Input("park", run.run_id)
    if not bounds.moves:
        return
    for run in world.live.runs:
        yield Input("move first", run.run_id)
    queued = [run.run_id for run in world.lane.queued]
    for one, other in itertools.pairwise(queued):
        yield Input("move before", other, one)
        yield Input("move after", one, other)


def _prompts(world: World, bounds: Bounds) -> Iterator[Input]:
    known = [f"r{number}" for number in range(1, world.posted + 1)]
    unknown = [run_id for run_id in known if run_id not in world.live.ended and not world.live.find(run_id)]
    fresh = unknown if world.resends < bounds.resends else []
    if world.posted < bounds.prompts:
        fresh = [*fresh, f"r{world.posted + 1}"]
    kinds = ["fold", "own_turn", *["options"] * bounds.options, *["delegate"] * bounds.delegates]
    kinds += ["interrupt"] * bounds.interrupts
    for run_id in fresh:
        for how in (*kinds, *(f"{kind}, cancelled early" for kind in kinds)):
            yield Input("post", run_id, how)
    for run in world.live.runs:
        yield Input("post again", run.run_id)


def progress(world: World) -> Iterator[Input]:
    """What a fair world does sooner or later, even if nobody asks for anything any more."""
    if world.pending:
        yield Input("write")
    accepted = (run for run in world.lane.runs if run.phase is Phase.ACCEPTED and not run.entered)
    oldest = next(accepted, None)
    if oldest and world.disk.find(oldest.run_id):
        yield Input("enter", oldest.run_id)
    if active := world.lane.active:
        yield Input("finish", active.run_id, Outcome.COMPLETED)
        yield Input("finish", active.run_id, Outcome.FAILED)
    for run in world.lane.queued:
        if run.parked:  # nobody edits for ever
            yield Input("unpark", run.run_id)
    if world.lane.resting and not world.lane.active and not world.pending:
        yield Input("hand over")


def remaining(world: World) -> tuple[int, int, int, bool, int]:
    """What is still to be done. Falls with each input of `progress`, so a fair world cannot go on for ever."""
    entering = sum(run.phase is Phase.ACCEPTED and not run.entered for run in world.lane.runs)
    parked = sum(run.parked for run in world.lane.runs)
    return len(world.live.runs), entering, parked, world.lane.resting, len(world.pending)
