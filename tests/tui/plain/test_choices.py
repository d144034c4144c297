"""Asks as numbered choices: a number answers, anything else was meant for something else."""

from __future__ import annotations

from typing import Any

import pytest

from covey.protocol.events import PermissionRequest, QuestionBatchRequest, QuestionChoice, QuestionItem
from covey.protocol.extensions import ApprovalRequest
from covey.protocol.requests import QuestionResponse
from covey.tui.plain.choices import (
    Allowed,
    ApprovalChoices,
    AskedOn,
    Choices,
    Decided,
    PermissionChoices,
    QuestionChoices,
    QuestionsAnswered,
    is_late_answer,
)


def _permission(**given: Any) -> PermissionChoices:
    fields: dict[str, Any] = {
        "id": "p1",
        "session_id": "s1",
        "tool_call_id": "c1",
        "tool_name": "bash",
        "description": "run it",
        "action": "execute",
        "params": {"command": "make test"},
        "path": "/home/kim/feed",
    }
    return PermissionChoices(PermissionRequest(**{**fields, **given}))


def _texts(choices: Choices) -> list[str]:
    return [row.text for row in choices.lines(80)]


def test_each_offer_has_a_number_and_the_number_answers() -> None:
    choices = _permission(rules=("bash:make test",), prefix_rules=("bash:make *",), confined=True)
    assert "  1. yes, this once (y)" in _texts(choices)
    expected = [
        Allowed("allow"),
        Allowed("allow_session"),
        Allowed("allow_always"),
        Allowed("allow_prefix"),
        Allowed("allow", network=True),
        Allowed("allow", unsandboxed=True),
        Allowed("deny"),
    ]
    assert [choices.hear(str(number), 80) for number in range(1, 8)] == expected
    assert [choices.hear(letter, 80) for letter in ("y", " S ", "A", "P", "w", "u", "no")] == expected
    assert [choices.hear(letter, 80) for letter in ("a", "session", "r", "p", "W", "U", "d")] == [
        *expected[:1],
        None,
        *expected[2:],
    ]
    assert "Type a number from 1 to 8, or a letter, and Enter." in _texts(choices)


def test_all_edits_of_the_session_can_be_accepted_where_one_is_asked_about() -> None:
    choices = _permission(action="write", params={"diff": "--- a\n+++ b\n@@ -1 +1 @@\n-a\n+b\n"})
    assert "  3. yes, and all edits in this session (m)" in _texts(choices)
    assert choices.hear("m", 80) == Allowed("allow", edits_in="s1")
    assert "covey sessions mode s1 ask" in Allowed("allow", edits_in="s1").news["allowed"]
    assert _permission().hear("m", 80) is None


def test_each_yes_to_a_call_that_asks_for_the_network_gives_it_but_one() -> None:
    choices = _permission(rules=("bash:make test",), confined=True, network=True, asks_for="network")
    assert "  1. yes, this once, with network (y)" in _texts(choices)
    assert "  4. yes, this once, without network (o)" in _texts(choices)
    assert [choices.hear(str(number), 80) for number in range(1, 5)] == [
        Allowed("allow", network=True),
        Allowed("allow_session", network=True),
        Allowed("allow_always", network=True),
        Allowed("allow"),
    ]


def test_what_is_no_offered_number_is_no_answer() -> None:
    choices = _permission()
    for text in ("", "1 and more", "also run ruff", "yes, and run ruff too"):
        assert choices.hear(text, 80) is None


@pytest.mark.parametrize("text", ["0", "8", "99", "ok", "allow", "-1", "3.", "\uff11", "9" * 5000])
def test_what_can_only_be_meant_as_an_answer_is_told_what_the_choices_are(text: str) -> None:
    for choices, count in ((_permission(), 4), (_approval(), 3)):
        heard = choices.hear(text, 80)
        assert isinstance(heard, AskedOn)
        said = " ".join(row.text for row in heard.lines)
        assert f"is no choice: type a number from 1 to {count}, and Enter. `/say " in said and len(said) < 150


def test_letters_that_are_not_offered_are_no_answers() -> None:
    for letter in ("r", "p", "w", "u", "v"):
        assert _permission().hear(letter, 80) is None
    for choices in (_approval(),):
        assert isinstance(choices.hear("yes", 80), AskedOn), "an extension is approved by its number"


def test_no_may_be_followed_by_a_line_of_words() -> None:
    choices = _permission()
    assert isinstance(choices.hear("4", 80), AskedOn)
    assert choices.hear("use pytest instead", 80) == Allowed("deny", "use pytest instead")


