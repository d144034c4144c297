"""Asks: a stray key never answers one, everybody sees the same, and Enter alone says nothing."""

from __future__ import annotations

import pytest
from msgspec import structs

from covey.protocol.events import QuestionChoice, QuestionItem
from covey.protocol.extensions import ApprovalRequest
from covey.tui.face.effects import AnswerPermission, Cancel, DecideApproval
from covey.tui.face.facts import CancelDone, Said
from tests.tui.face.desk import Desk, a_batch, a_permission, a_run, an_answer

ANSWERING = ["a", "s", "A", "d", "1", "2", "enter", "space", "y"]


@pytest.fixture
def desk() -> Desk:
    desk = Desk()
    desk.event(a_run(waiting_on="permission"))
    desk.look()
    return desk


def answer(desk: Desk, *keys: str) -> None:
    """Keys as somebody presses them who has read what is asked."""
    for key in keys:
        desk.keys(key)
        desk.wait(0.3)


def asked(desk: Desk, **more: object) -> None:
    desk.event(a_permission(**more))  # type: ignore[arg-type]
    desk.look()


def test_row_27_no_key_of_a_burst_answers_a_permission_that_appears_in_it(desk: Desk) -> None:
    desk.write("add a ", every=0.04)
    asked(desk)
    desk.write("saad", every=0.04)
    assert desk.draft == "add a saad"
    assert desk.did(AnswerPermission) == []


@pytest.mark.parametrize("key", ANSWERING)
@pytest.mark.parametrize("after", [0.0, 0.04, 0.2, 0.39])
def test_row_27_with_an_empty_draft_a_key_just_after_it_appeared_is_typed(desk: Desk, key: str, after: float) -> None:
    asked(desk)
    desk.wait(after)
    desk.keys(key)
    assert desk.did(AnswerPermission) == []
    assert desk.draft.strip() == (key if len(key) == 1 else "")


def test_row_27_after_a_quiet_moment_it_takes_keys(desk: Desk) -> None:
    asked(desk)
    desk.wait(0.41)
    answer(desk, "a")
    assert desk.did(AnswerPermission) == [AnswerPermission("p1", "allow")]
    assert desk.draft == ""


@pytest.mark.parametrize(("key", "meant"), [("y", "allow"), ("n", "deny")])
def test_the_letters_of_covey_run_and_of_the_page_answer_here_too(desk: Desk, key: str, meant: str) -> None:
    asked(desk)
    desk.wait(1)
    answer(desk, key)
    assert [given.action for given in desk.did(AnswerPermission)] == [meant]


def test_row_27_a_draft_keeps_the_keys_until_its_writer_turns_to_the_ask(desk: Desk) -> None:
    desk.write("half a word")
    asked(desk)
    desk.wait(10)
    desk.keys("a", "d")
    assert desk.draft == "half a wordad"
    assert desk.did(AnswerPermission) == []
    assert "⇥ answer" in desk.text
    desk.keys("tab")
    desk.wait(0.5)
    answer(desk, "d")
    assert desk.did(AnswerPermission) == [AnswerPermission("p1", "deny")]
    assert desk.draft == "half a wordad"


def test_row_27_who_begins_to_type_long_after_it_appeared_answers_nothing(desk: Desk) -> None:
    asked(desk)
    desk.wait(60)
    desk.write("add tests, please", every=0.12)
    desk.wait(5)
    assert desk.did(AnswerPermission) == []
    assert desk.draft == "add tests, please"


def test_row_27_a_letter_and_enter_answer_at_once_and_escape_takes_the_letter_back(desk: Desk) -> None:
    asked(desk)
    desk.wait(1)
    desk.keys("a", "escape")
    desk.wait(1)
    assert desk.did(AnswerPermission) == []
    desk.keys("tab", every=0.5)
    desk.keys("d", "enter")
    assert desk.did(AnswerPermission) == [AnswerPermission("p1", "deny")]


def test_plain_enter_answers_nothing(desk: Desk) -> None:
    asked(desk, rules=("bash(rm -rf build)",))
    desk.wait(2)
    desk.keys("enter", "enter", "space")
    assert desk.did(AnswerPermission) == []


def test_always_shows_the_rule_and_where_it_holds_and_needs_a_second_key(desk: Desk) -> None:
    asked(desk, rules=("bash(rm -rf build)",))
    desk.wait(1)
    answer(desk, "A")
    assert "bash(rm -rf build)" in desk.text
    assert "/home/ann/feed and nowhere else" in desk.text
    assert desk.did(AnswerPermission) == []
    desk.keys("enter")
    assert desk.did(AnswerPermission) == [AnswerPermission("p1", "allow_always")]


def test_always_is_not_offered_where_no_rule_can_say_it(desk: Desk) -> None:
    asked(desk)
    desk.wait(1)
    desk.keys("A", "enter")
    assert "always" not in desk.text
    assert desk.did(AnswerPermission) == []


def test_the_network_and_the_sandbox_are_chosen_before_the_answer(desk: Desk) -> None:
    asked(desk, confined=True, network=True)
    desk.wait(1)
    answer(desk, "w", "u", "u", "s")
    assert desk.did(AnswerPermission) == [AnswerPermission("p1", "allow_session", network=True)]


