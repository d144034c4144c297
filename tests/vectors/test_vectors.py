"""The view gives the recorded state for each recorded stream; also when the connection breaks, or answers are late."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from covey.client.view.view import View
from tests.vectors.playing import LINK, Player, state_of
from tests.vectors.record import SCENARIOS, record
from tests.vectors.vector import Vector, decode_input, load_vector, vectors

PATHS = vectors()
LOSSES = (0, 1, 4)
"""So many inputs happen while the connection is lost."""
FORGOTTEN_BY_A_GAP = ("closed_asks", "outputs")
OF_RUNS_FORGOTTEN_BY_A_GAP = ("retry", "key_refused")


def name_of(path: Path) -> str:
    return path.stem


def comparable(state: dict[str, Any], *forgotten: str, of_runs: tuple[str, ...] = ()) -> dict[str, Any]:
    """Without times of the connection, and what is forgotten."""
    link = {key: value for key, value in state["link"].items() if key not in ("since", "why")}
    runs = [{key: value for key, value in run.items() if key not in of_runs} for run in state["runs"]]
    kept = {key: value for key, value in state.items() if key not in forgotten}
    return kept | {"link": link, "runs": runs}


def can_be_cut(vector: Vector, first: int, end: int) -> bool:
    """It is connected there, and in between nothing happens whose order is not the stream's."""
    links = [value["input"] for value in vector.inputs[:first] if value["input"] in LINK]
    inside = [
        value
        for value in vector.inputs[first:end]
        if value["input"] in (*LINK, "session_opened") or value.get("event", {}).get("type") == "gap"
    ]
    return end <= len(vector.inputs) and links[-1:] == ["connected"] and not inside


def test_every_scenario_is_recorded_and_nothing_else_is() -> None:
    assert [path.stem for path in PATHS] == sorted(SCENARIOS)


@pytest.mark.parametrize("path", PATHS, ids=name_of)
def test_the_state_is_as_recorded(path: Path) -> None:
    vector = load_vector(path)
    view = View()
    commands: list[tuple[int, Any]] = []
    for index, value in enumerate(vector.inputs):
        fed = decode_input(value)
        if fed is not None:
            commands += [(index, msgspec.to_builtins(command)) for command in view.apply(fed).commands]
    assert commands == vector.commands
    assert state_of(view) == vector.expected


@pytest.mark.parametrize("path", PATHS, ids=name_of)
def test_a_stream_that_is_cut_anywhere_and_resumed_ends_in_the_same_state(path: Path) -> None:
    vector = load_vector(path)
    expected = comparable(vector.expected)
    for first in range(1, len(vector.inputs) + 1):
        for lost in LOSSES:
            if can_be_cut(vector, first, first + lost):
                player = Player(vector)
                player.play(0, first)
                player.cut(first, first + lost, gap=False)
                player.play(first + lost, len(vector.inputs))
                assert comparable(player.finish()) == expected, (first, lost)


@pytest.mark.parametrize("path", PATHS, ids=name_of)
def test_after_a_gap_anywhere_the_state_is_whole_again(path: Path) -> None:
    vector = load_vector(path)
    expected = comparable(vector.expected, *FORGOTTEN_BY_A_GAP, of_runs=OF_RUNS_FORGOTTEN_BY_A_GAP)
    for first in range(1, len(vector.inputs) + 1):
        if can_be_cut(vector, first, first + 2):
            player = Player(vector)
            player.play(0, first)
            player.cut(first, first + 2, gap=True)
            player.play(first + 2, len(vector.inputs))
            state = comparable(player.finish(), *FORGOTTEN_BY_A_GAP, of_runs=OF_RUNS_FORGOTTEN_BY_A_GAP)
            assert state == expected, first


@pytest.mark.parametrize("late", [0, 1, 2, 5, 20])
@pytest.mark.parametrize("path", PATHS, ids=name_of)
def test_an_answer_that_comes_late_takes_nothing_back(path: Path, late: int) -> None:
    vector = load_vector(path)
    player = Player(vector, late)
    player.play(0, len(vector.inputs))
    assert comparable(player.finish()) == comparable(vector.expected)


@pytest.mark.parametrize("name", ["cancel_before_entry", "gap", "permission_allowed_by_another_client"])
def test_a_server_of_today_is_seen_as_it_is(name: str, tmp_path: Path) -> None:
    """Recorded anew, which compares the state with what the server answers in the end."""
    vector = record(name, tmp_path / "place")
    assert vector.expected["runs"]
