"""Allow, ask or deny. The commands below are what a model that was talked into mischief would try."""

from __future__ import annotations

import pytest

from covey.permissions.judge import Intent, Rules, Verdict, decide, explain, session_rule
from covey.protocol.effects import Effect

ALLOW, ASK, DENY = Verdict


def bash(command: str) -> Intent:
    return Intent(tool="bash", action="execute", subject=command)


def verdict(
    intent: Intent,
    *,
    allow: tuple[str, ...] = (),
    deny: tuple[str, ...] = (),
    granted: tuple[Intent, ...] = (),
    skip: bool = False,
) -> Verdict:
    return decide(intent, Rules(allow, deny), frozenset(intent.grant for intent in granted), skip=skip)


def test_without_a_rule_somebody_is_asked() -> None:
    assert verdict(bash("make")) is ASK
    assert verdict(bash("ls")) is ALLOW, "it only looks"
    assert verdict(Intent("view", "read", "a.py", harmless=True)) is ALLOW


def test_a_rule_without_a_pattern_covers_the_whole_tool_and_no_other() -> None:
    assert verdict(bash("ls; rm -rf x"), allow=("bash",)) is ALLOW
    assert verdict(bash("make"), allow=("bas", "bash2", "view")) is ASK
    assert verdict(bash("ls"), deny=("bash",), skip=True) is DENY


@pytest.mark.parametrize(
    "command",
    [
        "git fetch",
        "git fetch --all",
        'git fetch -- "a b"',
        "git fetch *.py",
        " git  fetch",
        "(git fetch)",
        "git fetch \\\n --all",
        "git fetch && git fetch -a; ls | head",
        "cd sub && git fetch",
        "timeout 5 git fetch",
    ],
)
def test_an_allow_pattern_covers_its_command_beside_harmless_ones(command: str) -> None:
    assert verdict(bash(command), allow=("bash:git fetch*",)) is ALLOW


@pytest.mark.parametrize(
    "command",
    [
        "git fetch; rm -rf x",
        "git fetch && rm -rf x",
        "git fetch || rm -rf x",
        "git fetch & rm -rf x",
        "git fetch | sh",
        "git fetch |& sh",
        "git fetch $(rm -rf x)",
        "git fetch ${x:=`rm -rf x`}",
        "git fetch `rm -rf x`",
        "git fetch $PAYLOAD",
        "git fetch\nrm -rf x",
        "git fetch\rrm -rf x",
        "git fetch > ~/.bashrc",
        "git fetch >> ~/.bashrc",
        "git fetch < secret",
        "git fetch <<< secret",
        "git fetch <(rm -rf x)",
        "git fetch {a,b}",
        "FOO=1 git fetch",
        "LD_PRELOAD=evil.so git fetch",
        "PATH+=:. git fetch",
        "  GIT_SSH_COMMAND=evil git fetch",
        "sh -c 'git fetch'",
        'bash -c "git fetch"',
        "env git fetch",
        "sudo git fetch",
        "eval git fetch",
        "xgit fetch",
        "GIT FETCH",
    ],
)
@pytest.mark.parametrize("pattern", ["bash:git fetch*", "bash:git f*"])
def test_an_allow_pattern_never_covers_more_than_that(command: str, pattern: str) -> None:
    assert verdict(bash(command), allow=(pattern,)) is ASK


def test_not_even_a_pattern_that_covers_everything_covers_a_changed_environment() -> None:
    assert verdict(bash("LD_PRELOAD=evil.so git fetch"), allow=("bash:*",)) is ASK
    assert verdict(bash("git log --format=x"), allow=("bash:*",)) is ALLOW


def test_deny_wins_over_everything() -> None:
    intent = Intent("bash", "execute", "rm -rf x", harmless=True)
    assert verdict(intent, allow=("bash", "bash:rm *"), deny=("bash:rm *",), granted=(intent,), skip=True) is DENY


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
    assert verdict(Intent("write", "write", command), deny=(pattern,), skip=True) is ALLOW, "another tool"


