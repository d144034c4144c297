"""What is said of a call that was denied because nobody could be asked: what would really allow it."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import pytest

from covey.cli.allowing import Advice, by_options
from covey.lines.permission import PermissionShown, choices
from covey.protocol.events import PermissionRequest

Wish = Literal["", "network", "everything"]


def request(tool: str, *rules: str, asks_for: Wish = "") -> PermissionRequest:
    return PermissionRequest(
        id="p1",
        session_id="s1",
        tool_call_id="c1",
        tool_name=tool,
        description="it",
        action="execute",
        params={},
        path="/project",
        rules=rules,
        asks_for=asks_for,
    )


CURL = request("bash", "bash:curl x", asks_for="network")


@pytest.mark.parametrize(
    ("asked", "options", "said"),
    [
        (
            request("bash", "bash:make", "bash:make -j 4"),
            {},
            "with --allow bash:make --allow 'bash:make -j 4'",
        ),
        (CURL, {}, "with --allow 'bash+network:curl x'"),
        (CURL, {"takes_rules": False}, "with --yolo"),
        (request("bash"), {}, "with --yolo"),
        (request("bash", "bash:docker ps", asks_for="everything"), {}, ""),
        (request("bash", asks_for="everything"), {}, "with --yolo --sandbox off"),
        (request("edit", "edit:src/a.py"), {}, "with --accept-edits"),
        (request("edit", "edit:src/a.py"), {"takes_rules": False}, "with --yolo"),
        (request("edit", "edit:covey.toml"), {}, "with --allow edit:covey.toml"),
        (request("edit", "edit:/etc/hosts"), {"accepts_edits": True}, "with --allow edit:/etc/hosts"),
    ],
)
def test_the_option_is_one_that_would_allow_the_call(
    asked: PermissionRequest, options: dict[str, Any], said: str
) -> None:
    assert by_options(asked, **{"takes_rules": True, "accepts_edits": False, **options}) == said


def test_the_lines_for_the_file_are_said_once_for_all_calls_and_as_far_as_each_wants_to_get() -> None:
    advice = Advice(partial(by_options, takes_rules=True, accepts_edits=False))
    assert advice.lines() == ""
    assert advice.sentence(CURL) == "Allow it with --allow 'bash+network:curl x'"
    assert advice.sentence(CURL) == ""
    advice.sentence(request("bash", "bash:make"))
    advice.sentence(request("bash", "bash:docker ps", asks_for="everything"))
    assert advice.lines().split("\n")[1:] == [
        '[projects."/project".permissions]',
        'allow = [{ rule = "bash:curl x", network = true }, "bash:make", { rule = "bash:docker ps", sandbox = "off" }]',
    ]


def test_a_command_of_several_lines_is_left_to_the_lines_for_the_file() -> None:
    """Its rule could not be copied from a terminal."""
    asked = request("bash", "bash:cat > a <<EOF\nx\nEOF")
    assert by_options(asked, takes_rules=True, accepts_edits=False) == ""


def test_a_rule_as_long_as_its_command_is_not_shown_beside_it() -> None:
    shown = PermissionShown(["bash:"], request("bash", "bash:" + "x" * 500), is_cut=False)
    assert dict(choices(shown))["A"] == "yes, always here: this very command, word for word"
