"""What an answer with many parts costs, and what becomes of one without end: bytes, rows and facts are counted."""

from __future__ import annotations

import itertools
from collections.abc import AsyncGenerator, Iterable
from pathlib import Path

import msgspec
import pytest

from covey.client.transcript import Transcript
from covey.engine.recorder import Batch
from covey.engine.turns import answer_writer
from covey.lifecycle import history
from covey.lifecycle.reply import (
    MAX_CALLS,
    MAX_CHARACTERS,
    MAX_PARTS,
    ModelFact,
    ReasoningDelta,
    TextDelta,
    ToolCallBegun,
    ToolInputDelta,
)
from covey.models.base import ModelRequest
from covey.protocol.endings import CallEnd
from covey.protocol.events import Event, MessageDelta, decode_event
from covey.protocol.messages import Message
from covey.protocol.sse import FrameDecoder
from covey.store.base import AppendText, PutMessage
from tests.support.engine import Engine, Gate, Model, Word, call, config, running, within

pytestmark = pytest.mark.anyio

NEVER_S = 3600.0


@pytest.fixture
def no_timers(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is told then depends on what came alone, and not on when."""
    monkeypatch.setattr(answer_writer, "CHECKPOINT_S", NEVER_S)


class Endless(Model):
    """Its first answer never ends. Counts what was taken of it."""

    def __init__(self, facts: Iterable[ModelFact]) -> None:
        super().__init__()
        self._facts = facts
        self.taken = 0

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelFact, None]:
        self.open_streams += 1
        try:
            for fact in self._facts:
                self.taken += 1
                yield fact
        finally:
            self.open_streams -= 1


def many_calls(count: int, size: int = 0) -> list[Word]:
    return [
        word for number in range(count) for word in call("work", f"c{number}", number, subject=f"{number} {'x' * size}")
    ]


def written(engine: Engine) -> int:
    """Bytes of all messages and events that were handed to the disk."""
    total = 0
    for change in itertools.chain.from_iterable(engine.disk.groups):
        total += sum(map(len, change.encoded))
        for write in change.writes:
            if isinstance(write, PutMessage | AppendText):
                total += len(msgspec.json.encode(write))
    return total


async def cost_of(directory: Path, words: Iterable[Word]) -> tuple[int, int]:
    """Bytes written, and bytes sent to a client with deltas, for a run with this answer."""
    async with running(directory) as engine:
        reader = engine.workspace._parts.feed.subscribe(deltas=True)
        engine.model.answer(*words)
        await engine.post("a", "a")
        assert (await engine.ended("a")).state == "completed"
        sent = 0
        while data := reader.take():
            sent += len(data)
        return written(engine), sent


# ── many calls ──


@pytest.mark.parametrize("size", [300, 3_000])
async def test_what_is_written_and_sent_grows_with_the_calls_not_with_their_square(
    tmp_path: Path, no_timers: None, size: int
) -> None:
    costs = [await cost_of(tmp_path, many_calls(count, size)) for count in (32, 64, 128)]
    for (written_less, sent_less), (written_more, sent_more) in itertools.pairwise(costs):
        assert written_more < 2.2 * written_less
        assert sent_more < 2.2 * sent_less


async def test_what_is_sent_grows_with_the_parts_not_with_their_square(tmp_path: Path, no_timers: None) -> None:
    def words(count: int) -> list[Word]:
        return [fact for _ in range(count) for fact in (ReasoningDelta("hm " * 20), TextDelta("so " * 20))]

    costs = [await cost_of(tmp_path, words(count)) for count in (100, 200, 400)]
    for (written_less, sent_less), (written_more, sent_more) in itertools.pairwise(costs):
        assert written_more < 2.2 * written_less
        assert sent_more < 2.2 * sent_less


async def test_each_call_of_an_ordinary_answer_is_told_at_once(tmp_path: Path, no_timers: None) -> None:
    async with running(tmp_path) as engine:
        reader = engine.workspace._parts.feed.subscribe(deltas=True)
        engine.model.answer(ReasoningDelta("hm"), "I look. ", *many_calls(6, 400))
        await engine.post("a", "a")
        await engine.ended("a")
        wholes = [m for m in engine.of_type(Message) if m.role == "assistant" and m.run_id == "a"]
        assert [len(m.tool_calls) for m in wholes if m.tool_calls] == [1, 2, 3, 4, 5, 6, 6]
        deltas = [e.payload for e in _events(reader.take()) if isinstance(e.payload, MessageDelta)]
        assert [delta.kind for delta in deltas[:2]] == ["reasoning", "text"]
        assert [delta.kind for delta in deltas].count("tool_input") == 6


async def test_calls_behind_a_long_text_are_told_at_once(tmp_path: Path, no_timers: None) -> None:
    """A whole message costs more then, but the answer is longer too."""
    async with running(tmp_path) as engine:
        engine.model.answer("x" * 500_000, *many_calls(3))
        await engine.post("a", "a")
        await engine.ended("a")
        wholes = [m for m in engine.of_type(Message) if m.role == "assistant" and m.tool_calls]
        assert [len(m.tool_calls) for m in wholes] == [1, 2, 3, 3]


async def test_20_000_calls_are_128_calls_with_one_result_each(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        engine.model.answer(*many_calls(20_000))
        await engine.post("a", "a")
        run = await engine.ended("a")
        assert (run.state, len(engine.tool.calls)) == ("completed", MAX_CALLS)
        messages = engine.messages()
        calls = [tool_call.id for message in messages for tool_call in message.tool_calls]
        results = [result for message in messages for result in message.tool_results]
        assert calls == [result.tool_call_id for result in results] == [f"c{n}" for n in range(MAX_CALLS)]
        note = history.dropped_calls(20_000 - MAX_CALLS)
        assert [result.content for result in results] == ["worked"] * (MAX_CALLS - 1) + [f"worked\n\n{note}"]
        assert note in engine.model.requests[1].messages[-1].tool_results[-1].content, "the model is told"
        assert list(engine.terminals()) == ["a"]
        assert written(engine) < 1_000_000


async def test_no_note_is_made_where_no_call_was_dropped(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        engine.model.answer(*many_calls(MAX_CALLS))
        await engine.post("a", "a")
        await engine.ended("a")
        results = [result.content for message in engine.messages() for result in message.tool_results]
        assert results == ["worked"] * MAX_CALLS


# ── parts that are told later ──


@pytest.fixture
def all_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """No whole message is cheap enough to be sent at once."""
    monkeypatch.setattr(answer_writer, "WHOLE_FREE", -1)
    monkeypatch.setattr(answer_writer, "WHOLE_SHARE", 0)


async def test_a_part_that_waits_is_told_after_a_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, all_waits: None
) -> None:
    monkeypatch.setattr(answer_writer, "CHECKPOINT_S", 0.0)
    async with running(tmp_path) as engine:
        gate = Gate()
        engine.model.answer("I look. ", *many_calls(3), gate)
        await engine.post("a", "a")
        await gate.reached()
        await engine.until(lambda: any(len(m.tool_calls) == 3 for m in engine.of_type(Message)))
        gate.open()
        assert (await engine.ended("a")).state == "completed"


async def test_a_long_message_waits_longer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, all_waits: None) -> None:
    """Nobody waits for it here: it is written with the end of the answer."""
    monkeypatch.setattr(answer_writer, "CHECKPOINT_S", 0.0)
    monkeypatch.setattr(answer_writer, "WHOLE_PER_S", 1 / NEVER_S)
    async with running(tmp_path) as engine:
        engine.model.answer("I look. ", *many_calls(3))
        await engine.post("a", "a")
        assert (await engine.ended("a")).state == "completed"
        wholes = [m for m in engine.of_type(Message) if m.tool_calls]
        assert [(len(m.tool_calls), bool(m.finish)) for m in wholes] == [(3, True)]


async def test_a_crash_while_parts_wait_leaves_a_message_that_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Text of parts that the stored message does not have yet is saved with that message, not before it."""
    monkeypatch.setattr(answer_writer, "CHECKPOINT_S", 0.0)
    monkeypatch.setattr(answer_writer, "WHOLE_PER_S", 1 / NEVER_S)
    monkeypatch.setattr(answer_writer, "WHOLE_FREE", 150)
    monkeypatch.setattr(answer_writer, "WHOLE_SHARE", 0)
    async with running(tmp_path) as engine:
        gate = Gate()
        engine.model.answer("I look. ", *many_calls(3), "And ", ToolInputDelta(0, " "), gate)
        await engine.post("a", "a")
        await gate.reached()
        await engine.until(lambda: any(m.tool_calls for m in engine.of_type(Message)))
        for _ in range(3):
            await within(engine.workspace._parts.recorder.write(Batch()))
        stored = engine.disk.copy().messages("w", engine.session_id, "", 0)[-1]
        assert [tool_call.id for tool_call in stored.tool_calls] == ["c0"]
        assert (stored.text, len(stored.parts)) == ("I look. ", 2)
        gate.open()
        await engine.ended("a")


@pytest.mark.parametrize("free", [0, 100, 1_000, 10_000, 100_000])
async def test_a_client_with_deltas_knows_the_whole_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_timers: None, free: int
) -> None:
    """However many parts are told together, every delta belongs to a part that was told before."""
    monkeypatch.setattr(answer_writer, "WHOLE_FREE", free)
    async with running(tmp_path) as engine:
        reader = engine.workspace._parts.feed.subscribe(deltas=True)
        words: list[Word] = []
        for number in range(60):
            words += [ReasoningDelta("hm "), ReasoningDelta("yes"), f"look {number} ", "now "]
            words += [ToolCallBegun(number, f"c{number}", "work"), ToolInputDelta(number, '{"subject": ')]
            words += [ToolInputDelta(number, f'"{number}"'), *([ToolInputDelta(number - 1, " }")] if number else [])]
        engine.model.answer(*words, ToolInputDelta(59, "}"))
        await engine.post("a", "a")
        assert (await engine.ended("a")).state == "completed"
        transcript = Transcript()
        while data := reader.take():
            for event in _events(data):
                change = transcript.apply(event)
                assert change is None or change.kind != "hole", event
        assert [message.parts for message in transcript] == [message.parts for message in engine.messages()]
        assert len(engine.tool.calls) == 60


