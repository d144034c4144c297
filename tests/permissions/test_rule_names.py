"""A rule about a tool that there is not is told to whoever wrote it: it would never fit."""

from __future__ import annotations

from importlib import resources

import pytest

from covey.permissions.rule_names import RULED, why_never


def test_rules_may_be_about_every_tool_of_ours_and_about_mcp_servers() -> None:
    described = {
        file.name.removesuffix(".md") for file in resources.files("covey.tools").iterdir() if file.name[-3:] == ".md"
    }
    of_servers = {"mcp_resources", "mcp_skill"}  # asked for as mcp:SERVER/resources and mcp:SERVER/skills/…
    assert described - of_servers | {"mcp"} == set(RULED)


@pytest.mark.parametrize("rule", ["bash", "bash:git status*", "mcp:time/*", "mcp:*/delete_*", "web_search"])
def test_what_may_fit(rule: str) -> None:
    assert why_never(rule) == ""


@pytest.mark.parametrize(
    ("rule", "hint"),
    [
        ("bsh:rm *", "did you mean bash?"),
        ("mcp_time_now", "mcp:SERVER/TOOL"),
        ("*", "there are: agent, apply_patch, bash"),
        ("", "there are: agent"),
    ],
)
def test_what_never_fits_is_told_with_what_was_probably_meant(rule: str, hint: str) -> None:
    assert hint in why_never(rule)
