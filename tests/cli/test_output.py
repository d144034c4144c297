"""What `covey run` writes to stdout: every text exactly once, whatever the stream did."""

from __future__ import annotations

import io
import json
import re

import msgspec
import pytest

from covey.cli.output import TAKEN_BACK, JsonPrinter, StreamJsonPrinter, TextPrinter
from covey.cli.row_printer import RowPrinter
from covey.cli.screen import Screen
from covey.client.view.run_news import AnswerGrew, RunNews
from covey.client.view.view import View
from covey.protocol.events import Event, Gap, created, decode_event, deleted, updated
from covey.protocol.messages import Message, Text, TextPart, ToolCall, ToolCallPart
from covey.protocol.runs import Usage
from tests.client.values import run_complete, some_session, text_delta, text_message


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def written(*events: Event, text: str | None = None, stdout: io.StringIO | None = None, message_id: str = "m1") -> str:
    stdout = stdout or io.StringIO()
    output = TextPrinter(stdout, Screen(io.StringIO(), quiet=True, shares_terminal=False))
    view = View("s1", loads=False)
    news = RunNews(view, "r1")
    for event in events:
        output.update(event, news.update(view.event(event).change))
    terminal = run_complete(text=text, message_id=message_id)
    output.end(terminal, news.end(terminal), 0)
    return stdout.getvalue()


def grows(offset: int, text: str, message_id: str = "m1", run_id: str = "r1") -> Event:
    return updated(text_delta(message_id, offset, text, run_id=run_id))


BEGUN = created(text_message("m1"))


def finished(text: str, message_id: str = "m1") -> Event:
    return updated(text_message(message_id, text, finish="end_turn"))


def test_text_is_written_as_it_grows_and_ends_with_a_newline() -> None:
    assert written(BEGUN, grows(0, "Hel"), grows(3, "lo"), finished("Hello"), text="Hello") == "Hello\n"


def test_a_newline_of_the_answer_is_not_doubled() -> None:
    assert written(BEGUN, grows(0, "Hello\n"), finished("Hello\n"), text="Hello\n") == "Hello\n"


def test_no_text_is_no_line() -> None:
    assert written(BEGUN, text=None) == ""
    assert written(BEGUN, finished(""), text="") == ""


def test_it_is_flushed_with_each_piece() -> None:
    seen: list[str] = []

    class Stdout(io.StringIO):
        def flush(self) -> None:
            seen.append(self.getvalue())

    output = TextPrinter(stdout := Stdout(), Screen(io.StringIO(), quiet=True, shares_terminal=False))
    view = View("s1", loads=False)
    news = RunNews(view, "r1")
    for event in (BEGUN, grows(0, "Hel"), grows(3, "lo")):
        output.update(event, news.update(view.event(event).change))
    assert seen == ["Hel", "Hello"]
    assert not stdout.closed


def test_whatever_was_not_streamed_is_written_at_the_end() -> None:
    assert written(text="Hello") == "Hello\n"
    assert written(BEGUN, grows(0, "Hel"), text="Hello") == "Hello\n"
    assert written(BEGUN, grows(0, "Hel"), finished("Hello")) == "Hello\n"


def test_steps_are_separated_by_a_newline() -> None:
    events = [BEGUN, grows(0, "First."), finished("First."), created(text_message("m2")), grows(0, "Second.", "m2")]
    assert written(*events, text="Second.", message_id="m2") == "First.\nSecond.\n"


def test_a_text_that_turned_out_differently_is_written_whole_once() -> None:
    assert written(BEGUN, grows(0, "Hallo"), finished("Hello"), text="Hello") == "Hallo\nHello\n"
    assert written(BEGUN, grows(0, "Hallo"), text="Hello") == "Hallo\nHello\n"
    begun_anew = [BEGUN, grows(0, "Hel"), updated(text_message("m1")), grows(0, "Good"), grows(4, " day")]
    assert written(*begun_anew, finished("Good day"), text="Good day") == "Hel\nGood day\n"


