"""What a person sees before saying yes: all of it, or how much is missing."""

from __future__ import annotations

from typing import Any

from covey.cli.request_text import COLUMNS_SHOWN, LINES_SHOWN, request_text
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


def test_a_long_command_says_how_much_is_left_out() -> None:
    lines = shown("bash", "", command="\n".join(["x" * (COLUMNS_SHOWN + 5), *["ls"] * LINES_SHOWN]))
    assert lines[1] == f"    {'x' * COLUMNS_SHOWN} … 5 more characters"
    assert len(lines) == LINES_SHOWN + 2
    assert lines[-1] == "    … 1 more line"


def test_a_change_of_a_file_is_shown_as_its_diff() -> None:
    diff = "--- a.txt\n+++ a.txt\n@@ -1,1 +1,1 @@\n-old\n+new\n"
    lines = shown("edit", "Edit a.txt", file_path="/project/a.txt", diff=diff, additions=1, removals=1)
    assert lines[0] == "edit: Edit a.txt (+1 -1 lines)"
    assert lines[1:] == [f"    {line}" for line in diff.splitlines()]


def test_a_change_outside_of_the_project_is_shown_by_its_parameters() -> None:
    assert shown("write", "Write /etc/x", file_path="/etc/x", content="é\n") == [
        "write: Write /etc/x (3 bytes)",
        "    é",
    ]
    edit = shown("edit", "Edit /etc/x", file_path="/etc/x", old_string="a\nb", new_string="c", replace_all=True)
    assert edit == ["edit: Edit /etc/x (wherever it occurs)", "    -a", "    -b", "    +c"]


def test_any_other_tool_has_its_description() -> None:
    assert shown("view", "/etc/\x1bx", file_path="/etc/x") == [r"view: /etc/\x1bx"]
