"""A prefix is offered only where further words choose what of the project is run, and are no command themselves."""

from __future__ import annotations

import pytest

from covey.permissions.judge import Intent, Rules, Verdict, decide
from covey.permissions.prefixes import prefix_rules

RULES = Rules(root="/home/ann/birdhouse")


def offered(command: str) -> tuple[str, ...]:
    return prefix_rules(Intent("bash", "execute", command), RULES)


@pytest.mark.parametrize(
    ("command", "prefix"),
    [
        ("python -m pytest -q tests/test_a.py", "python -m pytest"),
        ("pytest", "pytest"),
        ("cd src && ruff check . | tail -5", "ruff check"),
        ("git commit -m 'a message'", "git commit"),
        ("uv run pytest -x", "uv run pytest"),
    ],
)
def test_a_known_command_is_offered_with_any_further_words(command: str, prefix: str) -> None:
    assert offered(command) == (f"bash:{prefix}", f"bash:{prefix} *")


@pytest.mark.parametrize(
    ("command", "script"),
    [
        ("npm test", "npm test"),
        ("npm test -- --watch=false", "npm test"),
        ("npm run build:all -- -v | tail -3", "npm run build:all"),
    ],
)
def test_a_script_of_npm_is_offered_with_words_of_its_own(command: str, script: str) -> None:
    assert offered(command) == (f"bash:{script}", f"bash:{script} -- *")
    rules = Rules(allow=offered(command), root=RULES.root)

    def verdict(line: str) -> Verdict:
        return decide(Intent("bash", "execute", line), rules, frozenset(), skip=False)

    assert verdict(f"{script} -- tests/a.js") is Verdict.ALLOW
    assert verdict(f"{script} --node-options=--require=./x.js") is Verdict.ASK
    assert verdict(f"{script} -- x; rm -rf y") is Verdict.ASK


@pytest.mark.parametrize(
    "command",
    [
        "python x.py",
        "python -c 'print(1)'",
        "python -m http.server",
        "python -m pytestevil",
        "sh -c pytest",
        "make test",
        "npm run --node-options=--require=./x.js test",
        "npm test --node-options=--require=./x.js",
        "npm run -- x",
        "npm exec x -- y",
        "npm run a$(b)",
        "cargo test",
        "go test ./...",
        "git push",
        "git -c core.pager=x commit",
        "./pytest -q",
        "pytest -q; rm -rf x",
        "PYTHONPATH=x pytest",
        "pytest > log",
        "echo x | pytest",
        "pytest $(cat list)",
        "sudo pytest",
        "xargs pytest",
        "env pytest",
        "git status",
        "pytest (",
    ],
)
def test_nothing_is_offered_that_could_be_any_command(command: str) -> None:
    assert offered(command) == ()


def test_only_commands_have_prefixes() -> None:
    assert prefix_rules(Intent("edit", "write", "/home/ann/birdhouse/a.py"), RULES) == ()


@pytest.mark.parametrize(
    ("command", "verdict"),
    [
        ("python -m pytest tests", Verdict.ALLOW),
        ("python -m pytest", Verdict.ALLOW),
        ("python -m pytestevil", Verdict.ASK),
        ("python x.py", Verdict.ASK),
        ("python -m pytest; rm x", Verdict.ASK),
        ("python -m pytest > /etc/passwd", Verdict.ASK),
    ],
)
def test_what_the_offered_rules_allow(command: str, verdict: Verdict) -> None:
    rules = Rules(allow=offered("python -m pytest -q"), root=RULES.root)
    assert decide(Intent("bash", "execute", command), rules, frozenset(), skip=False) is verdict
