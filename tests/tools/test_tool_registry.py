"""The tools of a workspace, as the engine and the model see them."""

from __future__ import annotations

import pytest

from covey.tools.registry import make_tools


def test_there_are_four_tools_by_name() -> None:
    tools = make_tools()
    assert list(tools) == ["bash", "view", "write", "edit"]
    assert all(tool.name == name for name, tool in tools.items())


def test_workspaces_share_nothing() -> None:
    first, second = make_tools(), make_tools()
    assert all(first[name] is not second[name] for name in first)


@pytest.mark.parametrize("name", ["bash", "view", "write", "edit"])
def test_a_model_can_read_what_a_tool_does_and_takes(name: str) -> None:
    tool = make_tools()[name]
    assert len(tool.description()) > 100
    schema = tool.schema()
    assert schema["type"] == "object"
    assert (
        set(schema["required"])
        == {
            "bash": {"command"},
            "view": {"file_path"},
            "write": {"file_path", "content"},
            "edit": {"file_path", "old_string", "new_string"},
        }[name]
    )
    assert all(field["description"] for field in schema["properties"].values())