@pytest.mark.parametrize("printer", [TextPrinter, RowPrinter])
def test_words_that_were_taken_back_are_told_of_also_if_it_is_quiet(printer: type[TextPrinter | RowPrinter]) -> None:
    stdout, stderr = Terminal(), io.StringIO()
    output = printer(stdout, Screen(stderr, quiet=True, shares_terminal=False))
    view = View("s1", loads=False)
    news = RunNews(view, "r1")
    for event in (BEGUN, grows(0, "Hel"), updated(text_message("m1")), grows(0, "Good")):
        output.update(event, news.update(view.event(event).change))
    assert stderr.getvalue() == ""
    output.update(finished("Good day"), news.update(view.event(finished("Good day")).change))
    assert stderr.getvalue() == f"covey: {TAKEN_BACK}\n"
    terminal = run_complete(text="Good day")
    output.end(terminal, news.end(terminal), 0)
    assert stderr.getvalue().count("covey: ") == 1
    assert stdout.getvalue().splitlines()[-1].endswith("Good day")


def test_a_text_of_which_less_was_stored_than_streamed_is_not_repeated() -> None:
    cut_off = updated(text_message("m1", "Hel", finish="error"))
    assert written(BEGUN, grows(0, "Hello"), cut_off) == "Hello\n"
    assert written(BEGUN, grows(0, "Hello"), updated(text_message("m1", finish="error"))) == "Hello\n"


def test_a_text_that_began_anew_and_came_out_the_same_is_not_repeated() -> None:
    begun_anew = [BEGUN, grows(0, "Hel"), updated(text_message("m1")), grows(0, "Hello")]
    assert written(*begun_anew, finished("Hello"), text="Hello") == "Hello\n"


def test_other_runs_other_roles_and_thoughts_are_not_the_answer() -> None:
    thought = updated(msgspec.structs.replace(text_delta("m1", 0, "hm"), kind="reasoning"))
    other = [created(text_message("m0", run_id="r0")), grows(0, "no", "m0", "r0")]
    prompt = created(text_message("u1", "hello?", role="user"))
    removed = deleted(text_message("m9", "gone"))
    assert written(*other, prompt, BEGUN, thought, removed, text="Yes") == "Yes\n"


def test_text_around_a_tool_call_is_one_text() -> None:
    call = ToolCallPart(data=ToolCall(id="c1", name="bash", input="{}", finished=True))
    parts = (TextPart(data=Text(text="Look: ")), call)
    whole: Message = text_message("m1", parts=parts)
    events = [BEGUN, grows(0, "Look: "), updated(whole), updated(text_delta("m1", 0, "done", part=2))]
    assert written(*events, text="Look: done") == "Look: done\n"


def test_a_gap_repeats_nothing() -> None:
    gap = created(Gap(reason="old", resume_from="2.1"))
    events = [BEGUN, grows(0, "Hel"), gap, updated(some_session()), updated(text_message("m1", "Hello"))]
    assert written(*events, grows(5, "!"), text="Hello!") == "Hello!\n"


def test_a_terminal_gets_no_control_characters_and_a_pipe_gets_every_byte() -> None:
    text = "a\x1b]0;title\x07b\x9b1mc\td\r"
    assert written(BEGUN, grows(0, text), text=text) == text + "\n"
    assert written(BEGUN, grows(0, text), text=text, stdout=Terminal()) == "a]0;titleb1mc\td\n"


def test_json_is_one_object_with_all_fields() -> None:
    stdout = io.StringIO()
    output = JsonPrinter(stdout, View("s1", loads=False))
    output.update(BEGUN, ())
    output.end(run_complete(text="é"), (), 0)
    assert json.loads(stdout.getvalue()) == {
        "run_id": "r1",
        "session_id": "s1",
        "message_id": "m1",
        "exit_code": 0,
        "text": "é",
        "error": None,
        "cancelled": False,
        "interrupted": False,
        "at_bound": False,
        "folded_into": None,
        "usage": None,
        "denied": [],
        "output": None,
    }
    assert stdout.getvalue().count("\n") == 1


def test_json_has_the_usage() -> None:
    stdout = io.StringIO()
    JsonPrinter(stdout, View()).end(msgspec.structs.replace(run_complete(), usage=Usage(prompt_tokens=3)), (), 1)
    assert json.loads(stdout.getvalue())["usage"]["prompt_tokens"] == 3


