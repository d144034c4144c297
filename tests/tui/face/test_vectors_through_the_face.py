"""The shared vectors through the face, with random keys in between: it never fails, never shows what is not there."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from covey.client.view.view import View
from covey.lines.widths import width
from covey.tui.face import answering, looks
from covey.tui.face.effects import AnswerBatch, AnswerPermission, Cancel
from covey.tui.face.face import Face
from covey.tui.face.facts import Looked
from covey.tui.face.keys import DEFAULT
from covey.tui.face.state import FaceState
from covey.tui.inputs import Key, Paste, Resize
from tests.vectors.vector import decode_input, load_vector, vectors

NOW = 1_794_855_900.0
KEYS = sorted({key for binding in DEFAULT for key in binding.keys})
SIZES = [(40, 10), (60, 20), (100, 30), (200, 60)]


@pytest.mark.parametrize("path", vectors(), ids=lambda path: path.stem)
def test_a_replay_with_random_keys_shows_the_view_and_answers_only_what_is_asked(path: Path) -> None:
    vector, chance = load_vector(path), random.Random(path.stem)
    face = Face(FaceState(width=100, height=30), client_id="me")
    face.view = view = View()
    now = NOW
    for value in vector.inputs:
        if fed := decode_input(value):
            view.apply(fed)
        now += chance.choice((0.01, 0.5, 2.0))
        face.feed(Looked(), now)
        for _ in range(chance.randint(0, 3)):
            before = set(view.asks.open)
            name = chance.choice(KEYS)
            for effect in face.feed(Key(name, name if len(name) == 1 else ""), now):
                if isinstance(effect, AnswerPermission | AnswerBatch):
                    assert effect.ask_id in before
                if isinstance(effect, Cancel):
                    assert effect.session_id == view.current
        if chance.random() < 0.1:
            face.feed(Paste("pasted\ntext"), now)
        if chance.random() < 0.1:
            face.feed(Resize(*chance.choice(SIZES)), now)
        if chance.random() < 0.7:
            continue
        frame = face.frame(now)
        assert len(frame.rows) == face.state.height
        assert all(width(row.text) <= face.state.width for row in frame.rows)
    face.feed(Looked(), now)
    ask = answering.shown(face.state, view)
    assert (ask is None) == (not looks.asks_here(view))
    assert face.state.session_id == view.current
    if not looks.is_busy(view) and view.link.state == "connected":
        assert not any(sign in row.text for row in face.frame(now + 60).rows[:1] for sign in "◐◓◑◒")
