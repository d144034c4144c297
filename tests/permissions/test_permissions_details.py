"""Corners of rules: what exactly fits, what is reported about it, and what "always allow" offers."""

from __future__ import annotations

import pytest

from covey.permissions.judge import Intent, Rules, Verdict, decide, explain, session_rule
from tests.permissions.test_permissions import ALLOW, ASK, DENY, ROOT, bash


def found(intent: Intent, **rules: tuple[str, ...]) -> Verdict:
    return decide(intent, Rules(root=ROOT, **rules), frozenset(), skip=False)


def write(path: str, tool: str = "write") -> Intent:
    return Intent(tool, "write", path)


@pytest.mark.parametrize(
    ("intent", "rule"),
    [
        (write("/project/a.lock"), "write"),
        (write("/project/a.lock"), "write:*.lock"),
        (bash("ls"), "bash"),
        (bash("ls"), "bash:ls*"),
        (bash("ls > /project/a.lock"), "write:a.lock"),
        (bash("ls > ./a.lock"), "edit:a.lock"),
        (bash("sudo git push; echo 'x"), "bash:git push"),
        (bash("ls; sudo -E make 'x"), "bash:sudo *"),
        (bash("sudo git; echo 'x"), "bash:git *"),
    ],
)
def test_a_deny_rule_that_hits_is_named(intent: Intent, rule: str) -> None:
    assert found(intent, deny=(rule,)) is DENY
    assert explain(intent, Rules(deny=(rule,), root=ROOT)) == f"The rule {rule} forbids it."


def test_a_command_that_writes_nowhere_is_not_about_files() -> None:
    assert found(bash("ls > ''"), deny=("write:/project/*",)) is ASK
    assert found(bash("ls > a"), deny=("write",)) is ASK, "that rule is about the tool"


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("src/*", "src/a.py", True),
        ("src/*", "sub/a.py", False),
        ("/src/*", "src/a.py", False),
    ],
)
def test_a_relative_path_is_seen_from_the_workspace(pattern: str, path: str, fits: bool) -> None:
    assert found(write(path), allow=(f"write:{pattern}",)) is (ALLOW if fits else ASK)


def test_without_a_workspace_a_relative_pattern_fits_no_absolute_path() -> None:
    assert decide(write("/etc/x"), Rules(allow=("write:etc/*",)), frozenset(), skip=False) is ASK
    assert session_rule(write("/etc/x")) == ("write:/etc/x",)


@pytest.mark.parametrize(
    ("command", "rule", "verdict"),
    [
        ("make > log", "bash:make > log", ALLOW),
        ("make > *", "bash:make > *", ASK),  # a pattern is not the text that it looks like
        ("make > a*", "bash:make > a[*]", ALLOW),
        ("sudo make", "bash:sudo *", ALLOW),  # what a command runs is its own business
        ("ls; sudo make", "bash:sudo *", ALLOW),
        ("sudo make; make", "bash:sudo *", ASK),
        ("/bin/r? x", "bash:*", ASK),  # any program may hide there
    ],
)
def test_an_allow_rule_covers_what_it_names(command: str, rule: str, verdict: Verdict) -> None:
    assert found(bash(command), allow=(rule,)) is verdict


def test_an_answer_covers_a_change_of_the_same_file_by_any_tool() -> None:
    granted = frozenset({write("/project/a").grant})
    assert decide(write("/project/a", "edit"), Rules(), granted, skip=False) is ALLOW
    assert decide(write("/project/b", "edit"), Rules(), granted, skip=False) is ASK
    assert bash("make").grant == ("bash", "execute", "make")


@pytest.mark.parametrize(
    ("intent", "rules"),
    [
        (bash("make; cat /project/a"), ("bash:make",)),
        (bash("make ''"), ("bash:make ''",)),
        (bash('make "it\'s"'), ("bash:make 'it'\\''s'",)),
        (Intent("bash", "execute", "> a", cwd="/elsewhere"), ("bash:> a",)),
    ],
)
def test_always_allowing_offers_no_more_than_is_needed(intent: Intent, rules: tuple[str, ...]) -> None:
    assert session_rule(intent, Rules(root=ROOT)) == rules


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("IFS=x", "It sets a variable that may change what it does."),
        ("> a", "It writes into a file."),
        ("x" * 80, f"No rule allows `{'x' * 80}`."),
        ("x" * 81, f"No rule allows `{'x' * 79}…`."),
    ],
)
def test_what_a_sentence_is_about_has_its_place_in_it(command: str, sentence: str) -> None:
    assert explain(bash(command), Rules(root=ROOT)) == sentence