def test_json_of_a_run_that_did_not_complete_has_the_text_so_far() -> None:
    stdout = io.StringIO()
    view = View("s1", loads=False)
    output = JsonPrinter(stdout, view)
    other = [created(text_message("m0", run_id="r0")), grows(0, "no", "m0", "r0")]
    for event in (BEGUN, grows(0, "Hel"), grows(3, "lo"), *other, created(text_message("m2"))):
        view.event(event)
        output.update(event, ())
    output.end(run_complete(cancelled=True), (), 124)
    assert json.loads(stdout.getvalue())["text"] == "Hello"


def test_stream_json_is_a_line_for_each_event_and_ends_with_the_run() -> None:
    stdout = io.StringIO()
    view = View("s1", loads=False)
    output = StreamJsonPrinter(stdout, view)
    events = [BEGUN, grows(0, "line\nbreak"), created(run_complete(text="x"))]
    for event in events:
        view.event(event)
        output.update(event, ())
    output.end(run_complete(text="x"), (), 0)
    assert [decode_event(line) for line in stdout.getvalue().splitlines()] == events


def test_stream_json_ends_with_the_run_even_if_the_stream_did_not_say() -> None:
    stdout = io.StringIO()
    output = StreamJsonPrinter(stdout, View("s1", loads=False))
    output.update(BEGUN, ())
    output.end(run_complete(text="x"), (), 0)
    assert [decode_event(line) for line in stdout.getvalue().splitlines()] == [BEGUN, created(run_complete(text="x"))]


# ── rows on a terminal ──


def rows(*events: Event, text: str | None = None, is_plain: bool = False) -> str:
    stdout = Terminal()
    output = RowPrinter(stdout, Screen(Terminal(), quiet=True, shares_terminal=True, is_plain=is_plain))
    view = View("s1", loads=False)
    news = RunNews(view, "r1")
    for event in events:
        output.update(event, news.update(view.event(event).change))
    terminal = run_complete(text=text)
    output.end(terminal, news.end(terminal), 0)
    return stdout.getvalue()


@pytest.fixture
def no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")


@pytest.mark.usefixtures("no_color")
def test_on_a_terminal_only_the_row_that_is_being_written_is_drawn_over() -> None:
    whole = "# Title\nsome **bold** text"
    written = rows(BEGUN, grows(0, whole[:4]), grows(4, whole[4:17]), grows(17, whole[17:]), finished(whole))
    *finished_rows, last = written.split("\n")
    assert last == ""
    assert [row.rpartition("\r\x1b[K")[2] for row in finished_rows] == ["# Title", "some bold text"]
    assert re.sub(r"\r\x1b\[K", "", written).count("\x1b") == 0


@pytest.mark.usefixtures("no_color")
def test_for_a_screen_reader_no_row_is_ever_drawn_over() -> None:
    assert rows(BEGUN, grows(0, "some **bo"), grows(9, "ld** text"), is_plain=True) == "some bold text\n"


@pytest.mark.usefixtures("no_color")
def test_a_note_in_the_middle_of_an_answer_stands_on_a_line_of_its_own() -> None:
    terminal = Terminal()
    screen = Screen(terminal, quiet=False, shares_terminal=True)
    output = RowPrinter(terminal, screen)
    output.update(BEGUN, [AnswerGrew("m1", "half a")])
    screen.say("a note")
    output.update(BEGUN, [AnswerGrew("m1", " line\n")])
    assert terminal.getvalue().replace("half a\r\x1b[K", "") == "half a\na note\n line\n"


@pytest.mark.usefixtures("no_color")
@pytest.mark.parametrize(("is_plain", "gap"), [(False, "\n"), (True, "")])
def test_a_blank_line_parts_an_answer_from_what_stands_above_it(is_plain: bool, gap: str) -> None:
    terminal = Terminal()
    screen = Screen(terminal, quiet=False, shares_terminal=True, is_plain=is_plain)
    output = RowPrinter(terminal, screen)
    output.update(BEGUN, [AnswerGrew("m1", "first\n")])
    screen.say("a result")
    output.update(BEGUN, [AnswerGrew("m2", "second\n")])
    assert terminal.getvalue() == f"first\na result\n{gap}second\n"


def test_a_summary_is_no_answer() -> None:
    summary = msgspec.structs.replace(text_message("m1", "what was said", finish="end_turn"), is_summary_message=True)
    grows_first = [created(msgspec.structs.replace(text_message("m1"), is_summary_message=True)), grows(0, "what")]
    assert written(*grows_first, updated(summary), created(text_message("m2", "Yes")), text=None) == "Yes\n"