def test_a_deny_pattern_may_name_what_else_stands_before_a_command() -> None:
    assert verdict(bash("ls && sudo -E make install"), deny=("bash:sudo *",), skip=True) is DENY
    assert verdict(bash("a | b"), deny=("bash:a | *",), skip=True) is DENY


def test_patterns_of_other_tools_are_about_paths_as_they_are() -> None:
    write = Intent("write", "write", "/project/src/a; rm b.py")
    assert verdict(write, allow=("write:/project/src/*",)) is ALLOW
    assert verdict(write, deny=("write:rm *",), allow=("write:/project/**",)) is ALLOW
    assert verdict(write, deny=("write:/project/*",), allow=("write:/project/**",)) is DENY
    assert verdict(write, allow=("write:/project/SRC/*",)) is ASK


ROOT = "/project"


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("src/**", "/project/src/a.py", True),
        ("src/**", "/project/src/a/b/c.py", True),
        ("src/**", "/project/src", False),
        ("src/**", "/project/srcs/a.py", False),
        ("src/**", "/elsewhere/src/a.py", False),
        ("*.md", "/project/README.md", True),
        ("*.md", "/project/docs/a.md", False),
        ("**/*.md", "/project/docs/a/b.md", True),
        ("**/*.md", "/project/README.md", True),
        ("src/*/a.py", "/project/src/x/a.py", True),
        ("src/*/a.py", "/project/src/x/y/a.py", False),
        ("**/x/**/a.py", "/project/x/y/x/z/a.py", True),
        ("**", "/project/a/b", True),
        ("**", "/project/.git/config", False),
        (".git/**", "/project/.git/config", True),
        ("/project/src/*", "/project/src/a.py", True),
        ("/other/**", "/other/a/b", True),
        ("**", "/other/a", False),
        ("src/**", "/project/src/../x", False),
        ("a[*].py", "/project/a*.py", True),
        ("a[*].py", "/project/ab.py", False),
    ],
)
def test_a_path_pattern_is_read_strictly_where_it_allows(pattern: str, path: str, fits: bool) -> None:
    rules = Rules(allow=(f"write:{pattern}",), root=ROOT)
    assert decide(Intent("write", "write", path), rules, frozenset(), skip=False) is (ALLOW if fits else ASK)


@pytest.mark.parametrize("pattern", ["*.env", "*/.env", "**/.env", ".env", "/project/*", "/project/**", "*"])
def test_a_path_pattern_is_read_generously_where_it_denies(pattern: str) -> None:
    rules = Rules(deny=(f"write:{pattern}",), root=ROOT)
    assert decide(Intent("write", "write", "/project/.env"), rules, frozenset(), skip=True) is DENY
    assert decide(bash("ls > .env"), rules, frozenset(), skip=True) is DENY
    assert decide(Intent("edit", "write", "/project/.env"), rules, frozenset(), skip=True) is ALLOW


def test_an_ask_rule_overrules_what_allows_but_not_an_answer() -> None:
    rules = Rules(allow=("bash:git log*",), ask=("bash:git log*", "view:secret/**"), root=ROOT)
    intent = bash("ls && git log")
    assert decide(intent, rules, frozenset(), skip=False) is ASK
    assert decide(intent, rules, frozenset({intent.grant}), skip=False) is ALLOW
    assert decide(intent, rules, frozenset(), skip=True) is ALLOW
    view = Intent("view", "read", "/project/secret/a", harmless=True)
    assert decide(view, rules, frozenset(), skip=False) is ASK


def test_plan_mode_only_looks() -> None:
    rules = Rules(allow=("bash", "write"), deny=("bash:git log*",), root=ROOT)
    make, write = bash("make"), Intent("write", "write", "/project/a")
    assert decide(make, rules, frozenset({make.grant}), skip=True, plan=True) is DENY
    assert decide(write, rules, frozenset(), skip=True, plan=True) is DENY
    assert decide(bash("ls"), rules, frozenset(), skip=False, plan=True) is ALLOW
    assert decide(bash("git log"), rules, frozenset(), skip=True, plan=True) is DENY
    assert (
        decide(Intent("view", "read", "/project/a", harmless=True), rules, frozenset(), skip=False, plan=True) is ALLOW
    )
    assert (
        decide(Intent("view", "read", "/etc/a", effect=Effect.LOOKS), rules, frozenset(), skip=False, plan=True) is ASK
    )
    assert explain(make, rules, plan=True) == "In plan mode nothing is changed, and only looking is allowed."


