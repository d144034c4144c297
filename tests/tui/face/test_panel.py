"""How much of a change the panel of a permission shows, and answers on the page with all of it."""

from __future__ import annotations

import difflib

import pytest
from msgspec import structs

from covey.protocol.events import PermissionRequest
from covey.protocol.extensions import ApprovalRequest
from covey.tui.face.effects import AllowEdits, AnswerPermission, DecideApproval
from covey.tui.face.facts import Said
from tests.tui.face.desk import Desk, a_permission, a_run, an_answer


def a_change(*changed: int, lines: int = 60, **more: object) -> PermissionRequest:
    """A permission to change these lines of a file, as the server describes it."""
    before = [f"line {n}\n" for n in range(1, lines + 1)]
    after = [f"LINE {n}\n" if n in changed else text for n, text in enumerate(before, 1)]
    diff = "".join(difflib.unified_diff(before, after, "a/x.py", "b/x.py"))
    request = structs.replace(a_permission(), action="write", description="Edit x.py", params={"diff": diff})
    return structs.replace(request, **{"reason": "No rule allows it.", "rules": ("edit:x.py",), **more})


def a_desk(request: PermissionRequest | ApprovalRequest, width: int = 80, height: int = 24) -> Desk:
    desk = Desk(width, height)
    desk.event(a_run(waiting_on="permission"))
    desk.event(request)
    desk.look()
    desk.wait(1)
    return desk


def press(desk: Desk, *keys: str) -> None:
    for key in keys:
        desk.keys(key)
        desk.wait(0.5)


def test_in_a_terminal_of_the_usual_size_a_change_of_a_line_is_shown_whole_and_allowed_by_a_key() -> None:
    desk = a_desk(a_change(10))
    for shown in ("line 7", "- line 10", "+ LINE 10", "line 13", "No rule allows it.", "f whole"):
        assert shown in desk.text
    press(desk, "a")
    assert desk.did(AnswerPermission) == [AnswerPermission("p1", "allow")]


def test_the_conversation_keeps_some_rows_however_long_a_change_is() -> None:
    for height in (24, 40, 60):
        desk = a_desk(a_change(*range(1, 60)), height=height)
        top = next(n for n, row in enumerate(desk.screen) if "allow this change?" in row)
        assert top >= 1 + 3 and "deny with words" in desk.text


def test_lines_that_stay_as_they_are_go_before_any_that_changes_and_keep_nobody_from_an_answer() -> None:
    desk = a_desk(a_change(10, 30))
    for shown in ("- line 10", "+ LINE 10", "- line 30", "+ LINE 30", "⋮", "f see all of it"):
        assert shown in desk.text
    assert "line 7" not in desk.text and "more row" not in desk.text
    press(desk, "a")
    assert desk.did(AnswerPermission) == [AnswerPermission("p1", "allow")]


def test_nothing_that_changes_is_hidden_when_it_is_allowed() -> None:
    desk = a_desk(a_change(10, 20, 30, 40, 50))
    assert "more rows" in desk.text
    press(desk, "a")
    assert desk.did(AnswerPermission) == [] and "see all of it first" in desk.text


def test_a_change_that_a_long_sentence_covers_is_not_allowed_meanwhile() -> None:
    desk = a_desk(a_change(10))
    desk.feed(Said("an error that has much to say. " * 40, "error"))
    assert "LINE 10" not in desk.text
    press(desk, "a")
    assert desk.did(AnswerPermission) == []


@pytest.mark.parametrize("half", ["A", "e"])
def test_what_is_written_or_confirmed_is_in_sight_below_a_change_that_fills_the_panel(half: str) -> None:
    desk = a_desk(a_change(10, rules=tuple(f"edit:a/long/path/to/a/file/number/{n}.py" for n in range(9))))
    press(desk, half)
    assert ("⏎ add it, and allow" if half == "A" else "⏎ denies and says why") in desk.text


LONG = a_change(*range(1, 60))


