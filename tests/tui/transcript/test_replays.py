"""Recorded streams, looked at while they come, cut and resized at random, end as a fresh render does (row 6)."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from covey.client.view.view import View
from covey.lines.widths import width
from tests.tui.transcript.support import Screen
from tests.vectors.playing import Player
from tests.vectors.vector import decode_input, load_vector, vectors

NOW = 1_794_855_900.0


@pytest.mark.parametrize("path", vectors(), ids=lambda path: path.stem)
def test_row_06_a_replay_with_resizes_ends_as_a_fresh_render(path: Path) -> None:
    vector, chance = load_vector(path), random.Random(path.stem)
    view = View()
    screen = Screen(view)
    screen.now = NOW
    for value in vector.inputs:
        if fed := decode_input(value):
            view.apply(fed)
        if chance.random() < 0.5:
            continue
        if chance.random() < 0.3:
            screen.columns, screen.height = chance.randint(20, 200), chance.randint(2, 60)
        if chance.random() < 0.2:
            screen.transcript.scroll(chance.randint(-20, 20))
        assert all(width(row.text) <= screen.columns for row in screen.rows())
    same_as_fresh(screen, view)


@pytest.mark.parametrize("path", vectors()[::7], ids=lambda path: path.stem)
@pytest.mark.parametrize("gap", [False, True])
def test_row_06_and_so_does_one_whose_connection_was_cut(path: Path, gap: bool) -> None:
    vector, chance = load_vector(path), random.Random(path.stem)
    if vector.name in ("gap", "broken_stream"):
        pytest.skip("it cuts the stream itself")
    first, end = sorted((chance.randrange(len(vector.inputs)), chance.randrange(len(vector.inputs))))
    player = Player(vector)
    screen = Screen(player.view)
    screen.now = NOW
    player.play(0, first)
    screen.rows()
    player.cut(first, end, gap=gap)
    screen.rows()
    player.play(end, len(vector.inputs))
    player.finish()
    same_as_fresh(screen, player.view)


def same_as_fresh(screen: Screen, view: View) -> None:
    fresh = Screen(view, screen.columns, screen.height)
    fresh.now = screen.now
    screen.transcript.to_end()
    assert screen.rows() == fresh.rows()
    assert screen.all_rows() == fresh.all_rows()
