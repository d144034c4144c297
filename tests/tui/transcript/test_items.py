"""What stands in a transcript, and how each ending is told; nothing moves when a run has ended (row 31)."""

from __future__ import annotations

import pytest
from msgspec import structs

from covey.client.view.inputs import Disconnected, PromptGiven, PromptRefused
from covey.protocol.events import AgentEvent, PermissionRequest, created
from covey.protocol.messages import FinishPart, Reasoning, ReasoningPart, ShellCommand, ShellCommandPart
from covey.protocol.requests import PostPrompt
from covey.protocol.runs import RunState
from tests.tui.transcript.support import (
    NOW,
    Screen,
    answer,
    call,
    end_run,
    finish,
    message,
    printed,
    put,
    result,
    run,
    text_part,
    user,
    view_of,
)

THOUGHT = ReasoningPart(
    data=Reasoning(thinking="Let me see.\nIt is the clock.", signature="", started_at=1, finished_at=7)
)


def test_a_prompt_says_who_and_when_beside_it_or_above_it() -> None:
    screen = Screen(view_of([user("u", "short"), user("v", "long " * 30)]), 60)
    rows = [row for row in screen.texts() if row]
    assert rows[0].startswith("┃ short") and rows[0].endswith("kim · 07:59")
    assert rows[1] == "┃ kim · 07:59" and rows[2].startswith("┃ long long")
    screen.now += 86_400
    assert screen.texts()[0].endswith("kim · yesterday 07:59")


@pytest.mark.parametrize(
    ("text", "rows", "last"),
    [
        ("\n".join(map(str, range(18))), 18, "┃ 17"),
        ("\n".join(map(str, range(500))), 13, "┃ ▸ 488 more lines"),
        ("word " * 2000, 28, "┃ ▸ 8000 more characters"),
        ("word " * 450, 30, "┃ word word"),
    ],
)
def test_a_long_prompt_is_folded_and_nothing_of_it_is_lost(text: str, rows: int, last: str) -> None:
    screen = Screen(view_of([user("u", text)]), 80, 40)
    shown = [row for row in screen.texts() if (row and "kim" not in row) or row.startswith("┃ 0")]
    assert len(shown) == rows and shown[-1].startswith(last)
    assert screen.transcript.item_text("u") == text
    assert screen.transcript.toggle("u") == ("more" in last)
    assert "".join(" ".join(screen.all_texts()).replace("┃", "").split()).count("word") == text.count("word")


def test_a_thought_is_folded_with_its_seconds_and_opens() -> None:
    screen = Screen(view_of([message("a", "assistant", THOUGHT, text_part("It is."))]))
    assert screen.texts()[:2] == ["▸ thought 6 s", "  It is."]
    assert screen.transcript.toggle("a/0")
    assert screen.texts()[:5] == ["▾ thought 6 s", "  ┊ Let me see.", "  ┊ It is the clock.", "", "  It is."]
    assert screen.transcript.toggle("a/0") and not screen.transcript.toggle("a/1")


def test_calls_say_what_they_wait_for() -> None:
    view = view_of([message("a", "assistant", call("c1"), call("c2"), call("c3", is_whole=False))])
    ask = PermissionRequest(
        id="p",
        session_id="s",
        tool_call_id="c1",
        tool_name="bash",
        description="",
        action="execute",
        params={},
        path="/",
        run_id="r1",
    )
    screen = Screen(view)
    assert screen.texts()[:2] == ["● $ make test", "○ $ make test  waits"]
    screen.now += 75
    assert screen.texts()[0] == "● $ make test  75 s"
    view.event(created(ask))
    assert screen.transcript.ticks
    assert screen.texts()[0] == "? $ make test  waits for an answer"
    assert screen.transcript.is_live and not screen.transcript.ticks


