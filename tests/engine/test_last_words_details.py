"""The last words of a turn, value by value: what is written and told for each of the ways in which it may end."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from covey.engine.recorder import Batch
from covey.engine.turns.last_words import INTERRUPTED, LastWords, close_turn, cut_off, drop, end_folded
from covey.engine.world import World
from covey.lifecycle import history
from covey.lifecycle.decisions import Outcome
from covey.protocol.endings import CallEnd
from covey.protocol.events import AgentEvent, created, updated
from covey.protocol.messages import (
    Finish,
    FinishPart,
    FinishReason,
    Message,
    Part,
    Reasoning,
    ReasoningPart,
    Role,
    Text,
    TextPart,
    ToolCall,
    ToolCallPart,
    ToolResult,
    ToolResultPart,
)
from covey.protocol.runs import Run, RunComplete, RunState, Usage
from covey.store.base import PutMessage

NOW = 1_800_000_000
USAGE = Usage(prompt_tokens=3, completion_tokens=2, cost=0.5, cached_tokens=1)
CALLS = (ToolCall(id="c1", name="bash", input="{}", finished=True),)


def world() -> World:
    return World(lambda: NOW + 0.5)


def run(**more: Any) -> Run:
    """One that is under way."""
    fields = {"state": "active", "waiting_on": "bash", "last_progress_at": 8.0, **more}
    return Run(run_id="r", session_id="s", seq=1, mode="fold", prompt="p", accepted_at=1.0, started_at=2.0, **fields)


def message(message_id: str, role: Role, *parts: Part, **more: Any) -> Message:
    return Message(
        id=message_id, role=role, session_id="s", parts=parts, model="m", provider="p", created_at=5, updated_at=6,
        run_id="r", **more,
    )  # fmt: skip


def call(call_id: str, *, finished: bool = True) -> ToolCallPart:
    return ToolCallPart(data=ToolCall(id=call_id, name="bash", input="{}", finished=finished))


def text(said: str) -> TextPart:
    return TextPart(data=Text(text=said))


def thought(started_at: int | None, finished_at: int | None = None) -> ReasoningPart:
    data = Reasoning(thinking="hm", signature="s", started_at=started_at, finished_at=finished_at)
    return ReasoningPart(data=data)


def finish(reason: FinishReason, time: int = 6, **more: Any) -> FinishPart:
    return FinishPart(data=Finish(reason=reason, time=time, **more))


ANSWER = message("a", "assistant", text("so "), call("c1", finished=False), call("c0"), text("far"), finish("tool_use"))
ENDS: dict[Outcome, tuple[FinishPart, str]] = {
    Outcome.CANCELLED: (finish("canceled", NOW, message="Stopped by the user"), CallEnd.CANCELLED.words),
    Outcome.FAILED: (finish("error", NOW, message="The run failed", details="oh"), CallEnd.RUN_FAILED.words),
    Outcome.INTERRUPTED: (
        finish("error", NOW, message="The run was interrupted", details="oh"),
        CallEnd.INTERRUPTED.words,
    ),
}
"""How the answer is finished, and what an open call is told."""


def ending(outcome: Outcome, **more: Any) -> LastWords:
    error = "oh" if outcome in (Outcome.FAILED, Outcome.INTERRUPTED) else ""
    return LastWords(run(), outcome, error, usage=USAGE, session_title="t", **more)


def closing(call_id: str, why: str) -> tuple[ToolResultPart, ...]:
    found = ToolResult(tool_call_id=call_id, name="bash", content=why, metadata="", is_error=True)
    return (ToolResultPart(data=found),)


def messages(batch: Batch) -> list[Message]:
    return [write.message for write in batch.writes if isinstance(write, PutMessage)]


@pytest.mark.parametrize("outcome", list(ENDS))
def test_an_answer_that_was_cut_short_says_how_and_its_calls_get_results(outcome: Outcome) -> None:
    batch, (end, why) = Batch(), ENDS[outcome]
    ended, terminal = close_turn(ending(outcome, answer=ANSWER, open_calls=CALLS), batch, world())
    answer, result = messages(batch)
    parts = (text("so "), call("c1"), call("c0"), text("far"), end)
    assert answer == structs.replace(ANSWER, parts=parts, updated_at=NOW)
    assert (result.role, result.run_id, result.parts) == ("tool", "r", closing("c1", why))
    assert batch.events[:2] == [updated(answer), created(result)]
    assert ended.text == terminal.text == "so far"


def test_an_answer_says_that_a_shutdown_stopped_it() -> None:
    batch = Batch()
    close_turn(LastWords(run(cancelled_by="shutdown"), Outcome.CANCELLED, answer=ANSWER), batch, world())
    (answer,) = messages(batch)
    assert answer.parts[-1] == finish("canceled", NOW, message="Stopped by a shutdown")


@pytest.mark.parametrize(
    ("outcome", "until"), [(Outcome.CANCELLED, NOW), (Outcome.FAILED, NOW), (Outcome.INTERRUPTED, None)]
)
def test_a_thought_that_was_cut_short_ends_with_the_answer(outcome: Outcome, until: int | None) -> None:
    """Unless a crash ended it: nobody saw when."""
    batch = Batch()
    answer = message("a", "assistant", thought(3, 4), thought(5), thought(None), text("so "))
    close_turn(ending(outcome, answer=answer), batch, world())
    (closed,) = messages(batch)
    assert closed.parts[:4] == (thought(3, 4), thought(5, until), thought(None), text("so "))


def test_an_answer_that_never_began_names_who_would_have_given_it() -> None:
    for outcome in ENDS:
        batch = Batch()
        close_turn(ending(outcome, model="m", provider="p"), batch, world())
        (answer,) = messages(batch)
        assert (answer.model, answer.provider) == ("m", "p")


def test_a_completed_answer_is_left_as_it_is() -> None:
    batch, whole = Batch(), message("a", "assistant", text("done"), finish("end_turn"))
    ended, terminal = close_turn(ending(Outcome.COMPLETED, answer=whole, open_calls=CALLS), batch, world())
    answer, result = messages(batch)
    assert answer == whole
    assert result.parts == closing("c1", CallEnd.RUN_FAILED.words)
    assert ended.text == terminal.text == "done"


def test_a_turn_without_an_answer_gets_one() -> None:
    for outcome, (end, _) in ENDS.items():
        batch = Batch()
        ended, terminal = close_turn(ending(outcome), batch, world())
        (answer,) = messages(batch)
        assert (answer.role, answer.run_id, answer.parts) == ("assistant", "r", (end,))
        assert batch.events[0] == created(answer)
        assert ended.message_id == terminal.message_id == answer.id
        assert (ended.text, terminal.text) == (None, None), "it said nothing"
    ended, terminal = close_turn(ending(Outcome.COMPLETED), Batch(), world())
    assert ended.text == terminal.text == "", "it was asked, and said nothing"


@pytest.mark.parametrize(
    ("outcome", "auth", "type_", "error"),
    [
        (Outcome.COMPLETED, False, "agent_finished", None),
        (Outcome.FAILED, False, "error", "oh"),
        (Outcome.FAILED, True, "re_authenticate", "oh"),
        (Outcome.CANCELLED, False, None, None),
        (Outcome.INTERRUPTED, False, None, None),
    ],
)
def test_people_are_told_of_an_end_and_of_a_failure(outcome: Outcome, auth: bool, type_: Any, error: Any) -> None:
    batch = Batch()
    close_turn(ending(outcome, auth=auth), batch, world())
    notices = [event for event in batch.events if isinstance(event.payload, AgentEvent)]
    told = AgentEvent(type=type_, session_id="s", run_id="r", session_title="t", error=error)
    assert notices == ([created(told)] if type_ else [])
    assert notices == batch.events[1:], "it comes after the messages"


def test_a_session_without_a_title_has_none_in_a_notice() -> None:
    for outcome in (Outcome.COMPLETED, Outcome.FAILED):
        batch = Batch()
        close_turn(LastWords(run(), outcome, "oh"), batch, world())
        notice = batch.events[-1].payload
        assert isinstance(notice, AgentEvent)
        assert notice.session_title is None


@pytest.mark.parametrize("outcome", list(Outcome))
def test_the_ended_run_and_its_terminal_event_agree(outcome: Outcome) -> None:
    ended, terminal = close_turn(ending(outcome, answer=ANSWER), Batch(), world())
    error = "oh" if outcome in (Outcome.FAILED, Outcome.INTERRUPTED) else None
    state: RunState = outcome.value
    told = {"message_id": "a", "text": "so far", "error": error, "ended_at": NOW + 0.5}
    assert ended == run(state=state, waiting_on=None, last_progress_at=None, **told)
    assert terminal == RunComplete(
        session_id="s",
        run_id="r",
        message_id="a",
        text="so far",
        error=error,
        cancelled=outcome is Outcome.CANCELLED,
        interrupted=outcome is Outcome.INTERRUPTED,
        usage=USAGE,
    )


# ── after a crash ──


def test_a_crash_leaves_the_last_answer_and_its_open_calls_to_close() -> None:
    first = message("a", "assistant", call("c0"), finish("tool_use"))
    summary = message("d", "assistant", finish("end_turn"), is_summary_message=True)
    found = cut_off(LastWords(run(), Outcome.INTERRUPTED), [message("u", "user"), first, ANSWER, summary])
    assert found == LastWords(
        run(), Outcome.INTERRUPTED, INTERRUPTED, answer=ANSWER, open_calls=history.open_calls([first, ANSWER])
    )
    assert [left.id for left in found.open_calls] == ["c0", "c1"]


def test_a_summary_that_a_crash_cut_off_is_finished_by_it() -> None:
    half = message("d", "assistant", text("we "), is_summary_message=True)
    assert cut_off(LastWords(run(), Outcome.INTERRUPTED), [ANSWER, half]).answer == half


def test_a_run_that_was_cancelled_before_the_crash_has_no_error() -> None:
    found = cut_off(LastWords(run(), Outcome.CANCELLED, "oh"), [message("u", "user")])
    assert found == LastWords(run(), Outcome.CANCELLED, open_calls=[])


# ── runs that never had a turn of their own ──


def test_a_run_that_never_began_leaves_only_its_end() -> None:
    ended, terminal = drop(run(state="queued"), world())
    assert ended == run(state="cancelled", ended_at=NOW + 0.5)
    assert terminal == RunComplete(session_id="s", run_id="r", message_id="", cancelled=True)


def test_a_folded_run_ends_as_its_host_did() -> None:
    host = RunComplete(session_id="s", run_id="h", message_id="a", text="x", error="oh", cancelled=True, usage=USAGE)
    ended, terminal = end_folded(run(state="folded"), host, world())
    told: dict[str, Any] = {"message_id": "a", "text": "x", "error": "oh", "folded_into": "h"}
    assert ended == run(state="folded", ended_at=NOW + 0.5, **told)
    assert terminal == RunComplete(session_id="s", run_id="r", cancelled=True, **told)


@pytest.mark.parametrize("host", ["h", None])
def test_a_folded_run_that_a_crash_parted_from_its_host_is_interrupted(host: str | None) -> None:
    ended, terminal = end_folded(run(state="folded", folded_into=host), None, world())
    told: dict[str, Any] = {"message_id": "", "error": INTERRUPTED, "folded_into": host or ""}
    assert ended == run(state="folded", ended_at=NOW + 0.5, **told)
    assert terminal == RunComplete(session_id="s", run_id="r", interrupted=True, **told)


def test_open_calls_end_as_their_run_does() -> None:
    assert {outcome: history.open_call_end(outcome.value) for outcome in Outcome} == {
        Outcome.CANCELLED: CallEnd.CANCELLED,
        Outcome.INTERRUPTED: CallEnd.INTERRUPTED,
        Outcome.FAILED: CallEnd.RUN_FAILED,
        Outcome.COMPLETED: CallEnd.RUN_FAILED,
    }
