"""From 40 × 10 to 300 × 100: what is needed is in sight, and what belongs together stands together."""

from __future__ import annotations

import pytest

from covey.client.view.inputs import SessionOpened
from covey.lines.widths import width
from covey.protocol.events import QuestionChoice, QuestionItem
from covey.protocol.requests import UndoReceipt
from covey.tui.face.composer import Suggestion
from covey.tui.face.effects import Post
from covey.tui.face.facts import ChangesLoaded, FilesFound, JobsLoaded
from covey.tui.face.pages import undo_page
from covey.tui.face.sizes import WIDEST_BODY, WIDEST_ROW, body_columns, left_columns, right_columns
from tests.tui.face.desk import Desk, a_batch, a_run, a_session
from tests.tui.face.test_diff_page import CHANGES

SIZES = [(40, 10), (60, 20), (100, 30), (200, 60), (300, 100)]


def body(desk: Desk) -> list[str]:
    """What is between the sides."""
    left = left_columns(desk.state)
    return [row[left + 2 * bool(left) :][: body_columns(desk.state)].rstrip() for row in desk.screen]


@pytest.mark.parametrize("size", SIZES)
def test_a_page_is_written_for_the_room_between_the_sides_and_again_for_another_width(size: tuple[int, int]) -> None:
    desk = Desk(300, 100)
    desk.feed(ChangesLoaded(CHANGES))
    desk.resize(*size)
    desk.keys("end")
    assert not any(row.endswith("…") for row in body(desk)), "nothing of a change is cut"
    desk.keys("home")
    assert "3 files changed" in desk.text
    assert all(width(row) <= size[0] for row in desk.screen)


def test_on_a_wide_screen_up_goes_to_the_row_above_and_not_to_the_prompt_before() -> None:
    desk = Desk(200, 60)
    desk.write("earlier")
    desk.keys("enter")
    desk.write("word " * 40)
    desk.keys("up")
    desk.keys("x")
    assert desk.draft.startswith("word") and "x" in desk.draft[:100]


def test_a_very_wide_screen_gives_the_sides_what_the_conversation_does_not_need() -> None:
    desk = Desk(300, 100)
    desk.event(a_session("s2", title="a title with about thirty letters"))
    assert body_columns(desk.state) >= WIDEST_BODY
    assert left_columns(desk.state) > 40 and right_columns(desk.state) > 60
    assert any("about thirty letters" in row[: left_columns(desk.state)] for row in desk.screen)
    desk.resize(200, 60)
    assert (left_columns(desk.state), right_columns(desk.state)) == (30, 32)


def test_the_key_of_a_command_stands_near_it_however_wide_the_screen_is() -> None:
    desk = Desk(300, 100)
    desk.keys("ctrl+p")
    row = next(row for row in body(desk) if "go to another session" in row)
    assert row.endswith("ctrl+s") and width(row) <= WIDEST_ROW


@pytest.mark.parametrize("size", SIZES)
def test_the_suggestion_that_would_be_taken_is_in_sight(size: tuple[int, int]) -> None:
    desk = Desk(*size)
    desk.keys("/")
    assert "/new" in desk.text
    desk.keys("up")
    assert "/quit" in desk.text
    assert "⇥ take it" in desk.screen[-1]


def test_how_to_stop_it_is_said_on_the_smallest_screen_and_the_title_keeps_its_distance() -> None:
    desk = Desk(40, 10)
    desk.event(a_session("s2", title="a title that is too long for it"))
    desk.view.apply(SessionOpened("s2"))
    desk.event(a_run(waiting_on="model", session_id="s2"))
    desk.look()
    assert "esc esc cancel" in desk.screen[-1]
    assert "… " in desk.screen[0]
    desk.resize(60, 20)
    assert "esc esc cancel" in desk.screen[-1] and "f1 keys" in desk.screen[-1]


def test_on_the_smallest_screen_a_question_keeps_its_choices_and_its_keys() -> None:
    desk = Desk(40, 10)
    choices = (QuestionChoice(id="1", label="Fixed"), QuestionChoice(id="2", label="Changed"))
    about = "There are two kinds of entries in it."
    item = QuestionItem(id="i", type="single_choice", question="Which " * 30, description=about, choices=choices)
    desk.event(a_batch(item))
    desk.look()
    for needed in ("Which", "Fixed", "Changed", "⏎ send", "x answer none"):
        assert needed in desk.text


def test_enter_sends_what_was_typed_out_and_takes_what_was_not() -> None:
    desk = Desk()
    desk.write("/mode")
    desk.keys("enter")
    assert "what is asked about" in desk.text, "a command that may take words does not need them"
    desk.keys("escape")
    desk.write("see @src/feed.py")
    desk.feed(FilesFound("src/feed.py", (Suggestion("src/feed.py"), Suggestion("src/feed.pyi"))))
    desk.keys("enter")
    assert [post.text for post in desk.did(Post)] == ["see @src/feed.py"]
    desk.write("/mod")
    desk.keys("enter")
    assert desk.draft == "/model "


def test_an_undo_names_files_from_the_directory_and_an_empty_list_says_that_it_is() -> None:
    page = undo_page("r", UndoReceipt(undone=(), restored=("/w/src/a.py", "/x/b.py"), removed_messages=1), "/w")
    rows = [row.text.strip() for row in page.text(80).lines if row.text]
    assert rows[-3:] == ["~ src/a.py", "~ /x/b.py", "⏎ takes it back, esc leaves it as it is"]
    desk = Desk()
    desk.feed_command("jobs")
    desk.feed(JobsLoaded(()))
    assert "there are none" in desk.text
