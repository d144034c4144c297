"""The tools of a workspace, as the engine and the model see them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from covey.tools.base import Tool
from covey.tools.jobs import Jobs
from covey.tools.processes import LocalProcesses
from covey.tools.registry import make_tools, read_only

REQUIRED = {
    "bash": {"command"},
    "view": {"file_path"},
    "write": {"file_path", "content"},
    "edit": {"file_path", "old_string", "new_string"},
    "multiedit": {"file_path", "edits"},
    "glob": {"pattern"},
    "grep": {"pattern"},
    "ls": set(),
    "fetch": {"url"},
    "download": {"url", "file_path"},
    "job_output": {"job_id"},
    "job_kill": {"job_id"},
    "todos": {"todos"},
    "question": {"questions"},
    "agent": {"prompt"},
}


def all_tools() -> dict[str, Tool[Any]]:
    processes = LocalProcesses()
    return make_tools(processes, Jobs(processes, "covey-test"))


def test_every_tool_is_there_by_its_name() -> None:
    tools = all_tools()
    assert set(tools) == set(REQUIRED)
    assert all(tool.name == name for name, tool in tools.items())


def test_nothing_runs_in_the_background_unless_somebody_looks_after_it() -> None:
    assert set(REQUIRED) - set(make_tools()) == {"job_output", "job_kill"}


def test_some_tools_only_look() -> None:
    tools = all_tools()
    looking = read_only(tools)
    assert set(looking) == {"view", "glob", "grep", "ls"}
    assert all(looking[name] is tools[name] and tools[name].parallel for name in looking)
    assert set(read_only({"bash": tools["bash"], "ls": tools["ls"]})) == {"ls"}


def test_workspaces_share_nothing() -> None:
    first, second = all_tools(), all_tools()
    assert all(first[name] is not second[name] for name in first)


@pytest.mark.parametrize("name", REQUIRED)
def test_a_model_can_read_what_a_tool_does_and_takes(name: str) -> None:
    tool = all_tools()[name]
    assert len(tool.description()) > 100
    schema = tool.schema()
    assert schema["type"] == "object"
    assert set(schema["required"]) == REQUIRED[name]
    assert all(field["description"] for field in schema["properties"].values())
    assert "$ref" not in json.dumps(schema)


def test_a_schema_holds_what_it_is_made_of() -> None:
    schema = make_tools()["question"].schema()["properties"]["questions"]["items"]
    assert set(schema["properties"]) == {"question", "type", "description", "choices"}
    assert schema["properties"]["type"]["type"] == "string"
    assert set(schema["properties"]["choices"]["items"]["properties"]) == {"label", "description"}