def test_a_call_shows_the_end_of_what_it_prints_and_its_file_while_it_is_written() -> None:
    view = view_of([message("a", "assistant", call("c1"))])
    printed(view, "c1", "".join(f"line {number}\n" for number in range(20)))
    screen = Screen(view)
    assert screen.texts()[1:6] == [f"  │ line {number}" for number in range(15, 20)]
    assert screen.transcript.toggle("call c1")
    assert screen.texts()[1:21] == [f"  │ line {number}" for number in range(20)]
    printed(view, "c1", "more\n", sum(len(f"line {number}\n") for number in range(20)))
    assert screen.texts()[21] == "  │ more"
    view = view_of(
        [message("a", "assistant", call("c", "write", '{"file_path":"src/a.py","content":"x', is_whole=False))]
    )
    assert Screen(view).texts()[0] == "○ write src/a.py  …"


def test_prompts_that_are_not_with_the_server_are_shown_and_say_so() -> None:
    view = view_of([user("u", "one")])
    screen = Screen(view)
    view.apply(PromptGiven(PostPrompt(session_id="s", prompt="two", run_id="r9"), NOW))
    assert "sending …" in screen.texts()[2]
    view.apply(Disconnected(NOW, "gone"))
    assert "not sent yet" in screen.texts()[2]
    view.apply(PromptRefused("r9", "too long", ""))
    assert "refused: too long" in screen.texts()[2]


def test_why_a_prompt_was_refused_is_read_to_its_end() -> None:
    why = "no usable model is configured. Log in to a provider, or name one in the configuration. " * 3
    for columns in (38, 80):
        view = view_of([])
        screen = Screen(view, columns)
        view.apply(PromptGiven(PostPrompt(session_id="s", prompt="two", run_id="r9"), NOW))
        view.apply(PromptRefused("r9", why, ""))
        assert why.strip() in " ".join(" ".join(row.removeprefix("┃") for row in screen.texts()).split())


def test_a_summary_that_failed_is_told_like_any_answer_that_failed() -> None:
    failed = structs.replace(
        message("s", "assistant", finish("error", "The run failed", "gone")), is_summary_message=True
    )
    assert [row for row in Screen(view_of([failed])).texts() if row] == ["✗ failed: gone"]


def test_shell_commands_summaries_and_retries() -> None:
    shell = ShellCommandPart(data=ShellCommand(command="ls\npwd", output="a\nb\n", exit_code=2))
    summary = message("s", "assistant", text_part("what was said"), finish("end_turn"))
    view = view_of([message("x", "user", shell, run_id=""), summary])
    assert Screen(view).texts()[:3] == ["! ls  … 1 more line  exit code 2  not shown to the model", "  │ a", "  │ b"]
    retry = AgentEvent(type="retry", session_id="s", run_id="r1", reason="busy", attempt=2, retry_at=NOW + 12)
    view.event(created(retry), "1.1")
    screen = Screen(view)
    assert [row for row in screen.texts() if row][-1] == "↻ busy (attempt 2); trying again in 12 s."
    screen.now += 5
    assert "in 7 s" in [row for row in screen.texts() if row][-1]
    assert screen.transcript.is_live and screen.transcript.ticks


def test_what_an_own_command_printed_is_shown_in_full_up_to_about_a_screen() -> None:
    def shown(lines: int) -> list[str]:
        output = "".join(f"file {n}\n" for n in range(lines))
        shell = ShellCommandPart(data=ShellCommand(command="ls", output=output, exit_code=0))
        screen = Screen(view_of([message("x", "user", shell, run_id="")]), height=60)
        return [row for row in screen.texts() if row]

    assert shown(40)[1:] == [f"  │ file {n}" for n in range(40)]
    assert shown(41)[1:] == ["  ▸ 29 lines before", *(f"  │ file {n}" for n in range(29, 41))]


def test_a_call_during_which_somebody_ran_a_command_of_their_own_has_its_result() -> None:
    shell = ShellCommandPart(data=ShellCommand(command="git log", output="start\n", exit_code=0))
    own = structs.replace(message("x", "user", shell), run_id=None)
    step = message("a", "assistant", call("c"), call("d", given='{"command":"make lint"}'), finish("end_turn"))
    view = view_of([step, result("t", "c", "OK"), own, result("u", "d", "clean"), answer("b", "done")], active=False)
    shown = [row.split("  ")[0] for row in Screen(view).texts() if row[:1].strip()]
    assert shown == ["✓ $ make test", "✓ $ make lint", "! git log"]