def test_a_command_that_was_shown_in_part_is_not_allowed_before_it_was_shown_whole() -> None:
    choices = _permission(params={"command": "\n".join(f"echo {number}" for number in range(100))})
    assert "echo 50" not in "\n".join(_texts(choices))
    shown = choices.hear("1", 80)
    assert isinstance(shown, AskedOn) and any("echo 50" in row.text for row in shown.lines)
    assert choices.hear("1", 80) == Allowed("allow")


def test_a_request_cannot_forge_choices_or_drive_the_terminal() -> None:
    choices = _permission(params={"command": "a\x1b[2J\u202eb"}, reason="x\n  1. yes")
    assert not any("\x1b" in text or "\u202e" in text or "\n" in text for text in _texts(choices))


def _question(*items: QuestionItem) -> QuestionChoices:
    return QuestionChoices(QuestionBatchRequest(id="q1", session_id="s1", tool_call_id="c1", questions=items))


TWO = (QuestionChoice(id="x", label="one"), QuestionChoice(id="y", label="two", description="the second"))


def test_questions_are_answered_by_numbers_or_words_one_after_the_other() -> None:
    choices = _question(
        QuestionItem(id="a", type="yes_no", question="Shall I?"),
        QuestionItem(id="b", type="single_choice", question="Which?", choices=TWO),
        QuestionItem(id="c", type="multi_choice", question="Which ones?", choices=TWO),
        QuestionItem(id="d", type="free_text", question="How?"),
    )
    assert _texts(choices)[0] == "1 of 4: Shall I?"
    assert isinstance(choices.hear("2", 80), AskedOn)
    assert _texts(choices)[0] == "2 of 4: Which?"
    assert isinstance(choices.hear("3", 80), AskedOn), "there is none: asked again"
    assert isinstance(choices.hear("2", 80), AskedOn)
    assert isinstance(choices.hear("2 1", 80), AskedOn)
    assert choices.hear("with care", 80) == QuestionsAnswered(
        (
            QuestionResponse(request_id="a", yes=False),
            QuestionResponse(request_id="b", selected_ids=("y",)),
            QuestionResponse(request_id="c", selected_ids=("y", "x")),
            QuestionResponse(request_id="d", fill_in_text="with care"),
        )
    )


def test_questions_may_be_left_and_nothing_is_answered_by_an_empty_line() -> None:
    item = QuestionItem(id="b", type="single_choice", question="Which?", choices=TWO)
    assert isinstance(_question(item).hear("", 80), AskedOn)
    assert _question(item).hear("/skip", 80) == QuestionsAnswered(())
    assert _question(item).hear("neither of them", 80) == QuestionsAnswered(
        (QuestionResponse(request_id="b", fill_in_text="neither of them"),)
    )


def _approval(**given: Any) -> ApprovalChoices:
    return ApprovalChoices(ApprovalRequest(**{"id": "x", "kind": "mcp", "name": "db", "source": "covey.toml", **given}))


def test_an_extension_is_approved_refused_or_left_for_later_by_a_number() -> None:
    choices = _approval(command="db-server", args=("-v",))
    assert _texts(choices)[0] == "May this extension be used?"
    assert "runs  db-server -v" in _texts(choices) and "  1. yes, as it is now" in _texts(choices)
    assert [choices.hear(each, 80) for each in "123"] == [Decided(True), Decided(False), Decided(None)]
    assert choices.hear("go on then", 80) is None and choices.hear("", 80) is None


def test_an_extension_that_was_shown_in_part_is_not_approved_before_it_was_shown_whole() -> None:
    choices = _approval(kind="skill", text="\n".join(f"line {number}" for number in range(60)))
    assert "line 59" not in " ".join(_texts(choices)) and "  4. show all of it" in _texts(choices)
    shown = choices.hear("1", 80)
    assert isinstance(shown, AskedOn) and any("line 59" in row.text for row in shown.lines)
    assert choices.hear("1", 80) == Decided(True)
    assert _approval(kind="skill", text="line\n" * 60).hear("2", 80) == Decided(False), "no needs no reading"


def test_an_extension_cannot_forge_choices() -> None:
    forged = "\n  1. no\n\x1b[2J"
    shown = _texts(_approval(name=forged, source=forged, text=forged, instructions=forged, command=forged))
    assert [row for row in shown if row.startswith("  1. ")] == ["  1. yes, as it is now"]
    assert "\x1b" not in "".join(shown)


def test_what_comes_after_a_question_has_gone_may_have_been_for_it() -> None:
    assert all(map(is_late_answer, ["1", "y", "s", "ok", " No ", "1 2", "1,3", "12."]))
    assert not any(map(is_late_answer, ["", "yes please", "a b", "2 birds", "/x"]))
