"""The face as a whole: cancel from everywhere, sessions, notices, sizes, keys, themes, and no timers when idle."""

from __future__ import annotations

import re

import pytest

from covey.client.view.inputs import CancelAsked, Disconnected, PromptGiven, SessionOpened
from covey.lines.widths import width
from covey.protocol.events import Presence
from covey.protocol.requests import FileConflict, PostPrompt, UndoneTurn, UndoReceipt
from covey.protocol.search import SearchHit
from covey.tui.face.effects import (
    Cancel,
    ChangeSession,
    Copy,
    DeleteSession,
    Do,
    EditQueued,
    FindText,
    Fork,
    GoToSession,
    LoadList,
    Notify,
    Post,
    Undo,
)
from covey.tui.face.facts import CancelDone, RunEnded, SessionsPaged, TextFound, UndoPreviewed, Unsendable
from covey.tui.inputs import FocusChange, Mouse
from tests.tui.face.desk import Desk, a_permission, a_prompt, a_run, a_session, an_end

OPENERS = {
    "composer": (),
    "transcript": ("tab",),
    "palette": ("ctrl+p",),
    "sessions": ("ctrl+s",),
    "help": ("f1",),
    "search": ("ctrl+f",),
    "queue": ("ctrl+q",),
    "history": ("ctrl+r",),
    "ask": (),
}


@pytest.mark.parametrize("focus", OPENERS)
def test_row_30_escape_twice_cancels_from_every_focus_once(focus: str) -> None:
    desk = Desk()
    desk.event(a_run())
    desk.event(a_run("r2", "queued", 2, "then this"))
    desk.look()
    if focus == "ask":
        desk.event(a_permission())
        desk.look()
        desk.wait(1)
    desk.keys(*OPENERS[focus])
    desk.keys("escape")
    assert desk.did(Cancel) == []
    assert "esc again cancels what runs" in desk.screen[-1]
    desk.keys("escape")
    assert desk.did(Cancel) == [Cancel("s1")]
    desk.feed(CancelDone(2))
    assert "cancelled 2 runs" in desk.text


def test_row_30_two_escapes_far_apart_cancel_nothing() -> None:
    desk = Desk()
    desk.event(a_run())
    desk.look()
    desk.keys("escape", every=1.5)
    desk.keys("escape")
    assert desk.did(Cancel) == []


def test_row_30_a_cancel_of_nothing_says_so() -> None:
    desk = Desk()
    desk.feed(CancelDone(0))
    assert "there was nothing to cancel" in desk.text
    desk.feed(CancelDone(None))
    assert "did not reach the server" in desk.text
    idle = Desk()
    idle.keys("escape")
    assert "nothing runs here" in idle.text


def test_row_33_a_prompt_that_waits_for_the_connection_is_shown_as_such() -> None:
    desk = Desk()
    desk.view.apply(Disconnected(desk.now, "gone"))
    desk.view.apply(PromptGiven(PostPrompt(session_id="s1", prompt="do it later", run_id="r9"), desk.now))
    desk.wait(3)
    assert "do it later" in desk.text
    assert "not sent yet" in desk.text
    assert "connection lost 0:03" in desk.text


def test_row_31_what_spins_is_the_run_and_it_stops_with_it() -> None:
    desk = Desk()
    assert desk.face.wakes_at(desk.now) is None
    desk.event(a_run(started_at=1000.0))
    desk.look()
    first = desk.text
    assert desk.face.wakes_at(desk.now) is not None
    desk.now += 0.25
    assert desk.text != first
    for ending in ("completed", "failed", "cancelled", "interrupted"):
        desk.event(a_run(state=ending, ended_at=1001.0))
        desk.look()
        assert desk.face.wakes_at(desk.now) is None
        assert not any(sign in desk.text for sign in "◐◓◑◒")


def test_row_9_a_run_that_waits_for_a_person_needs_one_frame_a_second_at_most() -> None:
    desk = Desk()
    desk.event(a_run(waiting_on="permission", started_at=1000.0))
    desk.event(a_permission())
    desk.look()
    desk.now += 5.0
    desk.look()
    wakes = desk.face.wakes_at(desk.now)
    assert wakes is not None
    assert wakes - desk.now > 0.5


