"""What a server may answer about one session. Built on the rules themselves: a set of states, narrowed by each answer.

Between two answers the server does things by itself: an accepted run enters, a step begins, a turn ends once the model
may speak. Nobody outside knows when, so a `Spec` holds every state that fits all answers so far. An answer that fits
none of them breaks a promise. Requests that are under way together may have been served in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations
from typing import Any

from covey.lifecycle.decisions import (
    Decisions,
    DuplicateRun,
    End,
    Fold,
    LaneClosing,
    OpenRun,
    Outcome,
    RecordCancelled,
    Start,
    TooLate,
)
from covey.lifecycle.runs import CancelRuling, Lane
from tests.support.server import Answer


@dataclass(frozen=True)
class Prompt:
    """What was posted, and what the fake model will do with it."""

    token: str
    """Stands in the text; the model knows the prompt by it."""
    script: str
    """`plain` answers, `fail` is refused, `tool` calls a tool first."""
    mode: str


@dataclass(frozen=True)
class Turn:
    """A model call of the active turn: it waits at the gate with the number `call` of the prompt that came last."""

    token: str
    call: int = 0


@dataclass(frozen=True)
class World:
    """One state that the server may be in."""

    lane: Lane = field(default_factory=Lane)
    newest_seq: int = 0
    """The newest that is known to have been given out."""
    turn: Turn | None = None
    ended: frozenset[tuple[str, str, str]] = frozenset()
    """Of each run that has ended: its id, its last state, and the run whose turn it was folded into."""
    early: frozenset[str] = frozenset()
    deleted: bool = False

    def state_of(self, run_id: str) -> str:
        """The state that a client may see; '' if nobody has posted such a run."""
        if run := self.lane.find(run_id):
            return run.phase.value
        return next((state for ended_id, state, _ in self.ended if ended_id == run_id), "")

    def is_ended(self, run_id: str) -> bool:
        return any(ended_id == run_id for ended_id, _, _ in self.ended)

    def has_entered(self, run_id: str) -> bool:
        run = self.lane.find(run_id)
        return run is None or run.entered

    def after(self, lane: Lane, decisions: Decisions) -> World:
        """The world in which the shell has carried out a ruling."""
        world = replace(self, lane=lane)
        for decision in decisions:
            match decision:
                case End(run_id, outcome, _, host):
                    ending = (run_id, "folded" if host else outcome.value, host)
                    world = replace(world, ended=world.ended | {ending})
                case RecordCancelled(run_id):
                    world = replace(world, ended=world.ended | {(run_id, "cancelled", "")})
                case Start():
                    world = replace(world, turn=None)
        return world


Step = Callable[[World, Answer], Iterable[World]]


@dataclass(frozen=True)
class Request:
    """One request, and which worlds can be after its answer, given one before it."""

    method: str
    path: str
    step: Step
    body: Any = None
    prompt: Prompt | None = None
    """What it posts. The answer comes when the run has entered."""
    deletes: bool = False
    """The answer comes when the session has no open run any more."""

    def posted(self, answer: Answer) -> str:
        """The id of the run that was accepted by this; '' if none was."""
        return str(answer.body["run_id"]) if self.prompt and answer.status == 202 else ""


@dataclass
class Spec:
    """All worlds that fit the answers so far."""

    prompts: dict[str, Prompt] = field(default_factory=dict)
    """By run id: filled in as soon as an answer tells the id."""
    released: set[tuple[str, int]] = field(default_factory=set)
    """Gates of the model that are open: by the token of a prompt and the number of the call."""
    possible: frozenset[World] = frozenset({World()})

    def observe(self, answered: Sequence[tuple[Request, Answer]]) -> None:
        """Requests that were under way together have been answered."""
        for request, answer in answered:
            if request.prompt and (run_id := request.posted(answer)):
                self.prompts.setdefault(run_id, request.prompt)
        before = self.reachable(self.possible)
        after: set[World] = set()
        for order in permutations(answered):
            worlds = before
            for request, answer in order:
                worlds = self.reachable(next for world in worlds for next in request.step(world, answer))
            after.update(world for world in worlds if self._is_over(world, answered))
        seen = [f"{r.method} {r.path} {r.body} -> {a.status} {a.body}" for r, a in answered]
        shown = [f"{len(before)} possible worlds before, such as:", *map(str, list(before)[:5])]
        assert after, "\n".join(["nothing explains these answers:", *seen, *shown])
        self.possible = frozenset(after)

    def _is_over(self, world: World, answered: Sequence[tuple[Request, Answer]]) -> bool:
        """Whether all that the answers have waited for has happened."""
        for request, answer in answered:
            if request.deletes and answer.status == 200 and world.lane.runs:
                return False
            if run_id := request.posted(answer):
                is_visible = len(answered) > 1 or shows_state(world, run_id, answer.body["state"])
                if not (is_visible and world.has_entered(run_id)):
                    return False
        return True

    def reachable(self, worlds: Iterable[World]) -> frozenset[World]:
        """These worlds, and all that the server can get to from them by itself."""
        found = set(worlds)
        todo = list(found)
        while todo:
            for world in self._moves(todo.pop()):
                if world not in found:
                    found.add(world)
                    todo.append(world)
        return frozenset(found)

    def _moves(self, world: World) -> Iterator[World]:
        lane = world.lane
        if waiting := next((run for run in lane.runs if run.phase == "accepted" and not run.entered), None):
            yield world.after(*lane.enter(waiting.run_id)[:2])
        active = lane.active
        if active is None:
            return
        if active.cancelled:
            yield world.after(*lane.finish(active.run_id, Outcome.CANCELLED))
        turn = world.turn
        if turn is None:
            yield self._step(world, active, Turn(self.prompts[active.run_id].token))
        elif (turn.token, turn.call) in self.released:
            script = next(prompt.script for prompt in self.prompts.values() if prompt.token == turn.token)
            if script == "tool" and turn.call == 0:
                yield self._step(world, active, Turn(turn.token, 1))
            else:
                outcome = Outcome.FAILED if script == "fail" else Outcome.COMPLETED
                yield world.after(*lane.finish(active.run_id, outcome))

    def _step(self, world: World, active: OpenRun, turn: Turn) -> World:
        """A step begins: the prompts that are folded now are the last that the model sees."""
        lane, decisions = world.lane.begin_step(active.run_id)
        folded = [decision.run_id for decision in decisions if isinstance(decision, Fold)]
        return replace(world, lane=lane, turn=Turn(self.prompts[folded[-1]].token) if folded else turn)


def shows_state(world: World, run_id: str, state: str) -> bool:
    """Whether a 202 may show this state. One that was just accepted and has ended since is shown as accepted."""
    return world.state_of(run_id) == state or (state == "accepted" and world.is_ended(run_id))


# ── what each answer means ──


def in_session(step: Step) -> Step:
    """A route below a session: gone with it."""

    def checked(world: World, answer: Answer) -> Iterable[World]:
        gone = answer.status == 404 and answer.body["code"] == "session_not_found"
        if world.deleted or gone:
            return [world] if world.deleted and gone else []
        return step(world, answer)

    return checked


def post(given_id: str, prompt: Prompt, *, same: bool = True) -> Step:
    """`same`: if the run id is known, it was used for this very content. Without an id the server makes one."""

    def step(world: World, answer: Answer) -> Iterable[World]:
        run_id = given_id or answer.body.get("run_id", "")
        if world.state_of(run_id):
            refused = answer.status == 409 and answer.body["code"] == "run_id_reused"
            return [world] if (answer.status == 202 if same else refused) else []
        if answer.status != 202 or answer.body["seq"] <= world.newest_seq:
            return []
        try:
            folds, early = prompt.mode == "fold", run_id in world.early
            lane = world.lane.accept(OpenRun(run_id, answer.body["seq"], folds, cancelled=early))
        except (LaneClosing, DuplicateRun):
            return []
        return [replace(world, lane=lane, newest_seq=answer.body["seq"])]

    return in_session(step)


def refused(status: int, code: str) -> Step:
    """Nothing happens, and the answer says why."""
    return lambda world, answer: [world] if (answer.status, answer.body.get("code")) == (status, code) else []


def _covers(world: World, answer: Answer, ruling: CancelRuling) -> Iterable[World]:
    seen = [(covered["run_id"], covered["state_found"]) for covered in answer.body["covered"]]
    if answer.status != 200 or seen != [(run.run_id, run.phase.value) for run in ruling.covered]:
        return []
    return [world.after(ruling.lane, ruling.decisions)] if answer.body["mark"] == ruling.lane.mark else []


def _cancel(world: World, answer: Answer) -> Iterable[World]:
    """The mark is the newest seq that was given out, also for a prompt that was refused in the end."""
    mark = answer.body["mark"]
    world = replace(world, newest_seq=max(mark, world.newest_seq))
    return _covers(world, answer, world.lane.cancel(mark)) if mark == world.newest_seq else []


cancel = in_session(_cancel)
clear = in_session(lambda world, answer: _covers(world, answer, world.lane.clear_queue()))


def cancel_run(run_id: str) -> Step:
    def step(world: World, answer: Answer) -> Iterable[World]:
        if world.lane.find(run_id):
            return _covers(world, answer, world.lane.cancel_run(run_id))
        if world.is_ended(run_id):
            return [world] if answer.body["covered"] == [] else []
        if answer.body["covered"] != [{"run_id": run_id, "state_found": "unknown"}]:
            return []
        return [replace(world, early=world.early | {run_id})]

    return step


def change(run_id: str, *, drops: bool) -> Step:
    """Edit or drop one prompt: only while it waits. An edit waits until the run is recorded."""

    def step(world: World, answer: Answer) -> Iterable[World]:
        if not world.state_of(run_id):
            return refused(404, "run_not_found")(world, answer)
        if not drops and not world.has_entered(run_id):
            return []
        try:
            world.lane.check_editable(run_id)
        except TooLate:
            return refused(409, "too_late")(world, answer)
        if answer.status != 200:
            return []
        return _covers(world, answer, world.lane.remove(run_id)) if drops else [world]

    return in_session(step)


def delete(world: World, answer: Answer) -> Iterable[World]:
    if answer.status != 200:
        return []
    ruling = world.lane.close(world.newest_seq)
    return [replace(world.after(ruling.lane, ruling.decisions), deleted=True)]


def is_busy(world: World, answer: Answer) -> Iterable[World]:
    return [world] if answer.status == 200 and answer.body["is_busy"] == bool(world.lane.runs) else []


def count(world: World, answer: Answer) -> Iterable[World]:
    return [world] if answer.body == len(world.lane.queued) else []


def look(run_id: str) -> Step:
    """A run's record. Its end is visible when it is written, which is a little after it was decided."""

    def step(world: World, answer: Answer) -> Iterable[World]:
        if answer.status != 200:
            return [] if world.state_of(run_id) else refused(404, "run_not_found")(world, answer)
        if world.is_ended(run_id) and "ended_at" not in answer.body:
            return [world]
        is_same = world.state_of(run_id) == answer.body["state"]
        return [world] if is_same and world.is_ended(run_id) == ("ended_at" in answer.body) else []

    return step
