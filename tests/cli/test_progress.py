"""What is shown on stderr while a run works."""

from __future__ import annotations

import io
import time

import msgspec
import pytest

from covey.cli.progress import AFTER_A_KILL, Progress
from covey.cli.screen import Screen
from covey.protocol.endings import CallEnd
from covey.protocol.events import AgentEvent, created, updated
from covey.protocol.messages import Finish, FinishPart, Message, ToolCall, ToolCallPart, ToolResult, ToolResultPart
from tests.client.values import some_run, text_message


def calling(tool: str, given: str, *, finished: bool = True, run_id: str = "r1") -> Message:
    call = ToolCall(id="c1", name=tool, input=given, finished=finished)
    return text_message("m1", parts=(ToolCallPart(data=call),), run_id=run_id)


@pytest.fixture
def stream() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def progress(stream: io.StringIO) -> Progress:
    return Progress(Screen(stream, quiet=False, shares_terminal=False), "r1")


def test_each_tool_call_is_reported_once(progress: Progress, stream: io.StringIO) -> None:
    progress.event(updated(calling("bash", '{"com', finished=False)))
    assert stream.getvalue() == ""
    for _ in range(2):
        progress.event(updated(calling("bash", '{"command":\n "ls"}')))
    assert stream.getvalue() == '· bash {"command": "ls"}\n'


def test_a_long_input_is_cut_short_and_cannot_drive_the_terminal(progress: Progress, stream: io.StringIO) -> None:
    progress.event(updated(calling("bash", "\x1b[2J" + "x" * 500)))
    assert len(stream.getvalue()) < 120
    assert "\x1b" not in stream.getvalue()


def test_other_runs_are_not_reported(progress: Progress, stream: io.StringIO) -> None:
    progress.event(updated(calling("bash", "{}", run_id="r0")))
    progress.event(created(AgentEvent(type="retry", session_id="s1", run_id="r0", error="busy", attempt=2)))
    progress.event(updated(some_run("r0")))
    assert stream.getvalue() == ""


def test_retries_and_a_lost_connection_are_reported(progress: Progress, stream: io.StringIO) -> None:
    progress.event(
        created(AgentEvent(type="retry", session_id="s1", run_id="r1", reason="The model is busy", attempt=2))
    )
    progress.connection(True, "")
    progress.connection(False, "the server closed it")
    assert stream.getvalue().splitlines() == [
        "The model is busy; trying again (attempt 2).",
        f"The connection was lost (the server closed it); reconnecting. {AFTER_A_KILL.format('r1')}",
    ]


def test_the_pause_before_another_attempt_and_warnings_are_reported(
    progress: Progress, stream: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time", lambda: 1000.0)
    for delay in (0.3, 4.2):
        retry = AgentEvent(type="retry", session_id="s1", run_id="r1", reason="busy", attempt=1, retry_at=1000 + delay)
        progress.event(created(retry))
    progress.event(created(AgentEvent(type="warning", session_id="s1", run_id="r1", reason="too small")))
    assert stream.getvalue().splitlines() == [
        "busy; trying again (attempt 1).",
        "busy; trying again in 4 s (attempt 1).",
        "covey: too small",
    ]


def test_what_failed_is_reported_and_a_cancel_is_not(progress: Progress, stream: io.StringIO) -> None:
    for content, is_error, metadata in (
        ("No such file.\nmore", True, ""),
        ("all is well", False, '{"exit_code": 0}'),
        ("3 failed", False, '{"exit_code": 1}'),
        (CallEnd.CANCELLED.words, True, ""),
    ):
        result = ToolResult(tool_call_id="c", name="bash", content=content, metadata=metadata, is_error=is_error)
        message = text_message("m1", parts=(ToolResultPart(data=result),), run_id="r1")
        progress.event(created(msgspec.structs.replace(message, role="tool")))
    assert stream.getvalue().splitlines() == ["✗ bash: No such file.", "  exit code 1"]


def test_an_answer_that_is_cut_off_is_marked(progress: Progress, stream: io.StringIO) -> None:
    finish = FinishPart(data=Finish(reason="max_tokens", time=1))
    progress.event(updated(text_message("m1", parts=(finish,), run_id="r1")))
    assert "the answer is cut off" in stream.getvalue()