# ── an answer without end ──


def _thoughts_and_words() -> Iterable[ModelFact]:
    return itertools.cycle((ReasoningDelta("hm "), TextDelta("so ")))


def _input() -> Iterable[ModelFact]:
    return itertools.chain((ToolCallBegun(0, "c0", "work"),), itertools.repeat(ToolInputDelta(0, "x" * 1_000)))


def _calls() -> Iterable[ModelFact]:
    return (ToolCallBegun(number, f"c{number}", "work") for number in itertools.count())


@pytest.mark.parametrize(
    ("facts", "most_taken", "error"),
    [
        (itertools.repeat(TextDelta("x" * 1_000)), MAX_CHARACTERS // 1_000 + 1, "8,388,608 characters"),
        (itertools.repeat(ReasoningDelta("x" * 1_000)), MAX_CHARACTERS // 1_000 + 1, "8,388,608 characters"),
        (itertools.repeat(ReasoningDelta("", "x" * 1_000)), MAX_CHARACTERS // 1_000 + 1, "8,388,608 characters"),
        (_input(), MAX_CHARACTERS // 1_000 + 2, "8,388,608 characters"),
        (_calls(), MAX_CHARACTERS // 64, "8,388,608 characters"),
        (_thoughts_and_words(), MAX_PARTS + 1, "4,096 parts"),
    ],
    ids=["text", "reasoning", "signatures", "input", "calls", "parts"],
)
async def test_an_answer_without_end_is_cut_off_and_its_run_fails(
    tmp_path: Path, facts: Iterable[ModelFact], most_taken: int, error: str
) -> None:
    model = Endless(facts)
    async with running(tmp_path, model=model, settings=config(steps=1)) as engine:
        await engine.post("a", "a")
        run = await engine.ended("a")
        assert run.state == "failed"
        assert run.error == (
            f"test: the answer was cut off at {error}. "
            "No model should say that much at once: ask for less in one go, or choose another model."
        )
        assert model.taken <= most_taken
        assert model.open_streams == 0, "the stream is closed before the run has ended"
        answer = next(message for message in engine.messages() if message.role == "assistant")
        assert answer.finish is not None and (answer.finish.reason, answer.finish.details) == ("error", run.error)
        assert len(msgspec.json.encode(answer)) < MAX_CHARACTERS * 1.2
        assert engine.tool.calls == []
        assert written(engine) < 8 * MAX_CHARACTERS


async def test_what_came_before_the_cut_is_kept(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        engine.model.answer("first ", *call(), "x" * MAX_CHARACTERS, "never")
        await engine.post("a", "a")
        assert (await engine.ended("a")).state == "failed"
        answer, result = engine.messages()[-2:]
        assert answer.text.startswith("first xxx") and MAX_CHARACTERS - 1_000 < len(answer.text) < MAX_CHARACTERS
        assert [found.content for found in result.tool_results] == [CallEnd.NOT_BEGUN.words]


def _events(data: bytes) -> list[Event]:
    frames = FrameDecoder().feed(data)
    return [event for frame in frames if (event := decode_event(frame.data.encode()))]