def test_what_is_said_of_the_sandbox_is_what_is_chosen(desk: Desk) -> None:
    asked(desk, confined=True, sandbox="It runs in the sandbox: no network.")
    desk.wait(1)
    assert "It runs in the sandbox" in desk.text and "w network: off" in desk.text and "u sandbox: on" in desk.text
    answer(desk, "u")
    assert "It runs in the sandbox" not in desk.text and "u sandbox: off" in desk.text
    assert "It runs outside the sandbox." in desk.text
    desk.keys("f")  # all of it
    assert "It runs in the sandbox" not in desk.text and "It runs outside the sandbox." in desk.text
    desk.keys("escape")
    answer(desk, "u")
    assert "It runs in the sandbox" in desk.text and "outside the sandbox" not in desk.text


def test_a_yes_to_a_call_that_asks_for_the_network_gives_it_unless_it_is_turned_off(desk: Desk) -> None:
    asked(desk, confined=True, network=True, asks_for="network")
    desk.wait(1)
    assert "once, with network" in desk.text and "network: on" in desk.text
    answer(desk, "s")
    assert desk.did(AnswerPermission) == [AnswerPermission("p1", "allow_session", network=True)]


def test_the_network_that_a_call_asks_for_can_be_kept_from_it(desk: Desk) -> None:
    asked(desk, confined=True, network=True, asks_for="network")
    desk.wait(1)
    answer(desk, "w", "s")
    assert desk.did(AnswerPermission) == [AnswerPermission("p1", "allow_session")]


@pytest.mark.parametrize("half", ["A", "e"])
def test_taking_back_half_an_answer_and_leaving_the_panel_cancels_nothing(desk: Desk, half: str) -> None:
    asked(desk, rules=("bash:make test",))
    desk.wait(1)
    answer(desk, half)
    assert desk.text.count("esc back") == 2 and "esc back" in desk.screen[-1], "the panel says so, too"
    assert "keep typing" not in desk.text
    desk.keys("escape")
    assert "esc keep typing" in desk.screen[-1]
    desk.keys("escape")
    assert desk.did(Cancel) == []
    assert "esc again cancels what runs" in desk.screen[-1]
    desk.keys("escape")
    assert desk.did(Cancel) == [Cancel("s1")]


def test_a_denial_in_words_is_written_in_the_panel_and_the_draft_stays(desk: Desk) -> None:
    desk.write("my draft")
    asked(desk)
    desk.keys("tab")
    desk.wait(1)
    answer(desk, "e")
    desk.write("use make clean")
    desk.paste("\nand a line")
    desk.keys("enter")
    assert desk.did(AnswerPermission) == [AnswerPermission("p1", "deny", "use make clean and a line")]
    assert desk.draft == "my draft"


def test_what_is_shown_in_part_cannot_be_allowed_before_all_of_it_was_seen(desk: Desk) -> None:
    asked(desk, command="\n".join(f"echo {n}" for n in range(100)))
    desk.wait(1)
    answer(desk, "a")
    assert desk.did(AnswerPermission) == []
    assert "see all of it first" in desk.text
    answer(desk, "f")
    desk.keys("G")
    assert "echo 99" in desk.text
    desk.keys("escape")
    answer(desk, "a")
    assert desk.did(AnswerPermission) == [AnswerPermission("p1", "allow")]


def test_no_character_of_a_change_is_left_out_however_narrow_the_panel_is() -> None:
    desk = Desk(60, 40)
    diff = "--- a\n+++ b\n@@ -1 +1 @@\n-short\n+" + "".join(f"word{n} " for n in range(12)) + "rm -rf /\n"
    request = a_permission()
    desk.event(structs.replace(request, params={"diff": diff}, action="write"))
    desk.look()
    assert "rm -rf /" in desk.text


def test_the_next_ask_of_a_run_takes_the_keys_as_the_first_did(desk: Desk) -> None:
    """Both reach the face in one look: the first is answered, and the next is there already."""
    asked(desk)
    desk.wait(1)
    answer(desk, "a")
    desk.event(an_answer(by="ann"))
    asked(desk, ask_id="p2", command="make test")
    assert "make test" in desk.text and "⇥ answer" not in desk.text
    desk.keys("a")
    assert desk.draft == "a", "the quiet moment is waited for anew"
    desk.keys("backspace", "tab")
    desk.wait(1)
    answer(desk, "s")
    assert desk.did(AnswerPermission)[1:] == [AnswerPermission("p2", "allow_session")]


def test_row_28_an_ask_that_somebody_else_answered_is_gone_and_says_who(desk: Desk) -> None:
    asked(desk)
    desk.wait(1)
    assert "allow this command?" in desk.text
    desk.event(an_answer(by="kim"))
    desk.look()
    assert "allow this command?" not in desk.text
    assert "allowed by kim" in desk.text
    desk.keys("a")
    assert desk.did(AnswerPermission) == []
    assert desk.draft == "a"


