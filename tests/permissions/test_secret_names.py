"""Files that usually hold secrets are asked about, by whatever tool, command or pattern they are named."""

from __future__ import annotations

import pytest

from covey.permissions.judge import Intent, Rules, Verdict, explain, judge
from covey.protocol.effects import Effect

ROOT = "/p"


def tag(intent: Intent, *allow: str) -> str:
    return judge(intent, Rules(allow=allow, root=ROOT), frozenset(), skip=False).tag


@pytest.mark.parametrize(
    "line",
    [
        "cat .env",
        "cat .[^a]nv",
        "cat .[[:alpha:]]nv",
        "cat .e?v",
        "find . -name .env -exec cat {} +",
        "find . -iname .ENV -exec cat {} \\;",
        "find . -name '.e*' -exec cat {} \\;",
        "find . -name '*env' -exec cat {} \\;",
        "find . -name '.[^a]nv' -exec cat {} \\;",
        "find . -path '*/.ssh/*' -exec cat {} \\;",
        "find . -name '*.pem' -exec cat {} \\;",
        "find . -regex '.*/\\.env' -exec cat {} \\;",
        "grep -r x --include=.env .",
        "grep -r x --include .env .",
        "grep -rh '' --include='.en*' .",
        "rg -uu -g .env x",
        "rg --hidden --glob=.env x",
        "rg --hidden -g'*.pem' x",
    ],
)
def test_a_command_that_picks_out_a_secret_is_asked_about(line: str) -> None:
    assert tag(Intent("bash", "execute", line)) == "secret"


@pytest.mark.parametrize(
    "line",
    [
        "find . -name .env",
        "find . -name '*.json' -exec grep -l x {} +",
        "find . -type f -exec grep -l x {} +",
        "grep -rn x --include='*.py' --include='*.yaml' .",
        "grep -rn x .",
        "rg -g '!.env' -g '*.toml' x",
        "cat .env.example",
    ],
)
def test_a_search_through_all_files_or_for_names_only_is_not(line: str) -> None:
    assert tag(Intent("bash", "execute", line)) == "harmless"


@pytest.mark.parametrize("tool", ["view", "grep"])
@pytest.mark.parametrize("path", [".env", "sub/.env.local", ".ssh/config", "keys/server.pem", "credentials.json"])
def test_a_tool_that_reads_a_secret_asks_as_a_command_does(tool: str, path: str) -> None:
    intent = Intent(tool, "read", f"/p/{path}", harmless=True, effect=Effect.LOOKS)
    assert tag(intent) == "secret"
    assert explain(intent, Rules(root=ROOT)) == f"`{path}` may show secrets."
    assert tag(intent, f"{tool}:{path}") == tag(intent, tool) == "allow-rule"
    assert judge(intent, Rules(root=ROOT), frozenset({intent.grant}), skip=False).verdict is Verdict.ALLOW
    assert judge(intent, Rules(root=ROOT), frozenset(), skip=False, plan=True).verdict is Verdict.ASK


def test_names_are_listed_and_other_files_are_read_unasked() -> None:
    assert tag(Intent("ls", "list", "/p/.ssh", harmless=True)) == "harmless"
    assert tag(Intent("view", "read", "/p/src/environment.py", harmless=True)) == "harmless"
    assert tag(Intent("view", "read", "/spill/.env/1", harmless=True)) == "harmless", "not in the workspace"