def test_row_15_a_thousand_sessions_are_one_list_of_which_a_screen_is_drawn() -> None:
    desk = Desk()
    for number in range(1000):
        desk.event(a_session(f"n{number}", f"session number {number}", 1000 + number))
    desk.look()
    assert LoadList("sessions") in desk.keys("ctrl+s")
    assert "session number 999" in desk.text
    assert len(desk.screen) == 30
    desk.write("number 123")
    assert "session number 123" in desk.text
    assert "of 1001" in desk.text
    assert desk.keys("enter") == [GoToSession("n123")]


def test_row_15_older_sessions_are_loaded_as_the_list_is_gone_down() -> None:
    desk = Desk()
    desk.keys("ctrl+s")
    desk.feed(SessionsPaged((a_session("old", "a very old one", 10),)))
    assert "a very old one" in desk.text
    desk.feed(SessionsPaged(()))
    assert desk.keys("down") == [], "there are no more"


def test_the_list_follows_what_happens_and_stays_on_the_chosen_one() -> None:
    desk = Desk()
    desk.event(a_session("s2", "other work", 2000))
    desk.look()
    desk.keys("ctrl+s", "down")
    desk.event(a_session("s3", "newest", 3000))
    desk.event(a_run("r5", session_id="s3"))
    desk.look()
    assert "● newest" in desk.text
    assert desk.keys("enter") == [GoToSession("s1")]


def test_marks_say_which_session_works_asks_failed_or_is_unread() -> None:
    desk = Desk(width=200)
    for number, (session_id, title) in enumerate((("a", "asks"), ("b", "busy"), ("c", "failed"), ("d", "done"))):
        desk.event(a_session(session_id, title, 2000 - number))
    desk.event(a_permission(session_id="a"))
    desk.event(a_run("rb", session_id="b"))
    desk.event(a_run("rc", "failed", 5, session_id="c", ended_at=5.0))
    desk.event(a_run("rd", "completed", 6, session_id="d", ended_at=6.0))
    desk.look()
    for row in ("? asks", "● busy", "✗ failed", "• done"):
        assert row in desk.text


def test_words_are_found_in_all_sessions_and_lead_to_theirs() -> None:
    desk = Desk()
    desk.write("/find owls")
    assert FindText("owls") in desk.keys("enter")
    hit = SearchHit(session_id="s7", title="birds", snippet="two owls sat there", marks=((4, 8),), at=990)
    desk.feed(TextFound("owls", (hit,)))
    assert "two owls sat there" in desk.text
    assert desk.keys("enter") == [GoToSession("s7")]
    desk.feed(TextFound("owls", ()))
    assert "said in no session" in desk.text


def test_a_session_is_deleted_only_by_the_same_key_twice() -> None:
    desk = Desk()
    desk.keys("ctrl+s", "ctrl+x", "down")
    assert desk.did(DeleteSession) == []
    desk.keys("ctrl+x", "ctrl+x")
    assert len(desk.did(DeleteSession)) == 1


def test_a_session_is_renamed_in_the_list() -> None:
    desk = Desk()
    desk.keys("ctrl+s", "ctrl+r", "ctrl+u")
    desk.write("new title")
    assert desk.keys("enter") == [ChangeSession("s1", title="new title")]


def test_the_mode_is_changed_by_one_key_and_shown() -> None:
    desk = Desk()
    assert desk.keys("shift+tab") == [ChangeSession("s1", mode="plan")]
    desk.event(a_session(mode="plan"))
    assert "plan ─" in desk.text


def test_who_is_here_is_shown() -> None:
    desk = Desk()
    for client_id, name in (("me", "ann"), ("k", "kim"), ("k2", "kim")):
        desk.event(Presence(client_id=client_id, session_id="s1", attached=True, name=name, kind="tui"))
    assert "kim ×2, you" in desk.screen[0]


