"""What a turn costs follows from what the model sees and what the turn adds, not from how long the session is."""

from __future__ import annotations

from pathlib import Path

import pytest

from covey.lifecycle import history
from covey.protocol.messages import Message
from tests.engine.test_summary import with_window
from tests.support.engine import Engine, call, running

pytestmark = pytest.mark.anyio


def reads_of(engine: Engine) -> list[int]:
    """How many messages each turn from now on reads."""
    parts, counts = engine.workspace._parts.turns, list[int]()
    works = parts.read_messages

    async def read_messages(session_id: str, since: str) -> list[Message]:
        found = await works(session_id, since)
        counts.append(len(found))
        return found

    object.__setattr__(parts, "read_messages", read_messages)
    return counts


async def say(engine: Engine, *run_ids: str) -> None:
    for run_id in run_ids:
        await engine.post(run_id, run_id)
        await engine.ended(run_id)


async def test_a_turn_after_a_summary_does_not_read_what_the_summary_stands_for(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        await say(engine, *"abcdefgh")
        receipt = await engine.workspace.runs.summarize(engine.session_id)
        await engine.ended(receipt.run_id)
        counts = reads_of(engine)
        await say(engine, "x", "y")
        assert counts == [2, 4]  # the summary and the prompt; and one turn more


async def test_a_turn_after_one_that_was_summarised_midway_reads_no_results_from_before(tmp_path: Path) -> None:
    async with running(tmp_path, settings=with_window(10_000)) as engine:
        for number in range(4):
            engine.model.answer(*call(call_id=f"c{number}", subject=str(number)))
        engine.model.answer("x" * 32_000, *call(call_id="long", subject="5"))
        engine.model.answer("So far.")
        engine.model.answer("Done.")
        await say(engine, "a")
        assert [message.text for message in engine.messages() if message.is_summary_message]
        counts = reads_of(engine)
        await say(engine, "b")
        assert len(engine.messages()) == 15
        assert counts == [5 + 3]  # five answers, which may tell how the turn ended; then summary, answer and prompt


async def test_each_message_of_a_turn_is_measured_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[str] = []
    works = history.estimated_tokens

    def counting(message: Message) -> int:
        measured.append(message.id)
        return works(message)

    monkeypatch.setattr(history, "estimated_tokens", counting)
    async with running(tmp_path) as engine:
        for number in range(20):
            engine.model.answer(*call(call_id=f"c{number}", subject=str(number)))
        engine.model.answer("Done.")
        await say(engine, "a")
        assert len(measured) == len(set(measured)) == 1 + 20 * 2
