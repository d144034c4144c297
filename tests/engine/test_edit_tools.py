"""What a model's family decides: by which tool it changes files, and what it is told beside what all are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from covey.config.schema import Config, ModelSettings, ProviderSettings, ToolSettings
from covey.context.freedom import Freedom
from covey.engine.agent import Agent
from covey.models.families import EditTool, Family, edit_tool, families


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


@pytest.mark.parametrize(
    ("model", "found"),
    [
        ("gpt-4o", ("gpt",)),
        ("gpt-6.1-sol", ("gpt",)),
        ("openai/gpt-oss-20b", ("gpt",)),
        ("codex-mini-latest", ("gpt",)),
        ("claude-sonnet-5-5", ("claude",)),
        ("anthropic/claude-opus-5.5", ("claude",)),
        ("us.anthropic.claude-opus-5", ("claude",)),
        ("gemini-3.8-flash", ("gemini",)),
        ("moonshotai/kimi-k3", ("open",)),
        ("deepseek-flash", ("open",)),
        ("qwen3-coder-30b-a3b", ("open",)),
        ("qwen3:8b", ("open", "small")),
        ("meta-llama/Llama-3.2-3B-Instruct", ("open", "small")),
        ("devstral-24b", ("open",)),
        ("phi4-mini:3.8b", ("small",)),
        ("big", ()),
        ("not-gpt-5", ()),
    ],
)
def test_a_name_says_the_family(model: str, found: tuple[Family, ...]) -> None:
    assert families(model) == found


@pytest.mark.anyio
async def test_the_system_prompt_has_what_the_family_needs(tmp_path: Path) -> None:
    settings = (ModelSettings(id="claude-x"), ModelSettings(id="qwen3:8b"))
    agent = Agent("w", tmp_path, Config(providers={"p": ProviderSettings(type="scripted", models=settings)}), {})
    told = {
        each.id: await agent.system_prompt(each.id, agent.model(f"p/{each.id}"), Freedom(), delegate=False)
        for each in settings
    }
    assert "nobody asked for" in told["claude-x"] and "one small step" not in told["claude-x"]
    assert "one small step" in told["qwen3:8b"] and "nobody asked for" not in told["qwen3:8b"]


def names(tmp_path: Path, disabled: tuple[str, ...] = (), **model: str) -> set[str]:
    settings = ModelSettings(**model)  # type: ignore[arg-type]
    config = Config(
        providers={"p": ProviderSettings(type="scripted", models=(settings,))}, tools=ToolSettings(disabled=disabled)
    )
    agent = Agent("w", tmp_path, config, {})
    given = {spec.name for spec in agent.tool_specs("s", agent.model(), Freedom(), delegate=False)}
    return given & {"edit", "multiedit", "write", "apply_patch"}


def test_the_configuration_overrules_the_family(tmp_path: Path) -> None:
    assert names(tmp_path, id="gpt-6") == {"write", "apply_patch"}
    assert names(tmp_path, id="gpt-6", edit_tool="edit") == {"write", "edit", "multiedit"}
    assert names(tmp_path, id="llama", edit_tool="apply_patch") == {"write", "apply_patch"}


def test_a_tool_that_is_switched_off_does_not_come_back_under_another_name(tmp_path: Path) -> None:
    assert names(tmp_path, ("apply_patch",), id="gpt-6") == {"write", "edit", "multiedit"}
    assert names(tmp_path, ("edit",), id="gpt-6") == {"write", "multiedit"}
    assert names(tmp_path, ("write", "edit", "multiedit"), id="gpt-6") == set()
