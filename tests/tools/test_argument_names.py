"""A model that uses another agent's names for arguments is understood, where they can mean one thing only."""

from __future__ import annotations

import json
from typing import Any

import pytest

from covey.lines.calls import call_line
from covey.protocol.argument_names import ALIASES
from covey.protocol.messages import ToolCall
from covey.tools.base import ToolFailed
from covey.tools.jobs import Jobs
from covey.tools.processes import LocalProcesses
from covey.tools.registry import make_tools

TOOLS = make_tools(LocalProcesses(), Jobs(LocalProcesses(), "tag"))


@pytest.mark.parametrize(
    ("tool", "sent", "meant"),
    [
        ("view", {"path": "a.py", "start_line": 3}, {"file_path": "a.py", "offset": 3}),
        ("view", {"file": "a.py"}, {"file_path": "a.py"}),
        ("write", {"filePath": "a", "contents": "x"}, {"file_path": "a", "content": "x"}),
        ("bash", {"cmd": "make", "run_in_background": True}, {"command": "make", "background": True}),
        ("bash", {"command": "make", "cwd": "src"}, {"command": "make", "working_dir": "src"}),
        (
            "edit",
            {"path": "a", "old_str": "x", "new_str": "y"},
            {"file_path": "a", "old_string": "x", "new_string": "y"},
        ),
        (
            "multiedit",
            {"file_path": "a", "edits": [{"oldString": "x", "newString": "y", "replaceAll": True}]},
            {"file_path": "a", "edits": [{"old_string": "x", "new_string": "y", "replace_all": True}]},
        ),
        ("grep", {"regex": "x", "glob": "*.py"}, {"pattern": "x", "include": "*.py"}),
        ("ls", {"directory": "src"}, {"path": "src"}),
        ("job_output", {"bash_id": "job-1"}, {"job_id": "job-1"}),
        ("apply_patch", {"input": "*** Begin Patch"}, {"patch": "*** Begin Patch"}),
        (
            "todos",
            {"todos": [{"content": "Test", "status": "pending", "activeForm": "Testing"}]},
            {"todos": [{"content": "Test", "status": "pending", "active_form": "Testing"}]},
        ),
    ],
)
def test_names_of_other_agents_are_understood(tool: str, sent: dict[str, Any], meant: dict[str, Any]) -> None:
    assert TOOLS[tool].decode(json.dumps(sent)) == TOOLS[tool].decode(json.dumps(meant))
    assert json.loads(TOOLS[tool].own_names(json.dumps(sent))) == meant, "which a hook reads"


@pytest.mark.parametrize(
    ("tool", "sent"),
    [
        ("view", {"path": "a.py", "file": "b.py"}),
        ("view", {"path": "a.py", "file_path": "b.py"}),
        ("bash", {"command": "make", "timeout": 5000}),
        ("bash", {"command": "make", "cmd": "make"}),
    ],
)
def test_what_could_mean_two_things_is_refused_as_ever(tool: str, sent: dict[str, Any]) -> None:
    assert TOOLS[tool].own_names(json.dumps(sent)) == json.dumps(sent)
    with pytest.raises(ToolFailed, match="unknown field"):
        TOOLS[tool].decode(json.dumps(sent))


@pytest.mark.parametrize("text", ["", "[1]", "{", '"x"', "{}", '{"file_path": 1}'])
def test_an_input_that_is_right_or_cannot_be_read_stays_as_it_is(text: str) -> None:
    assert TOOLS["view"].own_names(text) == text


def test_the_schema_offers_our_names_alone() -> None:
    for tool in TOOLS.values():
        fields = set(tool.schema["properties"])
        others = {name for field in fields for name in ALIASES.get(field, ())}
        assert not fields & others - {"path", "file_path"}, tool.name


def test_people_see_the_file_whatever_the_model_calls_it() -> None:
    call = ToolCall(id="c", name="view", input='{"path": "a.py"}', finished=True)
    assert call_line(call).text == "read a.py"
