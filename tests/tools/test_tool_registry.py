"""The tools of a workspace, as the engine and the model see them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from covey.permissions.judge import Intent, Rules, Verdict, decide
from covey.protocol.effects import RUN_SIDE_BY_SIDE, Effect
from covey.tools.base import RESULT_LIMIT, Tool, ToolContext, ToolOutput
from covey.tools.jobs import Jobs
from covey.tools.processes import LocalProcesses
from covey.tools.registry import make_tools, read_only

pytestmark = pytest.mark.anyio

REQUIRED = {
    "bash": {"command"},
    "view": {"file_path"},
    "write": {"file_path", "content"},
    "edit": {"file_path", "old_string", "new_string"},
    "multiedit": {"file_path", "edits"},
    "apply_patch": {"patch"},
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
    "skill": {"name"},
}


EDITING = ("write", "edit", "multiedit", "apply_patch")
L, F, C, N, T = Effect.LOOKS, Effect.CHANGES_FILES, Effect.RUNS_COMMANDS, Effect.REACHES_OUT, Effect.TALKS
EFFECTS = {
    "bash": C, "view": L, "write": F, "edit": F, "multiedit": F, "glob": L, "grep": L, "ls": L, "fetch": N,
    "download": F, "apply_patch": F, "job_output": T, "job_kill": C, "todos": T, "question": T, "agent": T, "skill": L,
}  # fmt: skip
CALLS = {
    "bash": {"command": "make"},
    "view": {"file_path": "/etc/hosts"},
    "write": {"file_path": "a", "content": "b"},
    "edit": {"file_path": "a", "old_string": "b", "new_string": "c"},
    "multiedit": {"file_path": "a", "edits": [{"old_string": "b", "new_string": "c"}]},
    "apply_patch": {"patch": "*** Begin Patch\n*** Add File: a\n+b\n*** End Patch"},
    "glob": {"pattern": "*", "path": "/etc"},
    "grep": {"pattern": "a", "path": "/etc"},
    "ls": {"path": "/etc"},
    "fetch": {"url": "http://localhost/a"},
    "download": {"url": "http://localhost/a", "file_path": "a"},
    "job_output": {"job_id": "job-1"},
    "job_kill": {"job_id": "job-1"},
    "todos": {"todos": []},
    "question": {"questions": [{"question": "Sure?", "type": "yes_no"}]},
    "agent": {"prompt": "Look."},
    "skill": {"name": "tables"},
}
"""A call of each tool about which somebody would be asked, where there is one."""


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
    assert set(looking) == {"view", "glob", "grep", "ls", "skill"}
    assert all(looking[name] is tools[name] and tools[name].parallel for name in looking)
    assert set(read_only({"bash": tools["bash"], "ls": tools["ls"]})) == {"ls"}


def test_every_tool_says_what_it_does_to_the_world() -> None:
    assert {name: tool.effect for name, tool in all_tools().items()} == EFFECTS


def test_what_follows_from_the_effects() -> None:
    tools = all_tools()

    def with_(has: Callable[[Tool[Any]], bool]) -> set[str]:
        return {name for name, tool in tools.items() if has(tool)}

    assert set(read_only(tools)) == {"view", "glob", "grep", "ls", "skill"}
    looking = {"view", "glob", "grep", "ls", "fetch", "skill"}
    assert with_(lambda tool: tool.effect.is_left_alone_by_plan) == looking
    assert with_(lambda tool: tool.parallel) == {*looking, "agent", "job_output"} == RUN_SIDE_BY_SIDE
    nothing_left = {*looking, "todos", "question", "agent", "job_output"}
    assert with_(lambda tool: tool.effect.leaves_nothing_to_undo) == nothing_left
    assert with_(lambda tool: tool.effect is Effect.CHANGES_FILES) == {*EDITING, "download"}


def test_plan_mode_denies_what_may_change_something(context: ToolContext) -> None:
    verdicts = {}
    for name, tool in all_tools().items():
        intent = tool.intent(tool.decode(json.dumps(CALLS[name])), context)
        assert (intent.tool, intent.effect) == ("write" if name == "apply_patch" else name, tool.effect)
        verdicts[name] = decide(intent, Rules(root=str(context.root)), frozenset(), skip=False, plan=True)
    assert {name for name, verdict in verdicts.items() if verdict is Verdict.DENY} == {
        "bash", "download", *EDITING
    }  # fmt: skip
    assert {name for name, verdict in verdicts.items() if verdict is Verdict.ASK} == {
        "view", "glob", "grep", "ls", "fetch"
    }  # fmt: skip


def test_workspaces_share_nothing() -> None:
    first, second = all_tools(), all_tools()
    assert all(first[name] is not second[name] for name in first)


@pytest.mark.parametrize("name", REQUIRED)
def test_a_model_can_read_what_a_tool_does_and_takes(name: str) -> None:
    tool = all_tools()[name]
    assert len(tool.description()) > 100
    schema = tool.schema
    assert schema["type"] == "object"
    assert set(schema["required"]) == REQUIRED[name]
    assert all(field["description"] for field in schema["properties"].values())
    assert "$ref" not in json.dumps(schema)


def test_a_schema_holds_what_it_is_made_of() -> None:
    schema = make_tools()["question"].schema["properties"]["questions"]["items"]
    assert set(schema["properties"]) == {"question", "type", "description", "choices"}
    assert schema["properties"]["type"]["type"] == "string"
    assert set(schema["properties"]["choices"]["items"]["properties"]) == {"label", "description"}


# ── a tool from elsewhere ──


async def test_a_tool_can_be_made_of_a_schema_that_came_over_the_wire(context: ToolContext) -> None:
    """As an extension will: without a struct, and without a class of its own."""
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}

    async def run(params: dict[str, Any], context: ToolContext) -> ToolOutput:
        return ToolOutput(f"Rain in {params['city']}.")

    tool: Tool[dict[str, Any]] = Tool(
        name="weather",
        effect=Effect.REACHES_OUT,
        description=lambda: "The weather of a city.",
        schema=schema,
        decode=json.loads,
        intent=lambda params, context: Intent("weather", "call", params["city"]),
        describe=lambda params, context: f"Ask for the weather of {params['city']}",
        run=run,
    )
    params = tool.decode('{"city": "Rome"}')
    assert (await tool.run(params, context)).content == "Rain in Rome."
    assert tool.preview(params, context) == {"city": "Rome"}
    assert (tool.parallel, tool.result_limit) == (True, RESULT_LIMIT)
    unsaid = tool.intent(params, context)
    assert decide(unsaid, Rules(), frozenset(), skip=True, plan=True) is Verdict.DENY, "it does not say what it does"