def test_what_an_own_command_prints_is_seen_until_its_message_comes() -> None:
    view = view_of([user("u", "go")])
    printed(view, "a", "building\n50 %\r100 %\n")
    screen = Screen(view)
    assert [row for row in screen.texts() if row][-2:] == ["! building", "! 100 %"]
    put(view, message("a", "user", ShellCommandPart(data=ShellCommand(command="make", output="", exit_code=0))))
    assert [row for row in screen.texts() if row][-1] == "! make  not shown to the model"


def test_a_warning_stays_until_the_next_turn() -> None:
    view = view_of([user("u", "go"), answer("a", "done")])
    warning = AgentEvent(type="warning", session_id="s", run_id="r1", reason="the window is\nsmall")
    view.event(created(warning), "1.1")
    screen = Screen(view)
    assert [row for row in screen.texts() if row][-1] == "! the window is small"
    end_run(view)
    assert "! the window is small" in screen.texts() and not screen.transcript.is_live
    view.event(created(run("active", "r2", seq=2)), "1.4")
    assert "! the window is small" not in screen.texts()


ENDINGS: list[tuple[RunState, FinishPart, dict[str, str], str]] = [
    ("completed", finish("end_turn"), {}, "  I begin"),
    ("cancelled", finish("canceled", "Stopped by the user"), {"cancelled_by_client": "kim"}, "■ cancelled by kim"),
    ("cancelled", finish("canceled", "Stopped by the user"), {"cancelled_by_client": "me"}, "■ cancelled by you"),
    ("cancelled", finish("canceled", "Stopped by the user"), {}, "■ cancelled"),
    ("cancelled", finish("canceled", "Stopped by a shutdown"), {}, "■ cancelled: the server was stopped"),
    ("interrupted", finish("error", "The run was interrupted", "It stopped."), {}, "■ interrupted: It stopped."),
    ("failed", finish("error", "The run failed", "400: bad"), {}, "✗ failed: 400: bad"),
    ("completed", finish("max_tokens"), {}, "! the answer is cut off: the model has reached the longest"),
    ("completed", finish("content_filter"), {}, "! the answer is cut off by the provider's content filter."),
]


@pytest.mark.parametrize(("state", "end", "facts", "shown"), ENDINGS)
def test_row_31_when_a_run_has_ended_nothing_moves_and_it_says_how(
    state: RunState, end: FinishPart, facts: dict[str, str], shown: str
) -> None:
    view = view_of([user("u", "go"), message("a", "assistant", text_part("I begin"), call("c"))])
    screen = Screen(view)
    screen.rows()
    assert screen.transcript.is_live
    put(view, message("a", "assistant", text_part("I begin"), end))
    end_run(view, state, **facts)
    before = screen.rows()
    assert not screen.transcript.is_live and not screen.transcript.ticks
    assert any(row.startswith(shown) for row in screen.texts()[2:])
    screen.now += 3600
    assert all(one is other for one, other in zip(before, screen.rows(), strict=True))


def test_row_31_also_if_its_last_message_never_came() -> None:
    view = view_of([message("a", "assistant", THOUGHT, text_part("I beg"), call("c"), call("d", is_whole=False))])
    screen = Screen(view)
    screen.rows()
    end_run(view, "interrupted")
    before = screen.rows()
    assert "not finished" in before[3].text and not screen.transcript.is_live
    screen.now += 60
    assert screen.rows() == before


def test_endings_in_the_middle_say_why_it_was_asked_again() -> None:
    view = view_of([message("a", "assistant", finish("error", "Too long")), answer("b", "x")])
    assert Screen(view).texts()[0] == "· too long for the model: asked again after a summary"


def test_results_without_their_call_and_other_sessions() -> None:
    view = view_of([result("t", "c", "found", name="grep", facts='{"matches":1}'), answer("a", "x")])
    assert Screen(view).texts()[0].startswith("✓ grep")
    view.event(created(run("active", "r2")), "1.9")
    screen = Screen(view)
    screen.rows()
    screen.transcript.scroll(-3)
    view.conversation.show("other")
    assert not any(screen.texts()) and screen.transcript.is_following
