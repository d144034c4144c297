"""What is shown on stderr while a run works."""

from __future__ import annotations

import io
import re
import time

import msgspec
import pytest

from covey.cli.progress import AFTER_A_KILL, Progress
from covey.cli.screen import Screen
from covey.client.view.run_news import AnswerGrew, RunNewsItem, ThoughtGrew
from covey.client.view.view import View
from covey.protocol.endings import CallEnd
from covey.protocol.events import (
    AgentEvent,
    Event,
    File,
    PermissionNotification,
    PermissionRequest,
    ToolOutputDelta,
    created,
    updated,
)
from covey.protocol.messages import (
    Finish,
    FinishPart,
    FinishReason,
    Message,
    Reasoning,
    ReasoningPart,
    Text,
    TextPart,
    ToolCall,
    ToolCallPart,
    ToolResult,
    ToolResultPart,
)
from covey.protocol.runs import RunOptions, Usage
from tests.client.values import run_complete, some_run, text_message


def calling(tool: str, given: str, *, finished: bool = True, run_id: str = "r1") -> Message:
    call = ToolCall(id="c1", name=tool, input=given, finished=finished)
    return text_message("m1", parts=(ToolCallPart(data=call),), run_id=run_id)


class Report:
    """Progress of one run, fed with events."""

    def __init__(self, *, is_plain: bool = False, is_verbose: bool = False, quiet: bool = False) -> None:
        self.stream = io.StringIO()
        self.view = View("s1", loads=False)
        screen = Screen(self.stream, quiet=quiet, shares_terminal=False, is_plain=is_plain)
        self.progress = Progress(screen, self.view, "r1", root="/project", is_verbose=is_verbose)

    def event(self, event: Event) -> None:
        self.progress.heard(event)
        change = self.view.event(event).change
        self.progress.update(self.progress.news.update(change))

    @property
    def lines(self) -> list[str]:
        return self.stream.getvalue().splitlines()


def ended(
    content: str, *, is_error: bool = False, metadata: str = "", call_id: str = "c1", name: str = "bash"
) -> Event:
    result = ToolResult(tool_call_id=call_id, name=name, content=content, metadata=metadata, is_error=is_error)
    return created(text_message(f"t-{call_id}", role="tool", parts=(ToolResultPart(data=result),), run_id="r1"))


def test_each_tool_call_and_its_result_are_reported_once() -> None:
    report = Report()
    report.event(updated(calling("bash", '{"com', finished=False)))
    assert report.lines == []
    for _ in range(2):
        report.event(updated(calling("bash", '{"command":\n "ls"}')))
    assert report.lines == ["· $ ls"]
    for _ in range(2):
        report.event(ended("a\n\nexit code 0", metadata='{"exit_code": 0}'))
    assert report.lines == ["· $ ls", "✓ $ ls", "  │ a"]


def test_quiet_says_nothing_of_calls_and_verbose_says_all() -> None:
    for quiet, is_verbose, count in ((True, False, 0), (False, True, 12)):
        report = Report(quiet=quiet, is_verbose=is_verbose)
        report.event(updated(calling("agent", '{"prompt": "x"}')))
        report.event(ended("\n".join("0123456789"), name="agent"))
        assert len(report.lines) == count


def test_for_a_screen_reader_each_event_is_one_line_of_words() -> None:
    report = Report(is_plain=True)
    report.event(updated(calling("bash", '{"command": "make"}')))
    report.event(ended("one\ntwo\n\nexit code 0", metadata='{"exit_code": 0}'))
    assert report.lines == ["next: $ make", "done: $ make: two"]


def test_a_long_input_is_cut_short_and_cannot_drive_the_terminal() -> None:
    report = Report()
    report.event(updated(calling("bash", '{"command": "\\u001b[2J' + "x" * 500 + '"}')))
    assert len(report.stream.getvalue()) < 170
    assert "\x1b" not in report.stream.getvalue()


def test_other_runs_are_not_reported() -> None:
    report = Report()
    report.event(updated(some_run("r0")))
    report.event(updated(calling("bash", "{}", run_id="r0")))
    report.event(created(AgentEvent(type="retry", session_id="s1", run_id="r0", error="busy", attempt=2)))
    assert report.lines == []


def test_retries_with_their_delay_and_a_lost_connection_are_reported() -> None:
    report = Report()
    report.event(updated(some_run("r1")))
    retry = AgentEvent(
        type="retry", session_id="s1", run_id="r1", reason="The model is busy", attempt=2, retry_at=time.time() + 4
    )
    report.event(created(retry))
    report.event(updated(some_run("r1")))
    report.progress.connection(True, "")
    report.progress.connection(False, "the server closed it")
    assert report.lines == [
        "The model is busy (attempt 2); trying again in 4 s.",
        f"The connection was lost (the server closed it); reconnecting. {AFTER_A_KILL.format('r1')}",
    ]


def test_the_pause_before_another_attempt_and_warnings_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 1000.0)
    report = Report()
    report.event(updated(some_run("r1")))
    for delay in (0.3, 4.2):
        retry = AgentEvent(type="retry", session_id="s1", run_id="r1", reason="busy", attempt=1, retry_at=1000 + delay)
        report.event(created(retry))
    for _ in range(2):
        report.event(created(AgentEvent(type="warning", session_id="s1", run_id="r1", reason="too small")))
    report.event(updated(some_run("r1")))
    assert report.lines == [
        "busy (attempt 1); trying again.",
        "busy (attempt 1); trying again in 4 s.",
        *["covey: too small"] * 2,
    ]


