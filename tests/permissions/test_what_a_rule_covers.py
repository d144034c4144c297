"""A rule covers what it says, and nothing that changes the rules: Covey's own files, `.git`, options that write."""

from __future__ import annotations

import pytest

from covey.permissions.judge import Intent, Rules, Verdict, decide, session_rule
from covey.protocol.effects import Effect

ROOT = "/project"
OWN = ("/home/ann/.config/covey", "/home/ann/.local/share/covey", "/project/data")
CHANGES = ("write", "edit", "multiedit", "download")


def change(tool: str, path: str) -> Intent:
    if tool == "download":
        return Intent(tool, "download", f"https://example.org/a -> {path}", effect=Effect.CHANGES_FILES)
    return Intent(tool, "write", path, effect=Effect.CHANGES_FILES)


def verdict(intent: Intent, *allow: str, granted: tuple[Intent, ...] = ()) -> Verdict:
    rules = Rules(allow=allow, root=ROOT, own=OWN)
    return decide(intent, rules, frozenset(intent.grant for intent in granted), skip=False)


@pytest.mark.parametrize("tool", CHANGES)
def test_a_rule_without_a_pattern_covers_the_files_of_the_workspace(tool: str) -> None:
    for path in ("a.py", "src/deep/b.py", ".github/workflows/ci.yml", ".gitignore", "docs/covey.md", "database"):
        assert verdict(change(tool, f"/project/{path}"), tool) is Verdict.ALLOW


@pytest.mark.parametrize("tool", CHANGES)
@pytest.mark.parametrize(
    "path",
    [
        "/home/ann/.bashrc",
        "/home/ann/.ssh/authorized_keys",
        "/project2/a.py",
        "/project/.git/config",
        "/project/.git/hooks/pre-commit",
        "/project/.GIT/config",
        "/project/sub/.git/config",
        "/project/covey.toml",
        "/project/sub/covey.toml",
        "/project/.covey/state",
        "/project/data/covey.db",
        "/home/ann/.config/covey/config.toml",
        "/home/ann/.config/covey/trusted.toml",
        "/home/ann/.local/share/covey/token",
    ],
)
def test_a_rule_without_a_pattern_covers_nothing_outside_nor_what_makes_rules(tool: str, path: str) -> None:
    assert verdict(change(tool, path), tool) is Verdict.ASK


@pytest.mark.parametrize(
    ("rule", "path", "covered"),
    [
        ("write:/home/ann/notes/**", "/home/ann/notes/a.md", True),
        ("write:/home/ann/**", "/home/ann/.config/covey/config.toml", False),
        ("write:/home/ann/.config/covey/*.toml", "/home/ann/.config/covey/config.toml", True),
        ("write:**", "/project/covey.toml", False),
        ("write:*.toml", "/project/covey.toml", False),
        ("write:covey.toml", "/project/covey.toml", True),
        ("write:**/.covey/**", "/project/.covey/x", True),
        ("write:**", "/project/data/covey.db", False),
        ("write:data/**", "/project/data/covey.db", True),
    ],
)
def test_a_pattern_covers_what_is_protected_only_where_it_names_it(rule: str, path: str, covered: bool) -> None:
    assert verdict(change("write", path), rule) is (Verdict.ALLOW if covered else Verdict.ASK)


def test_a_redirection_is_covered_as_a_write_is() -> None:
    assert verdict(Intent("bash", "execute", "ls > out.txt"), "write") is Verdict.ALLOW
    for target in ("covey.toml", ".git/hooks/pre-commit", "data/x", "../a"):
        assert verdict(Intent("bash", "execute", f"ls > {target}"), "write") is Verdict.ASK


def test_an_answer_for_the_session_covers_the_very_same_file() -> None:
    granted = (change("write", "/project/covey.toml"),)
    assert verdict(change("edit", "/project/covey.toml"), granted=granted) is Verdict.ALLOW
    assert verdict(change("edit", "/project/.covey"), granted=granted) is Verdict.ASK
    assert verdict(change("edit", "/project/sub/covey.toml"), granted=granted) is Verdict.ASK


def test_always_allowing_a_protected_file_names_it() -> None:
    intent = change("edit", "/home/ann/.config/covey/config.toml")
    rules = session_rule(intent, Rules(root=ROOT, own=OWN))
    assert rules == ("edit:/home/ann/.config/covey/config.toml",)
    assert verdict(intent, *rules) is Verdict.ALLOW


@pytest.mark.parametrize(
    ("rule", "line"),
    [
        ("bash:git log*", "git log -1 --format=format:%s --output=/home/ann/.profile"),
        ("bash:git log*", "git log -1 --output /home/ann/.profile"),
        ("bash:git log*", "git log --outp=x"),
        ("bash:git *", "git -c core.pager=evil log"),
        ("bash:git *", "git grep -Oevil x"),
        ("bash:git diff*", "git diff --ext-diff"),
        ("bash:find *", "find . -delete"),
        ("bash:find *", "find . -exec rm {} +"),
        ("bash:find *", "find . -fprintf x y"),
        ("bash:sort *", "sort -uo x y"),
        ("bash:sort *", "sort --output=x y"),
        ("bash:sort *", "sort --compress-program=./evil y"),
        ("bash:sed *", "sed -ni s/a/b/w x"),
        ("bash:sed *", "sed --in-place s/a/b/ x"),
        ("bash:rg *", "rg --pre ./evil x"),
        ("bash:tree *", "tree -o x"),
        ("bash:?ort *", "sort -o x y"),
    ],
)
def test_a_wildcard_does_not_cover_an_option_that_writes_or_runs(rule: str, line: str) -> None:
    assert verdict(Intent("bash", "execute", line), rule) is Verdict.ASK
    assert verdict(Intent("bash", "execute", line), f"bash:{line}") is Verdict.ALLOW


@pytest.mark.parametrize(
    ("rule", "line"),
    [
        ("bash:git log*", "git log --walk-reflogs --submodule=log --oneline"),
        ("bash:git *", "git switch -c new"),
        ("bash:git log --output=*", "git log --output=x"),
        ("bash:find * -delete", "find . -name x -delete"),
        ("bash:find . -exec chmod *", "find . -exec chmod 644 {} +"),
        ("bash:sed -i *", "sed -i s/a/b/ x"),
        ("bash:sort *", "sort --parallel=4 -k 1,2 x"),
        ("bash:make *", "make -o x"),
    ],
)
def test_a_wildcard_covers_every_other_option_and_those_that_the_rule_names(rule: str, line: str) -> None:
    assert verdict(Intent("bash", "execute", line), rule) is Verdict.ALLOW
