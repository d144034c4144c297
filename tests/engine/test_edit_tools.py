"""By which tool a model changes files: as its family is trained, unless the configuration says otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from covey.config.schema import Config, ModelSettings, ProviderSettings, ToolSettings
from covey.engine.agent import Agent
from covey.models.families import EditTool, edit_tool


@pytest.mark.parametrize(
    ("model", "tool"),
    [
        ("gpt-4.1-mini", "apply_patch"),
        ("gpt-6.1-sol", "apply_patch"),
        ("openai/gpt-oss-120b", "apply_patch"),
        ("GPT-5-Codex", "apply_patch"),
        ("gpt-10", "apply_patch"),
        ("o4-mini", "apply_patch"),
        ("codex-mini-latest", "apply_patch"),
        ("gpt-4o", "edit"),
        ("claude-sonnet-5-5", "edit"),
        ("anthropic/claude-opus-5.5", "edit"),
        ("gemini-3.8-flash", "edit"),
        ("kimi-k3", "edit"),
        ("not-gpt-5", "edit"),
    ],
)
def test_the_family_decides(model: str, tool: EditTool) -> None:
    assert edit_tool(model) == tool


def names(tmp_path: Path, disabled: tuple[str, ...] = (), **model: str) -> set[str]:
    settings = ModelSettings(**model)  # type: ignore[arg-type]
    config = Config(
        providers={"p": ProviderSettings(type="scripted", models=(settings,))}, tools=ToolSettings(disabled=disabled)
    )
    agent = Agent("w", tmp_path, config, {})
    given = {spec.name for spec in agent.tool_specs("s", agent.model(), plan=False, delegate=False)}
    return given & {"edit", "multiedit", "write", "apply_patch"}


def test_the_configuration_overrules_the_family(tmp_path: Path) -> None:
    assert names(tmp_path, id="gpt-6") == {"write", "apply_patch"}
    assert names(tmp_path, id="gpt-6", edit_tool="edit") == {"write", "edit", "multiedit"}
    assert names(tmp_path, id="llama", edit_tool="apply_patch") == {"write", "apply_patch"}


def test_a_tool_that_is_switched_off_does_not_come_back_under_another_name(tmp_path: Path) -> None:
    assert names(tmp_path, ("apply_patch",), id="gpt-6") == {"write", "edit", "multiedit"}
    assert names(tmp_path, ("edit",), id="gpt-6") == {"write", "multiedit"}
    assert names(tmp_path, ("write", "edit", "multiedit"), id="gpt-6") == set()