def test_what_failed_is_reported_with_the_line_that_says_why() -> None:
    report = Report()
    report.event(ended("No such file.\nmore", is_error=True))
    report.event(ended("3 failed\n\nexit code 1", metadata='{"exit_code": 1}', call_id="c2"))
    report.event(ended(CallEnd.CANCELLED.words, is_error=True, call_id="c3"))
    assert report.lines == [
        *("✗ $   failed", "  │ No such file."),
        *("✗ $   exit code 1", "  │ 3 failed"),
        "✗ $   cancelled",
    ]


def test_an_answer_that_is_cut_off_is_marked() -> None:
    report = Report()
    finish = FinishPart(data=Finish(reason="max_tokens", time=1))
    for _ in range(2):
        report.event(updated(text_message("m1", parts=(finish,), run_id="r1")))
    assert report.stream.getvalue().count("the answer is cut off") == 1


def test_a_summary_is_one_note_and_thoughts_are_for_whoever_wants_them() -> None:
    summary = msgspec.structs.replace(text_message("m1", "long ago", finish="end_turn"), is_summary_message=True)
    thought = ReasoningPart(data=Reasoning(thinking="Hm.", signature=""))
    for is_verbose, shown in ((False, 1), (True, 3)):
        report = Report(is_verbose=is_verbose)
        report.event(created(summary))
        report.event(created(text_message("m2", parts=(thought, TextPart(data=Text(text="Yes"))))))
        assert len(report.lines) == shown
        assert ("  ┊ Hm." in report.lines) == is_verbose


@pytest.mark.parametrize(("is_asked_for", "why"), [(True, ""), (False, "became long, and ")])
def test_a_summary_that_was_asked_for_is_not_explained(is_asked_for: bool, why: str) -> None:
    report = Report()
    report.event(updated(msgspec.structs.replace(some_run(), options=RunOptions(summarize=is_asked_for))))
    report.event(created(msgspec.structs.replace(text_message("m1", "x", finish="end_turn"), is_summary_message=True)))
    assert report.lines == [f"— The conversation {why}goes on from a summary of it."]


@pytest.mark.parametrize("reason", ["error", "canceled"])
def test_a_summary_that_failed_is_none_that_the_conversation_goes_on_from(reason: FinishReason) -> None:
    report = Report()
    report.event(created(msgspec.structs.replace(text_message("m1", ""), is_summary_message=True)))
    report.event(updated(msgspec.structs.replace(text_message("m1", "", finish=reason), is_summary_message=True)))
    assert report.lines == []


def test_thoughts_are_shown_before_the_words_that_they_led_to() -> None:
    report = Report(is_verbose=True)
    thought = ReasoningPart(data=Reasoning(thinking="Hm.", signature=""))
    report.event(created(text_message("m1", parts=(thought,))))
    change = report.view.event(created(text_message("m1", parts=(thought, TextPart(data=Text(text="Yes")))))).change
    news = report.progress.news.update(change)
    assert report.lines == []
    assert report.progress.before_answer(news) == news
    assert report.lines == ["  ┊ Hm."]
    together: list[RunNewsItem] = [ThoughtGrew("m1", "Or no."), AnswerGrew("m1", "No"), ThoughtGrew("m1", "Well.")]
    assert report.progress.before_answer(together) == together[1:]
    assert report.lines[1:] == ["  ┊ Or no."]


def test_the_result_of_a_call_from_before_anybody_looked_is_known_by_its_call() -> None:
    report = Report()
    report.progress.news.recall([calling("bash", '{"command": "make"}')])
    report.event(ended("fine\n\nexit code 0", metadata='{"exit_code": 0}'))
    assert report.lines == ["✓ $ make", "  │ fine"]


def test_the_clock_of_a_call_starts_when_nobody_is_asked_about_it_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    report = Report()
    request = PermissionRequest(
        id="p1",
        session_id="s1",
        tool_call_id="c1",
        tool_name="bash",
        description="",
        action="execute",
        params={},
        path="/",
    )
    report.event(updated(calling("bash", '{"command": "make"}')))
    report.event(created(request))
    now = 160.0
    report.event(created(PermissionNotification(tool_call_id="c1", granted=True, denied=False, permission_id="p1")))
    now = 162.0
    report.event(ended("ok\n\nexit code 0", metadata='{"exit_code": 0}'))
    assert report.lines[1] == "✓ $ make  (2.0 s)"


def test_what_a_running_call_prints_is_below_it_until_it_ends() -> None:
    report = Report()
    report.event(updated(calling("bash", '{"command": "make"}')))
    printed = "".join(f"line {number}\n" for number in range(2000)) + "10 %\r50 %\r"
    report.event(
        updated(
            ToolOutputDelta(session_id="s1", run_id="r1", message_id="m1", tool_call_id="c1", offset=0, delta=printed)
        )
    )
    tail = report.progress._screen.tail
    assert [row.text for row in tail()] == [*(f"  │ line {number}" for number in range(1996, 2000)), "  │ 50 %"]
    report.event(ended("ok\n\nexit code 0"))
    assert list(tail()) == []


def test_the_footer_is_for_people_at_a_terminal() -> None:
    report = Report()
    report.progress.footer(run_complete())
    assert report.lines == []
    report.progress._screen.is_terminal = True
    report.event(created(text_message("m1", "a")))
    for path, run_id in (("/project/a", "r1"), ("/project/a", "r1"), ("/project/b", "r1"), ("/project/c", "other")):
        file = File(id="f", session_id="s1", path=path, created_at=1, updated_at=1, run_id=run_id)
        report.event(created(file))
    report.progress.footer(msgspec.structs.replace(run_complete(), usage=Usage(cost=0.25)))
    assert re.fullmatch(
        r'session s1 · m · 1 step · \d\.\d s · \$0.25 · 2 files changed · covey run -C "…" · covey undo',
        report.lines[-1],
    )
