"""The table of command lines: nothing dangerous is allowed, and nothing harmless asked about without a reason."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from covey.permissions.judge import Intent, Judgement, Rules, Verdict, decide, explain, judge

RULES = Rules(
    allow=("bash:make test", "bash:npm *", "bash:python3", "write:out/**"),
    deny=("bash:rm *", "bash:git push*", "write:**/*.lock"),
    ask=("bash:git log --all*",),
    root="/p",
)


def table() -> Iterator[tuple[str, str, str]]:
    _, _, text = (Path(__file__).parent / "shell_commands.txt").read_text("utf-8").partition("\n\n")
    for section in f"\n{text}".split("\n== ")[1:]:
        title, *lines = section.splitlines()
        verdict, tag = title.split()
        for line in filter(None, lines):
            plain = re.sub(r"<U\+(\w{4})>", lambda found: chr(int(found[1], 16)), line.replace("⏎", "\n"))
            yield plain.removeprefix("«").removesuffix("»"), verdict, tag


CASES = list(table())


def bash(command: str) -> Intent:
    return Intent("bash", "execute", command)


def test_the_table_is_long_and_says_nothing_twice() -> None:
    lines = [line for line, _, _ in CASES]
    assert len(lines) > 500
    assert len(set(lines)) == len(lines)


@pytest.mark.parametrize(("line", "verdict", "tag"), CASES)
def test_each_command_line_is_judged_as_the_table_says(line: str, verdict: str, tag: str) -> None:
    found = judge(bash(line), RULES, frozenset(), skip=False)
    assert Judgement(found.verdict, found.tag) == Judgement(Verdict(verdict), tag)
    assert explain(bash(line), RULES).endswith((".", "…"))


@pytest.mark.parametrize(("line", "verdict", "tag"), CASES)
def test_plan_mode_lets_only_harmless_lines_through(line: str, verdict: str, tag: str) -> None:
    harmless = tag in ("harmless", "ask-rule") and "sh -c" not in line
    found = decide(bash(line), RULES, frozenset(), skip=True, plan=True)
    assert found is (Verdict.ALLOW if harmless else Verdict.DENY)


@pytest.mark.parametrize(("line", "verdict", "tag"), CASES)
def test_skipping_allows_all_but_what_is_denied(line: str, verdict: str, tag: str) -> None:
    found = decide(bash(line), RULES, frozenset(), skip=True)
    assert found is (Verdict.DENY if verdict == "deny" else Verdict.ALLOW)
