"""The configuration page is true: its examples load, and it names every setting and its default."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from covey.config.check import check
from covey.config.defaults import OPENAI_MODEL, resolve
from covey.config.expand import expand
from covey.config.load import MAX_DOTS_IN_LINE, MAX_FILE_BYTES, Trusted
from covey.config.schema import (
    ClusterSettings,
    Config,
    ContextSettings,
    Files,
    HookGroup,
    LimitSettings,
    ModelChoice,
    ModelSettings,
    NotifySettings,
    PermissionSettings,
    ProviderSettings,
    SearchSettings,
    ServerSettings,
    ToolSettings,
)
from covey.permissions.judge import Intent, Rules, decide
from covey.protocol.effects import Effect

PAGE = (Path(__file__).parents[2] / "docs" / "CONFIGURATION.md").read_text("utf-8")
EXAMPLES = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES)
def test_each_example_is_right(example: str) -> None:
    table = expand(tomllib.loads(example), {}, [])
    check(table, Trusted if "directories" in table else Files)


def test_the_complete_example_has_its_models() -> None:
    config = msgspec.convert(tomllib.loads(EXAMPLES[0]), Config)
    large, small = resolve(config, "large"), resolve(config, "small")
    assert large is not None and large.model.context_window == 128000
    assert small is not None and small.model.id == "small"


@pytest.mark.parametrize(
    "kind",
    [
        ModelChoice,
        ModelSettings,
        ProviderSettings,
        PermissionSettings,
        LimitSettings,
        ContextSettings,
        ToolSettings,
        ServerSettings,
        ClusterSettings,
        NotifySettings,
        HookGroup,
        SearchSettings,
    ],
)
def test_every_setting_is_described(kind: type[msgspec.Struct]) -> None:
    for setting in msgspec.structs.fields(kind):
        row = re.search(rf"^\| [^|]*`{setting.name}`[^|]*\| ([^|]*) \|", PAGE, re.MULTILINE)
        assert row, f"{setting.name} is not described"
        default: Any = setting.default
        if isinstance(default, bool):
            assert row[1] == str(default).lower(), setting.name
        elif isinstance(default, int | float):
            assert row[1].startswith(f"{default:g}" if default < 100_000 else str(default)), setting.name
        elif setting.required:
            assert row[1] == "(needed)"


def test_other_numbers_are_right() -> None:
    assert f"`{OPENAI_MODEL.id}`" in PAGE
    assert f"at most {MAX_FILE_BYTES // 1024} KiB, and a line at most {MAX_DOTS_IN_LINE} dots" in PAGE


@pytest.mark.parametrize(
    ("tool", "subject", "verdict"),
    [
        ("edit", "/p/a.py", "allow"),
        ("edit", "/p/.env", "deny"),
        ("edit", "/p/covey.toml", "ask"),
        ("edit", "/home/ann/.bashrc", "ask"),
        ("write", "/home/ann/notes/a.md", "allow"),
        ("write", "/home/ann/a.md", "ask"),
        ("bash", "make test", "allow"),
        ("bash", "make tests", "ask"),
        ("bash", "npm run build -- --watch", "allow"),
        ("bash", "npm run deploy", "ask"),
        ("bash", "npm run build; ls", "allow"),
        ("bash", "ls; make it-so", "ask"),
        ("bash", "git log; rm -rf x", "deny"),
        ("bash", "cd x && rm -rf y", "deny"),
        ("bash", "git push", "deny"),
    ],
)
def test_the_rules_shown_do_what_is_said(tool: str, subject: str, verdict: str) -> None:
    (example,) = (text for text in EXAMPLES if "git push" in text)
    permissions = msgspec.convert(tomllib.loads(example), Config).permissions
    rules = Rules(permissions.allowed, permissions.deny, permissions.ask, root="/p")
    effect = Effect.CHANGES_FILES if tool == "edit" else Effect.RUNS_COMMANDS
    intent = Intent(tool, "execute", subject, effect=effect)
    assert decide(intent, rules, frozenset(), skip=False) == verdict
    if verdict == "deny":
        assert decide(intent, rules, frozenset(), skip=True) == verdict
