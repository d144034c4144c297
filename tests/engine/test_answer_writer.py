"""How a growing answer is told: by deltas, by whole messages at once, or by one for several parts after a moment."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from covey.engine.recorder import Batch
from covey.engine.turns import answer_writer
from covey.engine.turns.answer_writer import AnswerWriter
from covey.engine.world import World
from covey.lifecycle.reply import TextDelta, ToolCallBegun, ToolInputDelta
from covey.protocol.events import MessageDelta
from covey.store.base import AppendText, PutMessage
from tests.lifecycle.test_reply import new_reply

pytestmark = pytest.mark.anyio

CHEAP, DEAR = 10**9, -(10**9)
"""For WHOLE_FREE: every whole message may be sent at once, or none."""


class Notes:
    """In the place of the recorder: what it was given, in short."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def grow(self, delta: MessageDelta) -> None:
        self.seen.append(f"{delta.part}+{delta.delta}")

    def write(self, batch: Batch, *, durable: bool = True) -> None:
        assert not durable, "nobody was promised that growth survives a power cut"
        for write in batch.writes:
            match write:
                case PutMessage(message):
                    self.seen.append(f"whole {len(message.parts)}")
                case AppendText(pieces=pieces):
                    self.seen.append("save " + " ".join(f"{piece.part}+{piece.text}" for piece in pieces))


class Writing:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._patch = monkeypatch
        self._notes = Notes()
        recorder: Any = self._notes
        self.writer = AnswerWriter(new_reply(), recorder, World())
        monkeypatch.setattr(answer_writer, "CHECKPOINT_S", 0.0)
        monkeypatch.setattr(answer_writer, "WHOLE_PER_S", 1e12)

    def wholes_are(self, free: int) -> None:
        self._patch.setattr(answer_writer, "WHOLE_FREE", free)

    def text(self, text: str) -> None:
        self.writer.take(TextDelta(text))

    def call(self, index: int = 0) -> None:
        self.writer.take(ToolCallBegun(index, f"c{index}", "work"))

    def told(self) -> list[str]:
        """What was told since the last time."""
        told, self._notes.seen = self._notes.seen, []
        return told


@pytest.fixture
def writing(monkeypatch: pytest.MonkeyPatch) -> Writing:
    return Writing(monkeypatch)


async def timers() -> None:
    """Whatever is due has been done."""
    for _ in range(3):
        await asyncio.sleep(0)


async def test_text_is_told_at_once_and_saved_later(writing: Writing) -> None:
    writing.wholes_are(CHEAP)
    writing.text("a")
    writing.text("b")
    assert writing.told() == ["0+a", "0+b"]
    await timers()
    assert writing.told() == ["save 0+ab"]


async def test_a_call_is_told_by_the_whole_message_and_grows_by_deltas(writing: Writing) -> None:
    writing.wholes_are(CHEAP)
    writing.text("a")
    writing.call()
    writing.writer.take(ToolInputDelta(0, "{}"))
    assert writing.told() == ["0+a", "whole 2", "1+{}"]
    await timers()
    assert writing.told() == ["save 1+{}"], "the rest was written with the whole message"


async def test_parts_that_wait_are_told_together_while_others_grow(writing: Writing) -> None:
    writing.wholes_are(CHEAP)
    writing.text("a")
    writing.call(0)
    writing.told()
    writing.wholes_are(DEAR)
    writing.call(1)
    writing.writer.take(ToolInputDelta(1, "{}"))
    writing.writer.take(ToolInputDelta(0, "{}"))
    writing.text("b")
    assert writing.told() == ["1+{}"]
    await timers()
    assert writing.told() == ["save 1+{}", "whole 4"]
    writing.text("c")
    assert writing.told() == ["3+c"], "they are known now"


async def test_text_behind_a_part_that_waits_is_told_with_it(writing: Writing) -> None:
    """Whoever gets a delta must know the part, and all parts before it."""
    writing.wholes_are(DEAR)
    writing.call(0)
    writing.wholes_are(CHEAP)
    writing.text("a")
    assert writing.told() == ["whole 2"]


async def test_text_that_waits_is_told_with_what_follows(writing: Writing) -> None:
    writing.wholes_are(DEAR)
    writing.text("a")
    writing.wholes_are(CHEAP)
    writing.text("b")
    assert writing.told() == ["whole 1"]
    writing.text("c")
    assert writing.told() == ["0+c"]


async def test_the_input_of_a_call_that_waits_is_told_with_it(writing: Writing) -> None:
    writing.wholes_are(DEAR)
    writing.call()
    writing.wholes_are(CHEAP)
    writing.writer.take(ToolInputDelta(0, "{}"))
    assert writing.told() == ["whole 1"]


async def test_what_was_told_after_all_is_not_told_again(writing: Writing) -> None:
    writing.wholes_are(DEAR)
    writing.call(0)
    writing.wholes_are(CHEAP)
    writing.call(1)
    assert writing.told() == ["whole 2"]
    await timers()
    assert writing.told() == []


async def test_a_part_that_waits_is_not_told_once_the_answer_was_written(writing: Writing) -> None:
    writing.wholes_are(DEAR)
    writing.call(0)
    writing.writer.written()
    await timers()
    assert writing.told() == []


async def test_nothing_is_written_after_the_end(writing: Writing) -> None:
    writing.wholes_are(CHEAP)
    writing.text("a")
    writing.wholes_are(DEAR)
    writing.call(0)
    writing.writer.close()
    writing.told()
    await timers()
    assert writing.told() == []
