"""Files that usually hold secrets are asked about, by whatever tool, command or pattern they are named."""

from __future__ import annotations

import pytest

from covey.permissions.judge import Rules, Verdict, Wish, explain, judge

ROOT = "/p"


def tag(wish: Wish, *allow: str) -> str:
    return judge(wish, Rules(allow=allow, root=ROOT), frozenset(), skip=False).tag


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
    assert tag(Wish("bash", "execute", line)) == "secret"


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
    assert tag(Wish("bash", "execute", line)) == "harmless"


@pytest.mark.parametrize("tool", ["view", "grep"])
@pytest.mark.parametrize("path", [".env", "sub/.env.local", ".ssh/config", "keys/server.pem", "credentials.json"])
def test_a_tool_that_reads_a_secret_asks_as_a_command_does(tool: str, path: str) -> None:
    wish = Wish(tool, "read", f"/p/{path}", harmless=True)
    assert tag(wish) == "secret"
    assert explain(wish, Rules(root=ROOT)) == f"`{path}` may show secrets."
    assert tag(wish, f"{tool}:{path}") == tag(wish, tool) == "allow-rule"
    assert judge(wish, Rules(root=ROOT), frozenset({wish.grant}), skip=False).verdict is Verdict.ALLOW
    assert judge(wish, Rules(root=ROOT), frozenset(), skip=False, plan=True).verdict is Verdict.ASK


def test_names_are_listed_and_other_files_are_read_unasked() -> None:
    assert tag(Wish("ls", "list", "/p/.ssh", harmless=True)) == "harmless"
    assert tag(Wish("view", "read", "/p/src/environment.py", harmless=True)) == "harmless"
    assert tag(Wish("view", "read", "/spill/.env/1", harmless=True)) == "harmless", "not in the workspace"