def test_row_28_an_answer_on_its_way_is_not_given_twice(desk: Desk) -> None:
    asked(desk)
    desk.wait(1)
    desk.view.asks.answering("p1", True)
    desk.keys("a", "d")
    assert desk.did(AnswerPermission) == []
    assert "answered; waiting for the server" in desk.text


def test_the_next_ask_waits_its_turn_and_for_a_quiet_moment(desk: Desk) -> None:
    asked(desk)
    asked(desk, ask_id="p2", command="make test")
    desk.wait(1)
    assert "1 of 2" in desk.text
    answer(desk, "a")
    desk.event(an_answer(by="ann"))
    desk.look()
    assert "make test" in desk.text
    desk.keys("a")  # the same finger, a moment later
    assert desk.did(AnswerPermission) == [AnswerPermission("p1", "allow")]


def test_an_approval_of_an_extension_is_an_ask_like_the_others(desk: Desk) -> None:
    desk.event(ApprovalRequest(id="x1", kind="mcp", name="db", source="covey.toml", command="db-server", args=("-v",)))
    desk.look()
    desk.wait(1)
    assert "may this extension be used?" in desk.text
    assert "db-server -v" in desk.text
    desk.keys("enter")
    assert desk.did(DecideApproval) == []
    answer(desk, "a")
    assert desk.did(DecideApproval) == [DecideApproval("x1", True)]


@pytest.mark.parametrize("columns", [40, 50, 56, 57, 58, 59, 60, 61, 62, 80])
def test_no_key_of_a_permission_looks_cut_on_a_narrow_screen(columns: int) -> None:
    desk = Desk(columns, 30)
    desk.event(a_permission(rules=("bash:make",), prefix_rules=("bash:make *",), confined=True))
    desk.look()
    assert "……" not in desk.text
    for words in ("once", "session", "always …", "always, any words …", "deny with words", "network: off", "whole"):
        assert words in desk.text


DIFF = "--- a/x.py\n+++ b/x.py\n@@ -1,3 +1,3 @@\n def f():\n-    return 1\n+    return 2\n # end\n"


def test_a_change_stands_beside_what_was_before_where_there_is_room_and_t_puts_it_below() -> None:
    desk = Desk(200, 50)
    desk.event(structs.replace(a_permission(), action="write", params={"diff": DIFF}))
    desk.look()
    desk.wait(1)
    both = [row for row in desk.screen if "return 1" in row and "return 2" in row]
    assert len(both) == 1
    answer(desk, "t")
    assert not [row for row in desk.screen if "return 1" in row and "return 2" in row]
    answer(desk, "t", "f")
    assert [row for row in desk.screen if "return 1" in row and "return 2" in row], "so does the page with all of it"
    narrow = Desk(100, 30)
    narrow.event(structs.replace(a_permission(), action="write", params={"diff": DIFF}))
    narrow.look()
    assert "return 2" in narrow.text
    assert not [row for row in narrow.screen if "return 1" in row and "return 2" in row]
    assert "unified" not in narrow.text


def test_the_last_row_names_the_keys_that_work_beside_a_permission(desk: Desk) -> None:
    asked(desk)
    assert "esc keep typing" in desk.screen[-1]
    assert "keep typing: esc" in desk.text
    desk.write("a draft")
    assert "⇥ answer" in desk.screen[-1]
    assert "⇥ queue" not in desk.text
    desk.keys("tab")
    assert desk.state.focus == "ask"


def test_a_letter_that_answers_nothing_begins_a_prompt_and_none_is_lost(desk: Desk) -> None:
    asked(desk)
    desk.wait(1)
    desk.write("have a look first", every=0.03)
    desk.wait(1)
    assert desk.draft == "have a look first"
    assert desk.did(AnswerPermission) == []
    assert desk.state.focus == "composer"


def test_an_ask_that_nobody_answered_does_not_hide_what_was_said_of_a_cancel(desk: Desk) -> None:
    asked(desk)
    desk.feed(CancelDone(1))
    desk.event(an_answer(by="", granted=False))
    desk.look()
    assert "cancelled 1 run" in desk.text
    assert "denied" not in desk.text


def test_on_the_smallest_screen_the_command_and_the_keys_that_answer_it_are_there() -> None:
    desk = Desk(40, 10)
    desk.event(a_run(waiting_on="permission"))
    desk.event(a_permission(rules=("bash(rm)",), reason="It deletes files, and so on and so forth."))
    desk.look()
    desk.feed(Said("a sentence that is much longer than such a window is wide, and then some more"))
    for words in ("$ rm -rf build", "a once", "A always", "e deny with words", "f whole"):
        assert words in desk.text


def test_on_the_smallest_screen_the_choice_that_is_meant_is_in_sight() -> None:
    desk = Desk(40, 10)
    choices = tuple(QuestionChoice(id=str(n), label=f"way {n}") for n in range(9))
    desk.event(a_batch(QuestionItem(id="i", type="single_choice", question="which?", choices=choices)))
    desk.look()
    desk.wait(1)
    for number in range(9):
        assert f"way {number}" in desk.text
        desk.keys("down")
        desk.wait(0.3)
    assert "space or number" in desk.text