def test_one_s_other_window_is_one_s_own_and_nobody_else() -> None:
    desk = Desk(160)
    for client_id in ("me", "a2"):
        desk.event(Presence(client_id=client_id, session_id="s1", attached=True, name="ann", kind="tui"))
    desk.event(Presence(client_id="a3", session_id="s1", attached=True, name="ann", kind="web"))
    desk.event(a_permission())
    desk.look()
    assert "you ×3" in desk.screen[0] and "your other window shows it too" in desk.text
    assert re.search(r" you +another window ", desk.text) and re.search(r" you +browser ", desk.text)
    assert "ann" not in desk.text
    desk.event(Presence(client_id="k", session_id="s1", attached=True, name="kim", kind="tui"))
    assert "kim, you ×3" in desk.screen[0] and "kim sees it too" in desk.text


@pytest.mark.parametrize("is_focused", [True, False])
def test_a_notice_comes_only_when_the_window_is_not_looked_at(is_focused: bool) -> None:
    desk = Desk()
    desk.feed(FocusChange(is_focused))
    desk.event(a_permission())
    desk.look()
    desk.look()
    desk.feed(RunEnded(an_end(text="done")))
    assert len(desk.did(Notify)) == (0 if is_focused else 2)


def test_a_folded_run_ends_without_a_notice() -> None:
    desk = Desk()
    desk.feed(FocusChange(False))
    desk.feed(RunEnded(an_end(folded_into="r0")))
    assert desk.did(Notify) == []


def test_the_queue_is_seen_moved_dropped_and_parked() -> None:
    desk = Desk()
    desk.event(a_run())
    for number in (2, 3):
        desk.event(a_run(f"r{number}", "queued", number, f"prompt {number}", posted_by="kim"))
    desk.look()
    assert "kim · waits" in desk.text
    desk.keys("ctrl+q", "down", "K", "p", "n")
    changes = [effect.change for effect in desk.did(EditQueued)]
    assert changes == [{"before": "r2"}, {"park": True}, {"first": True}]
    assert {effect.run_id for effect in desk.did(EditQueued)} == {"r3"}


def test_going_back_in_time_shows_what_an_undo_would_touch_before_it_does() -> None:
    desk = Desk()
    desk.event(a_prompt("m1", "r1", "first prompt"))
    desk.event(a_prompt("m2", "r2", "second prompt"))
    desk.look()
    desk.keys("escape", "escape")
    assert "first prompt" in desk.text
    assert desk.keys("enter") == [Undo("s1", "r2")]
    turns = (UndoneTurn(run_id="r2", prompt="second prompt"),)
    desk.feed(UndoPreviewed("r2", UndoReceipt(undone=turns, restored=("a.py",), removed_messages=2)))
    assert "a.py" in desk.text
    assert desk.keys("enter") == [Undo("s1", "r2", really=True)]
    conflict = (FileConflict(path="a.py", reason="somebody changed it"),)
    desk.feed(UndoPreviewed("r2", UndoReceipt(undone=turns, restored=(), removed_messages=2, conflicts=conflict)))
    assert "somebody changed it" in desk.text
    assert "covey undo --force-file FILE" in desk.text
    assert desk.keys("enter") == []


def test_a_fork_keeps_all_before_the_prompt() -> None:
    desk = Desk()
    desk.event(a_prompt("m1", "r1", "first prompt"))
    desk.event(a_prompt("m2", "r2", "second prompt"))
    desk.look()
    desk.keys("escape", "escape")
    assert desk.keys("tab") == [Fork("s1", "m1", "second prompt")]


def test_ctrl_c_quits_only_the_second_time_and_ctrl_d_only_when_empty() -> None:
    desk = Desk()
    desk.keys("ctrl+c")
    assert "again quits" in desk.text
    assert desk.keys("ctrl+c") == [Do("quit")]
    other = Desk()
    other.write("ab")
    other.keys("ctrl+a", "ctrl+d")
    assert (other.draft, other.did(Do)) == ("b", [])


SIZES = [(10, 4), (40, 10), (60, 20), (79, 24), (100, 30), (120, 40), (160, 50), (200, 60), (300, 100)]