def test_the_directory_of_a_command_counts() -> None:
    rules = Rules(root=ROOT)
    inside = Intent("bash", "execute", "cat ../a", cwd="/project/src")
    assert decide(inside, rules, frozenset(), skip=False) is ALLOW
    assert decide(bash("cat ../a"), rules, frozenset(), skip=False) is ASK
    assert decide(Intent("bash", "execute", "ls", cwd="/elsewhere"), rules, frozenset(), skip=False) is ASK
    assert decide(Intent("bash", "execute", "git status", cwd="/project/src"), rules, frozenset(), skip=False) is ASK
    assert inside.grant != bash("cat ../a").grant


@pytest.mark.parametrize(
    ("intent", "rules"),
    [
        (bash("make all"), ("bash:make all",)),
        (bash("cd src && make -j 4 2>&1 | tail -5"), ("bash:make -j 4",)),
        (bash("make a; make b; ls"), ("bash:make a", "bash:make b")),
        (bash("touch a*"), ("bash:touch a[*]",)),
        (bash("git commit -m 'a b'"), ("bash:git commit -m 'a b'",)),
        (bash("make > log"), ("bash:make > log",)),
        (bash("FOO=1 make $x"), ("bash:FOO=1 make $x",)),
        (bash("sudo make install"), ("bash:sudo make install",)),
        (bash("make 'open"), ()),
        (Intent("write", "write", "/project/src/[a].py"), ("write:src/[[]a].py",)),
        (Intent("edit", "write", "/etc/hosts"), ("edit:/etc/hosts",)),
        (Intent("write", "write", "/project/.git/config"), ("write:.git/config",)),
    ],
)
def test_always_allowing_adds_the_narrowest_rule_that_does(intent: Intent, rules: tuple[str, ...]) -> None:
    assert session_rule(intent, Rules(root=ROOT)) == rules
    if rules:
        assert decide(intent, Rules(allow=rules, root=ROOT), frozenset(), skip=False) is ALLOW


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("make", "No rule allows `make`."),
        ("rm x", "The rule bash:rm * forbids it."),
        ("ls; cat ../x", "`cat ../x` reaches outside of the workspace."),
        ("ls > a", "`ls` writes into a file."),
        ("ls 'a", "The command could not be understood for certain (an open quote)."),
        ("ls", "It only looks."),
        ("echo " + "x" * 100 + " $y", "What `echo " + "x" * 74 + "…` works on is only known when it runs."),
    ],
)
def test_a_verdict_is_explained_in_a_sentence(command: str, sentence: str) -> None:
    assert explain(bash(command), Rules(deny=("bash:rm *",), root=ROOT)) == sentence


def test_an_answer_for_the_session_covers_the_same_thing_only() -> None:
    granted = (bash("make"),)
    assert verdict(bash("make"), granted=granted) is ALLOW
    assert verdict(bash("make install"), granted=granted) is ASK
    assert verdict(Intent("bash", "kill", "make"), granted=granted) is ASK
    assert verdict(Intent("write", "execute", "make"), granted=granted) is ASK


def test_skipping_asks_nobody_but_still_denies() -> None:
    assert verdict(bash("make"), skip=True) is ALLOW
    assert verdict(bash("make && rm x"), deny=("bash:rm *",), skip=True) is DENY


def test_a_long_hostile_command_is_read_in_one_go() -> None:
    """Linear patterns only: each of these would take hours with one that backtracks."""
    for command in ("sudo " * 20_000, "a=b " * 20_000, "sh -c " * 20_000, "x/" * 20_000, "'" * 40_000, ";" * 40_000):
        assert verdict(bash(command), deny=("bash:rm *",), skip=True) is ALLOW
