"""What a prompt costs in a long queue: as much as in a short one, but for a logarithm. Calls are counted, no times."""

from __future__ import annotations

import cProfile
from collections.abc import Callable
from functools import cache

from hypothesis import given
from hypothesis import strategies as st

from covey.lifecycle import int_tree
from covey.lifecycle.decisions import OpenRun, Outcome, Phase
from covey.lifecycle.int_tree import Leaf
from covey.lifecycle.run_tree import EMPTY, Trait
from covey.lifecycle.runs import Lane


def calls_of(work: Callable[[], object]) -> int:
    """How many functions are called, those in C too."""
    profile = cProfile.Profile()
    profile.runcall(work)
    return sum(entry.callcount for entry in profile.getstats())


@cache
def queue_of(count: int, *, folds: bool = False) -> Lane:
    """One active run, and the others queued."""
    return Lane.of(
        OpenRun(f"run-{seq}", seq, folds, Phase.ACTIVE if seq == 1 else Phase.QUEUED, entered=True, place=seq)
        for seq in range(1, count + 1)
    )


def times_ten(work: Callable[[Lane], object], *, folds: bool = False) -> float:
    """How many times as much it costs where ten times as many wait."""
    short, long = queue_of(1_000, folds=folds), queue_of(10_000, folds=folds)
    return calls_of(lambda: work(long)) / calls_of(lambda: work(short))


def test_a_prompt_costs_nearly_the_same_in_a_queue_ten_times_as_long() -> None:
    def post_and_cancel(lane: Lane) -> None:
        newest = lane.open.newest_seq + 1
        lane = lane.accept(OpenRun("more", newest, folds=False), limit=99_999).enter("more").lane
        lane.cancel_run("more")

    assert times_ten(post_and_cancel) <= 1.2


def test_a_cancel_of_ten_times_as_many_prompts_costs_ten_times_as_much() -> None:
    assert times_ten(lambda lane: lane.cancel(10_000)) <= 12


def test_the_end_of_a_turn_costs_nearly_the_same_in_a_queue_ten_times_as_long() -> None:
    assert times_ten(lambda lane: lane.finish("run-1", Outcome.COMPLETED)) <= 1.3


def test_folding_ten_times_as_many_prompts_costs_ten_times_as_much() -> None:
    assert times_ten(lambda lane: lane.begin_step("run-1"), folds=True) <= 13


# ── the tree ──

KEYS = st.integers(0, 80) | st.integers(0, 2**70)


@given(st.lists(st.tuples(KEYS, st.booleans(), st.integers(1, 7))))
def test_a_tree_is_a_sorted_map_that_knows_what_is_in_it(changes: list[tuple[int, bool, int]]) -> None:
    model: dict[int, int] = {}
    tree: int_tree.Tree[int] = None
    for key, is_dropped, traits in changes:
        if is_dropped and key in model and tree:
            del model[key]
            tree = int_tree.drop(tree, key)
        else:
            model[key] = traits
            tree = int_tree.put(tree, Leaf(key, traits, traits, traits & 1, key))
    assert [int_tree.get(tree, key) for key, *_ in changes] == [model.get(key) for key, *_ in changes]
    for wanted in (1, 2, 4, 7):
        assert list(int_tree.select(tree, wanted)) == [model[key] for key in sorted(model) if model[key] & wanted]
    half = [key for key in model if key % 2]
    assert list(int_tree.select(int_tree.drop_all(tree, half), 7)) == [
        model[key] for key in sorted(model) if not key % 2
    ]
    if tree:
        assert (tree.counted, tree.highest) == (sum(value & 1 for value in model.values()), max(model))
    again: int_tree.Tree[int] = None
    for key in sorted(model, reverse=True):
        again = int_tree.put(again, Leaf(key, model[key], model[key], model[key] & 1, key))
    assert again == tree and hash(again) == hash(tree)


def test_runs_that_changed_places_are_all_still_there() -> None:
    a, b = (OpenRun(name, seq, folds=True, phase=Phase.QUEUED, place=seq) for seq, name in enumerate("ab", 1))
    swapped = EMPTY.put(a, b).put(OpenRun("a", 1, True, Phase.QUEUED, place=2), OpenRun("b", 2, True, place=1))
    assert [run.run_id for run in swapped] == ["b", "a"]
    assert swapped.waiting == 2 and swapped.newest_seq == 2


def test_two_runs_to_which_a_crash_gave_one_place_stand_in_the_order_of_their_seqs() -> None:
    later, earlier = OpenRun("later", 2, True, Phase.ACTIVE, place=2), OpenRun("earlier", 1, True, place=2)
    runs = EMPTY.put(later, earlier)
    assert [run.run_id for run in runs] == ["earlier", "later"]
    assert runs.first(Trait.ACTIVE) == later
    assert not runs.drop("later").drop("earlier")
    assert not runs.drop("later", "earlier")
