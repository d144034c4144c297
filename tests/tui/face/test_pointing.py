"""The mouse on lists, questions, suggestions, the queue and the sides."""

from __future__ import annotations

from covey.protocol.events import QuestionChoice, QuestionItem
from covey.tui.face.effects import AnswerBatch, Effect, ExportSession, GoToSession, Settle
from covey.tui.inputs import Mouse
from tests.tui.face.desk import Desk, a_batch, a_run, a_session


def _cell(desk: Desk, text: str) -> tuple[int, int]:
    return next((number, row.index(text)) for number, row in enumerate(desk.screen) if text in row)


def _click(desk: Desk, text: str) -> list[Effect]:
    row, column = _cell(desk, text)
    return [*desk.feed(Mouse("press", row, column)), *desk.feed(Mouse("release", row, column))]


def test_a_click_on_an_item_of_a_list_chooses_it() -> None:
    desk = Desk()
    desk.event(a_session("s2", "split the module", 900))
    desk.look()
    desk.keys("ctrl+s")
    assert _click(desk, "split the module") == [GoToSession("s2")]
    assert desk.state.overlay is None


def test_an_item_is_chosen_only_where_the_button_goes_up_again() -> None:
    desk = Desk()
    desk.feed_command("theme")
    row, column = _cell(desk, "for a light one")
    assert desk.feed(Mouse("press", row, column)) == []
    assert desk.feed(Mouse("release", row - 1, column)) == []
    assert desk.state.overlay is not None
    assert _click(desk, "for a light one") == [Settle("theme", "light")]


def test_a_long_list_is_hit_where_it_is_scrolled_to() -> None:
    desk = Desk(height=20)
    for number in range(60):
        desk.event(a_session(f"x{number}", f"session number {number:02}", 500 + number))
    desk.look()
    desk.keys("ctrl+s", "pagedown", "pagedown", "down")
    shown = [row for row in desk.screen if "session number" in row]
    words = shown[2][shown[2].index("session number") :][:17]
    assert _click(desk, words) == [GoToSession(f"x{int(words[-2:])}")]


def test_a_click_chooses_an_answer_and_sends_nothing() -> None:
    desk = Desk()
    choices = (
        QuestionChoice(id="a", label="the first way", description="long " * 40),
        QuestionChoice(id="b", label="the second way"),
    )
    desk.event(a_batch(QuestionItem(id="i", type="single_choice", question="which?", choices=choices)))
    desk.look()
    desk.write("a draft")
    assert _click(desk, "the second way") == []
    assert "● the second way" in desk.text
    desk.keys("enter")
    assert [answer.responses[0].selected_ids for answer in desk.did(AnswerBatch)] == [("b",)]


def test_a_click_takes_a_suggestion() -> None:
    desk = Desk()
    desk.write("/expo")
    _click(desk, "/export")
    assert desk.draft == ""
    assert desk.did(ExportSession)


def test_a_click_on_the_queue_or_a_session_at_the_side_goes_there() -> None:
    desk = Desk(200, 50)
    desk.event(a_session("s2", "split the module", 900))
    desk.event(a_run())
    desk.event(a_run("r2", "queued", 2, "then this", posted_by="ann"))
    desk.look()
    assert _click(desk, "split the module") == [GoToSession("s2")]
    narrow = Desk()
    narrow.event(a_run())
    for number in (2, 3):
        narrow.event(a_run(f"r{number}", "queued", number, f"prompt {number}", posted_by="ann"))
    narrow.look()
    assert "you · waits" in narrow.text
    _click(narrow, "prompt 3")
    assert (narrow.state.focus, narrow.state.queued) == ("queue", "r3")


def test_a_folded_queue_opens_by_a_click() -> None:
    desk = Desk(60, 16)
    desk.event(a_run())
    desk.event(a_run("r2", "queued", 2, "then this"))
    desk.look()
    _click(desk, "queue 1")
    assert desk.state.focus == "queue"


def test_the_caret_is_placed_in_a_prompt_that_is_scrolled_and_below_a_notice() -> None:
    desk = Desk(60, 18)
    for number in range(12):
        desk.write(f"row{number}")
        desk.keys("ctrl+j")
    row, column = _cell(desk, "row9")
    desk.feed(Mouse("press", row, column + 2))
    assert desk.draft[desk.state.composer.editor.caret - 2 :].startswith("row9")
    desk.feed(Mouse("release", row, column + 2))
    desk.keys("ctrl+t")
    assert "no list of things to do" in desk.text
    row, column = _cell(desk, "row9")
    desk.feed(Mouse("press", row, column + 1))
    assert desk.draft[desk.state.composer.editor.caret - 1 :].startswith("row9")
