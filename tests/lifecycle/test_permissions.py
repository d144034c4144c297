"""Allow, ask or deny. The commands below are what a model that was talked into mischief would try."""

from __future__ import annotations

import pytest

from covey.lifecycle.permissions import Rules, Verdict, Wish, decide

ALLOW, ASK, DENY = Verdict


def bash(command: str) -> Wish:
    return Wish(tool="bash", action="execute", subject=command)


def verdict(
    wish: Wish,
    *,
    allow: tuple[str, ...] = (),
    deny: tuple[str, ...] = (),
    granted: tuple[Wish, ...] = (),
    skip: bool = False,
) -> Verdict:
    return decide(wish, Rules(allow, deny), frozenset(wish.grant for wish in granted), skip=skip)


def test_without_a_rule_somebody_is_asked() -> None:
    assert verdict(bash("ls")) is ASK
    assert verdict(Wish("view", "read", "a.py", harmless=True)) is ALLOW


def test_a_rule_without_a_pattern_covers_the_whole_tool_and_no_other() -> None:
    assert verdict(bash("ls; rm -rf x"), allow=("bash",)) is ALLOW
    assert verdict(bash("ls"), allow=("bas", "bash2", "view")) is ASK
    assert verdict(bash("ls"), deny=("bash",), skip=True) is DENY


@pytest.mark.parametrize("command", ["git status", "git status --short", 'git status -- "a b"', "git status *.py"])
def test_an_allow_pattern_covers_one_simple_command(command: str) -> None:
    assert verdict(bash(command), allow=("bash:git status*",)) is ALLOW


@pytest.mark.parametrize(
    "command",
    [
        "git status; rm -rf x",
        "git status && rm -rf x",
        "git status || rm -rf x",
        "git status & rm -rf x",
        "git status | sh",
        "git status |& sh",
        "git status $(rm -rf x)",
        "git status ${x:=`rm -rf x`}",
        "git status `rm -rf x`",
        "git status $PAYLOAD",
        "git status\nrm -rf x",
        "git status\rrm -rf x",
        "git status > ~/.bashrc",
        "git status >> ~/.bashrc",
        "git status < secret",
        "git status <<< secret",
        "git status <(rm -rf x)",
        "git status \\\nrm",
        "git status {a,b}",
        "(git status)",
        "{ git status; }",
        "FOO=1 git status",
        "LD_PRELOAD=evil.so git status",
        "PATH+=:. git status",
        "  GIT_SSH_COMMAND=evil git status",
        "sh -c 'git status'",
        'bash -c "git status"',
        "env git status",
        "sudo git status",
        "eval git status",
        "xgit status",
        " git status",
        "GIT STATUS",
    ],
)
@pytest.mark.parametrize("pattern", ["bash:git status*", "bash:git *"])
def test_an_allow_pattern_never_covers_more_than_that(command: str, pattern: str) -> None:
    assert verdict(bash(command), allow=(pattern,)) is ASK


def test_not_even_a_pattern_that_covers_everything_covers_a_changed_environment() -> None:
    assert verdict(bash("LD_PRELOAD=evil.so git status"), allow=("bash:*",)) is ASK
    assert verdict(bash("git log --format=x"), allow=("bash:*",)) is ALLOW


def test_deny_wins_over_everything() -> None:
    wish = Wish("bash", "execute", "rm -rf x", harmless=True)
    assert verdict(wish, allow=("bash", "bash:rm *"), deny=("bash:rm *",), granted=(wish,), skip=True) is DENY


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf x",
        "rm\t-rf x",
        "  rm  x",
        "ls && rm x",
        "ls || rm x",
        "ls; rm x",
        "ls & rm x",
        "ls | rm x",
        "ls |rm x",
        "ls\nrm x",
        "(rm x)",
        "{ rm x; }",
        "echo $(rm x)",
        'echo "$(rm x)"',
        "echo `rm x`",
        "cat <(rm x)",
        "if true; then rm x; fi",
        "for f in *; do rm $f; done",
        "! rm x",
        "time rm x",
        "FOO=1 BAR=2 rm x",
        "sudo rm x",
        "sudo -E rm x",
        "env -i A=b rm x",
        "nohup rm x &",
        "nice -n 19 rm x",
        "command rm x",
        "exec rm x",
        "eval rm x",
        "eval 'rm x'",
        "sh -c 'rm x'",
        'bash -lc "rm x"',
        "/bin/sh -c 'cd a && rm x'",
        "/bin/rm x",
        "./rm x",
        "\\rm x",
        '"rm" x',
        "r'm' x",
        "ls | xargs rm",
        "ls | xargs -n 1 rm -f",
        "find . -name x -exec rm {} +",
        "find . -execdir rm {} \\;",
    ],
)
def test_a_denied_command_is_found_wherever_it_stands(command: str) -> None:
    assert verdict(bash(command), allow=("bash",), deny=("bash:rm *",), skip=True) is DENY


@pytest.mark.parametrize("command", ["git rm x", "echo rm x", "grep rm x", "ls confirm x", "rmdir x", "a=rm x"])
def test_a_word_is_not_a_command(command: str) -> None:
    assert verdict(bash(command), deny=("bash:rm *",), skip=True) is ALLOW


@pytest.mark.parametrize(
    ("command", "pattern"),
    [
        ("sudo git push", "bash:git push"),
        ("curl -s -X POST a", "bash:curl -s -X POST*"),
        ("a; curl  -X 'POST' b", "bash:curl -X POST *"),
    ],
)
def test_a_deny_pattern_is_matched_against_the_whole_plain_command(command: str, pattern: str) -> None:
    assert verdict(bash(command), deny=(pattern,), skip=True) is DENY
    assert verdict(Wish("write", "write", command), deny=(pattern,), skip=True) is ALLOW, "another tool"


def test_a_deny_pattern_may_name_what_else_stands_before_a_command() -> None:
    assert verdict(bash("ls && sudo -E make install"), deny=("bash:sudo *",), skip=True) is DENY
    assert verdict(bash("a | b"), deny=("bash:a | *",), skip=True) is DENY


def test_patterns_of_other_tools_are_about_paths_as_they_are() -> None:
    write = Wish("write", "write", "/project/src/a; rm b.py")
    assert verdict(write, allow=("write:/project/src/*",)) is ALLOW
    assert verdict(write, deny=("write:rm *",), allow=("write",)) is ALLOW
    assert verdict(write, deny=("write:/project/*",), allow=("write",)) is DENY
    assert verdict(write, allow=("write:/project/SRC/*",)) is ASK


def test_an_answer_for_the_session_covers_the_same_thing_only() -> None:
    granted = (bash("make"),)
    assert verdict(bash("make"), granted=granted) is ALLOW
    assert verdict(bash("make install"), granted=granted) is ASK
    assert verdict(Wish("bash", "kill", "make"), granted=granted) is ASK
    assert verdict(Wish("write", "execute", "make"), granted=granted) is ASK


def test_skipping_asks_nobody_but_still_denies() -> None:
    assert verdict(bash("make"), skip=True) is ALLOW
    assert verdict(bash("make && rm x"), deny=("bash:rm *",), skip=True) is DENY


def test_a_long_hostile_command_is_read_in_one_go() -> None:
    """Linear patterns only: each of these would take hours with one that backtracks."""
    for command in ("sudo " * 20_000, "a=b " * 20_000, "sh -c " * 20_000, "x/" * 20_000, "'" * 40_000, ";" * 40_000):
        assert verdict(bash(command), deny=("bash:rm *",), skip=True) is ALLOW