@pytest.mark.parametrize(("columns", "rows"), SIZES)
@pytest.mark.parametrize("opened", ["", "ctrl+p", "ctrl+s", "f1", "ctrl+f", "/", "@"])
def test_every_screen_fits_every_size(columns: int, rows: int, opened: str) -> None:
    desk = Desk(columns, rows)
    todos = ({"content": "日本 " * 40, "status": "pending"},)
    desk.event(a_session("s2", "日本語のとても長い題名 👩‍👧 " * 6, 3000, todos=todos))
    desk.view.sessions.show("s2")
    desk.event(a_run("r7", session_id="s2", started_at=999.0))
    desk.event(a_run("r8", "queued", 8, "wide 日本 " * 30, session_id="s2"))
    desk.event(a_permission(session_id="s2", command="echo 日本 " * 60, rules=("bash(echo)",), confined=True))
    desk.look()
    if opened:
        desk.keys(opened)
    frame = desk.face.frame(desk.now)
    assert len(frame.rows) == max(rows, 4)
    assert all(width(row.text) <= max(columns, 10) for row in frame.rows)
    if frame.cursor:
        assert 0 <= frame.cursor[0] < len(frame.rows)
        assert 0 <= frame.cursor[1] <= max(columns, 10)


def test_where_there_is_no_session_no_command_of_ones_own_is_offered() -> None:
    desk = Desk(session="")
    assert "/ commands" in desk.text and "your own shell" not in desk.text
    desk.write("!ls")
    assert "run it" not in desk.text
    desk.keys("enter")
    assert "belongs to a session" in desk.text
    desk = Desk()
    desk.write("!ls")
    assert "run it" in desk.text


def test_a_new_session_shows_what_was_done_lately() -> None:
    desk = Desk(session="")
    desk.event(a_session("s2", "other work", 900))
    desk.look()
    assert "other work" in desk.text
    assert "alt+1" in desk.text
    assert desk.keys("alt+1") == [GoToSession("s2")]


def test_a_new_session_gets_the_model_and_the_mode_that_were_chosen_before_it() -> None:
    desk = Desk(session="")
    desk.keys("shift+tab")
    assert "plan ─" in desk.text
    desk.write("first")
    [post] = desk.keys("enter")[-1:]
    assert isinstance(post, Post)
    assert (post.text, post.new_mode) == ("first", "plan")
    assert "first" in desk.text
    assert "sending" in desk.text


def test_what_is_written_while_a_session_is_made_goes_along_into_it() -> None:
    desk = Desk(session="")
    desk.write("first")
    desk.keys("enter")
    desk.write("second")
    desk.event(a_session())
    desk.view.apply(SessionOpened("s1"))
    desk.look()
    assert (desk.state.session_id, desk.draft, desk.state.unsent) == ("s1", "second", "")


def test_a_first_prompt_that_cannot_be_sent_comes_back() -> None:
    desk = Desk(session="")
    desk.write("first")
    desk.keys("enter")
    desk.feed(Unsendable("first", "no model is set up"))
    assert desk.draft == "first"
    assert "no model is set up" in desk.text


def test_the_mouse_places_the_caret_scrolls_and_copies_what_is_dragged_over() -> None:
    desk = Desk()
    desk.event(a_prompt(text="hello there"))
    desk.write("abcdef")
    screen = desk.screen
    row = next(number for number, text in enumerate(screen) if "> abcdef" in text)
    desk.feed(Mouse("press", row, 3 + 2))
    assert desk.state.composer.editor.caret == 2
    desk.feed(Mouse("drag", row, 3 + 5))
    assert desk.state.composer.editor.selected == "cde"
    row = next(number for number, text in enumerate(screen) if "hello there" in text)
    column = screen[row].index("hello")
    desk.feed(Mouse("press", row, column))
    desk.feed(Mouse("drag", row, column + 4))
    [copied] = desk.feed(Mouse("release", row, column + 4))
    assert copied == Copy("hello", "the selection")
    assert desk.feed(Mouse("wheel_up", row, column)) == []


def test_a_cancel_that_is_under_way_is_not_asked_for_twice() -> None:
    desk = Desk()
    desk.event(a_run())
    desk.view.apply(CancelAsked("s1", "", desk.now))
    assert desk.view.apply(CancelAsked("s1", "", desk.now)).commands == []