def test_on_the_page_with_all_of_it_an_answer_counts_once_its_end_was_seen() -> None:
    desk = a_desk(LONG)
    press(desk, "f", "a")
    assert desk.did(AnswerPermission) == [] and "read it to its end first" in desk.text
    assert "answer at its end" in desk.text
    press(desk, "G")
    assert "LINE 59" in desk.text and "a once   s session   n deny   esc back" in desk.text
    press(desk, "a")
    assert desk.did(AnswerPermission) == [AnswerPermission("p1", "allow")]
    assert "bash: all of it" not in desk.text and "allow this change?" in desk.text, "the page is closed"


def test_a_page_that_was_opened_and_left_at_its_beginning_was_not_seen() -> None:
    desk = a_desk(LONG)
    press(desk, "f", "escape")
    desk.wait(2)
    press(desk, "a")
    assert desk.did(AnswerPermission) == [] and "see all of it first" in desk.text


def test_whoever_types_on_the_page_answers_nothing() -> None:
    desk = a_desk(LONG)
    desk.write("fix tests", every=0.12)
    press(desk, "G")
    desk.write("also run all tests", every=0.12)
    desk.wait(1)
    assert desk.did(AnswerPermission) == [] and desk.draft == ""


def test_keys_that_move_the_page_go_on_moving_it_at_its_end() -> None:
    desk = a_desk(LONG)
    press(desk, "f", "G", "d", "u", "f", "d", "enter")
    assert desk.did(AnswerPermission) == [] and "bash: all of it" in desk.text
    press(desk, "G", "n")
    assert desk.did(AnswerPermission) == [AnswerPermission("p1", "deny")]


def test_a_page_answers_only_what_it_shows() -> None:
    desk = a_desk(LONG)
    press(desk, "f", "G")
    desk.event(an_answer(by="kim"))
    desk.event(a_permission("p2", "rm -rf /"))
    desk.look()
    desk.wait(2)
    press(desk, "a", "s")
    assert desk.did(AnswerPermission) == []


def test_always_on_the_page_shows_its_rule_in_the_panel() -> None:
    desk = a_desk(LONG)
    press(desk, "f", "G", "A")
    assert "always would add" in desk.text and desk.did(AnswerPermission) == []
    press(desk, "enter")
    assert desk.did(AnswerPermission) == [AnswerPermission("p1", "allow_always")]


def test_an_extension_is_approved_on_its_page_too() -> None:
    args = tuple(f"--option-{n}=value" for n in range(200))
    desk = a_desk(ApprovalRequest(id="x1", kind="mcp", name="db", source="covey.toml", command="db", args=args))
    press(desk, "a")
    assert desk.did(DecideApproval) == []
    press(desk, "f", "G")
    assert "a use it, as it is   n do not   esc back" in desk.text
    press(desk, "a")
    assert desk.did(DecideApproval) == [DecideApproval("x1", True)]


def test_an_extension_is_refused_on_its_page_by_the_key_that_is_shown_there() -> None:
    args = tuple(f"--option-{n}=value" for n in range(200))
    desk = a_desk(ApprovalRequest(id="x1", kind="mcp", name="db", source="covey.toml", command="db", args=args))
    press(desk, "f", "G", "n")
    assert desk.did(DecideApproval) == [DecideApproval("x1", False)]


def test_all_edits_of_the_session_are_accepted_with_m_and_only_where_an_edit_is_asked_about() -> None:
    desk = a_desk(a_change(10))
    assert "m all edits" in desk.text
    press(desk, "m")
    assert desk.did(AllowEdits) == [AllowEdits("p1", "s1")]
    command = a_desk(a_permission())
    assert "all edits" not in command.text
    press(command, "m")
    assert command.did(AllowEdits) == []
    unseen = a_desk(LONG)
    press(unseen, "m")
    assert unseen.did(AllowEdits) == []


@pytest.mark.parametrize(("letter", "action"), [("r", "allow_always"), ("p", "allow_prefix")])
def test_letters_of_earlier_versions_of_covey_run_lead_to_the_same_rules(letter: str, action: str) -> None:
    desk = a_desk(a_permission(rules=("bash:rm",), prefix_rules=("bash:rm *",)))
    press(desk, letter, "enter")
    assert [given.action for given in desk.did(AnswerPermission)] == [action]
