"""What a person sees before saying yes: all of it, or how much is missing."""

from __future__ import annotations

from typing import Any

import pytest

from covey.cli.asks import SHOW, Heard, PermissionAnswer, PermissionAsk
from covey.cli.questioner import _menu
from covey.lines.request_text import COLUMNS_SHOWN, LAST_COLUMNS, LAST_LINES, LINES_SHOWN, request_text
from covey.protocol.events import PermissionRequest


def shown(tool: str, description: str, **params: Any) -> list[str]:
    request = PermissionRequest(
        id="p1",
        session_id="s1",
        tool_call_id="c1",
        tool_name=tool,
        description=description,
        action="execute",
        params=params,
        path="/project",
    )
    return request_text(request).split("\n")


def test_a_command_is_shown_line_by_line() -> None:
    assert shown("bash", "# ls rm -rf x", command="# ls\n  rm -rf x\n") == ["bash:", "    # ls", "      rm -rf x"]
    assert shown("bash", "ls (in sub)", command="ls", working_dir="sub") == ["bash: in sub", "    ls"]


def test_nothing_can_hide_in_a_command() -> None:
    command = "rm\x1b[2K\rls \u202e\u200b\x9b\u2028\té😀"
    assert shown("bash", "", command=command)[1] == r"    rm\x1b[2K\rls \u202e\u200b\x9b\u2028" + "\té😀"


def test_a_long_command_is_cut_in_the_middle_and_says_how_much_is_left_out() -> None:
    long = "x" * COLUMNS_SHOWN + "12345" + "rm -rf end"
    rows = [long, *(f"echo {number}" for number in range(LINES_SHOWN + 7)), "rm -rf victim"]
    lines = shown("bash", "", command="\n".join(rows))
    assert lines[1] == f"    {'x' * (COLUMNS_SHOWN - LAST_COLUMNS)} … 15 more characters … {long[-LAST_COLUMNS:]}"
    assert len(lines) == LINES_SHOWN + 2
    assert lines[LINES_SHOWN - LAST_LINES + 1] == "    … 9 more lines …"
    assert lines[-2:] == [f"    echo {LINES_SHOWN + 6}", "    rm -rf victim"]
    assert lines[1 + LINES_SHOWN - LAST_LINES - 1] == f"    echo {LINES_SHOWN - LAST_LINES - 2}"


def asked(**params: Any) -> PermissionAsk:
    return PermissionAsk(
        PermissionRequest(
            id="p1",
            session_id="s1",
            tool_call_id="c1",
            tool_name="bash" if "command" in params else "write",
            description="",
            action="execute",
            params=params,
            path="/project",
            rules=("bash:x",),
        )
    )


HIDING = "make test\n" + "# a comment\n" * 45 + "rm -rf HIDDEN\n" + "# a comment\n" * 15 + "x=(a b)"
WIDE = "make test # " + "x" * 2000 + " ; rm -rf HIDDEN ; " + "y" * 2000


@pytest.mark.parametrize("command", [HIDING, WIDE])
@pytest.mark.parametrize("answer", ["y", "yes", "a", "r", "s", "session", "v", "show"])
def test_no_part_of_a_command_is_unseen_when_it_is_allowed(command: str, answer: str) -> None:
    ask = asked(command=command)
    assert "HIDDEN" not in ask.shown
    assert "[v]iew all of it" in ask.question
    assert ask.hear(answer) is (Heard.WHOLE if answer in SHOW else Heard.UNSEEN)
    assert "HIDDEN" in ask.shown
    assert "[v]iew all of it" not in ask.question
    assert ask.hear("y") == PermissionAnswer("allow")


def test_a_denial_needs_no_more_to_be_shown() -> None:
    assert asked(command=HIDING).hear("no, not like that") == PermissionAnswer("deny", "not like that")
    assert asked(command=HIDING).hear("n") == PermissionAnswer("deny")


def test_a_long_change_is_shown_in_full_where_somebody_wants_to_see_it() -> None:
    ask = asked(content="\n".join(f"line {number}" for number in range(61)))
    assert "line 60" in ask.shown
    assert "line 35" not in ask.shown
    assert ask.hear("v") is Heard.WHOLE
    assert "line 35" in ask.shown


def test_what_is_shown_in_full_offers_no_more() -> None:
    ask = asked(command="make test")
    assert "[v]iew" not in ask.question
    assert ask.hear("v") is Heard.AGAIN
    assert ask.hear("y") == PermissionAnswer("allow")


def test_a_change_of_a_file_is_shown_as_its_diff() -> None:
    diff = "--- a.txt\n+++ a.txt\n@@ -1,1 +1,1 @@\n-old\n+new\n"
    lines = shown("edit", "Edit a.txt", file_path="/project/a.txt", diff=diff, additions=1, removals=1)
    assert lines[0] == "Edit a.txt (+1 -1 lines)"
    assert lines[1:] == [f"    {line}" for line in diff.splitlines()]


def test_a_change_outside_of_the_project_is_shown_by_its_parameters() -> None:
    assert shown("write", "Write /etc/x", file_path="/etc/x", content="é\n") == [
        "Write /etc/x (3 bytes)",
        "    é",
    ]
    edit = shown("edit", "Edit /etc/x", file_path="/etc/x", old_string="a\nb", new_string="c", replace_all=True)
    assert edit == ["Edit /etc/x (wherever it occurs)", "    -a", "    -b", "    +c"]


def test_any_other_tool_has_its_description() -> None:
    assert shown("view", "/etc/\x1bx", file_path="/etc/x") == [r"view: /etc/\x1bx"]


@pytest.mark.parametrize(
    "command",
    ["\n".join(f"echo {number}" for number in range(60)), "echo " + "x" * 5000, "echo\n" * 24],
    ids=["many lines", "one long line", "a few lines too many"],
)
def test_a_question_is_not_higher_than_the_screen(command: str) -> None:
    """The headline and the first line are on it, and what was left out has to be seen before it is allowed."""
    ask = asked(command=command)
    lines = _menu(ask, 80, 24)
    assert len(lines) < 24
    assert ask.is_cut
    assert ask.press("y") is Heard.UNSEEN
    assert len(_menu(ask, 80, 24)) >= 12, "all of it was wanted, however high it is"
    assert len(_menu(asked(command=command), 80, 100)) >= len(lines)
