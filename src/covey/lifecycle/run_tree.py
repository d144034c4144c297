"""The open runs of a lane in the order of their places, as a value. A run is found, changed and taken out in log(n)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from covey.lifecycle.decisions import OpenRun, Phase
from covey.lifecycle.int_tree import Leaf, Tree, drop, drop_all, get, put, select


class Trait:
    """What runs are looked for by, as bits. Plain numbers: an `IntFlag` costs more than the rest of a ruling."""

    ACCEPTED = 1
    QUEUED = 2
    ACTIVE = 4
    FOLDED = 8
    NOT_ENTERED = 16
    CANCELLED = 32
    """Entered, and covered by a cancel."""
    NEXT = 64
    """Entered, and not passed over: it may be the next to run."""
    JOINS = 128
    """Queued to be folded into the active turn."""
    PARKED = 256
    NOT_PARKED = 512

    WAITING = ACCEPTED | QUEUED
    """For their turn: what a bound on the queue counts."""
    ANY = PARKED | NOT_PARKED


_PHASES = {
    Phase.ACCEPTED: Trait.ACCEPTED,
    Phase.QUEUED: Trait.QUEUED,
    Phase.ACTIVE: Trait.ACTIVE,
    Phase.FOLDED: Trait.FOLDED,
}


def traits_of(run: OpenRun) -> int:
    traits = _PHASES[run.phase] | (Trait.PARKED if run.parked else Trait.NOT_PARKED)
    if not run.entered:
        return traits | Trait.NOT_ENTERED
    if run.cancelled:
        traits |= Trait.CANCELLED
    if not run.parked:
        traits |= Trait.NEXT
        if run.folds and run.phase is Phase.QUEUED:
            traits |= Trait.JOINS
    return traits


@dataclass(frozen=True, slots=True)
class RunTree:
    tree: Tree[OpenRun] = None
    """By place, and by seq where a crash has given two of them one place: only queued runs keep theirs."""
    keys: Tree[int] = field(default=None, compare=False)
    """In `tree`, by run id."""

    def __iter__(self) -> Iterator[OpenRun]:
        return self.select(Trait.ANY)

    def __bool__(self) -> bool:
        return self.tree is not None

    def find(self, run_id: str) -> OpenRun | None:
        key = get(self.keys, _number(run_id))
        return None if key is None else get(self.tree, key)

    def select(self, traits: int) -> Iterator[OpenRun]:
        """Those with one of these traits, in their order."""
        return select(self.tree, traits)

    def first(self, traits: int) -> OpenRun | None:
        return next(self.select(traits), None)

    @property
    def waiting(self) -> int:
        """How many wait for their turn."""
        return self.tree.counted if self.tree else 0

    @property
    def newest_seq(self) -> int:
        return self.tree.highest if self.tree else 0

    def put(self, *runs: OpenRun) -> RunTree:
        """With these runs, each in place of the one with its id; they may have changed places among each other."""
        tree, keys = self.tree, self.keys
        placed = [(run, _number(run.run_id), run.place << 64 | run.seq) for run in runs]
        for _, number, key in placed:
            before = get(keys, number)
            if before != key:
                tree = drop(tree, before) if tree and before is not None else tree
                keys = put(keys, Leaf(number, key))
        for run, _, key in placed:
            traits = traits_of(run)
            tree = put(tree, Leaf(key, run, traits, 1 if traits & Trait.WAITING else 0, run.seq))
        return RunTree(tree, keys)

    def drop(self, *run_ids: str) -> RunTree:
        """Without these runs, which are there."""
        keys, dropped = self.keys, list[int]()
        for run_id in run_ids:
            number = _number(run_id)
            key = get(keys, number)
            assert keys and key is not None, f"{run_id} is not open"
            dropped.append(key)
            keys = drop(keys, number)
        return RunTree(drop_all(self.tree, dropped), keys)


EMPTY = RunTree()


def _number(run_id: str) -> int:
    """A number for each id."""
    return int.from_bytes(b"\1" + run_id.encode("utf-8", "surrogatepass"), "big")
