"""The small things that the parser and the judge of command lines do, each seen through a line that needs it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from covey.permissions.judge import Judgement, Verdict, judge
from covey.permissions.safe_options import Spec, by_spec
from covey.permissions.safe_paths import Place
from covey.permissions.shell import MAX_COMMANDS, MAX_LENGTH, Line, SimpleCommand, Unparsed, parse
from covey.permissions.shell_words import Word, literal
from tests.permissions.test_permissions_table import CASES, RULES, bash


def table() -> Iterator[tuple[str, str, str]]:
    _, _, text = Path(__file__).with_name("shell_details.txt").read_text("utf-8").partition("\n\n")
    for section in f"\n{text}".split("\n== ")[1:]:
        title, *lines = section.splitlines()
        verdict, tag = title.split()
        for line in filter(None, lines):
            yield line.replace("⏎", "\n").removeprefix("«").removesuffix("»"), verdict, tag


DETAILS = list(table())


def test_no_line_stands_in_both_tables() -> None:
    lines = [line for line, _, _ in (*CASES, *DETAILS)]
    assert len(set(lines)) == len(lines)


@pytest.mark.parametrize(("line", "verdict", "tag"), DETAILS)
def test_each_detail_is_judged_as_the_table_says(line: str, verdict: str, tag: str) -> None:
    found = judge(bash(line), RULES, frozenset(), skip=False)
    assert Judgement(found.verdict, found.tag) == Judgement(Verdict(verdict), tag)


# ── what is found, in full ──


def spelled(word: Word) -> str:
    if word.known:
        return word.text or "''"
    after = f" after {word.head}" if word.head else ""
    return f"{word.text}‹{word.kind.name.lower()}{after}›"


def described(command: SimpleCommand) -> str:
    parts = [f"{name}={spelled(value)}" for name, value in command.assigns]
    parts += [spelled(word) for word in command.words]
    parts += [f"{redirect.op}{spelled(redirect.target)}" for redirect in command.redirects]
    parts += [f"@{command.parent}"] * (command.parent >= 0) + ["fed"] * command.fed + ["looped"] * command.looped
    return " · ".join(parts)


def all_of(text: str) -> list[str]:
    line = parse(text)
    if isinstance(line, Unparsed):
        return [f"? {line.reason}"]
    return [described(command) for command in line.commands] + sorted(f"! {oddity}" for oddity in line.oddities)


def parsed() -> Iterator[tuple[str, list[str]]]:
    _, *blocks = Path(__file__).with_name("shell_parsed.txt").read_text("utf-8").strip("\n").split("\n\n")
    for block in blocks:
        text, *found = block.replace("⇥", "\t").split("\n")
        yield text.replace("⏎", "\n"), [line.replace("⏎", "\n").removeprefix("    ") for line in found]


@pytest.mark.parametrize(("text", "found"), list(parsed()))
def test_each_line_is_parsed_as_the_table_says(text: str, found: list[str]) -> None:
    assert all_of(text) == found


def test_what_stands_behind_a_dash_is_not_lost() -> None:
    line = parse("env - a")
    assert isinstance(line, Line)
    assert (line.commands[-1].parent, line.commands[-1].words[-1].text) == (0, "a")


# ── bounds ──


def nested_documents(levels: int) -> str:
    text = "a"
    for level in range(levels):
        text = f"cat <<E{level}\n$({text}\n)\nE{level}"
    return text


@pytest.mark.parametrize(
    ("text", "is_read"),
    [
        ("a" * MAX_LENGTH, True),
        ("a" * (MAX_LENGTH + 1), False),
        ("a;" * MAX_COMMANDS, True),
        ("a;" * (MAX_COMMANDS + 1), False),
        ("( " * 12 + "a" + " )" * 12, True),
        ("( " * 20 + "a" + " )" * 20, False),
        ("(a);" * 40, True),
        ("(a);" * 40 + "( " * 20 + "a" + " )" * 20, False),
        ("a " + "${x:-" * 5 + "}" * 5, True),
        ("a " + "${x:-" * 40 + "}" * 40, False),
        ("a " + "$x " * 40, True),
        ("a " + "$x " * 40 + "${x:-" * 40 + "}" * 40, False),
        ("sudo " * 20 + "a", True),
        ("sudo " * 40 + "a", False),
        ("sudo a;" * 40, True),
        ("sudo a;" * 40 + "sudo " * 40 + "a", False),
        (nested_documents(3), True),
        (nested_documents(40), False),
    ],
)
def test_what_is_a_program_rather_than_a_line_is_not_read(text: str, is_read: bool) -> None:
    assert isinstance(parse(text), Line if is_read else Unparsed)


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        ("eval " * 3 + "a", True),
        ("eval " * 6 + "a", False),
        ("eval " * 2 + "a" + " b" * 1_000, True),
        ("eval " * 2 + "a" + " b" * 10_000, False),
    ],
)
def test_a_text_within_a_text_is_read_only_so_often(text: str, is_found: bool) -> None:
    line = parse(text)
    assert isinstance(line, Line)
    assert (line.commands[-1].name == "a") is is_found
    assert line.commands[-1].words[0].known is is_found, "what is not read is not known"


# ── options ──


def test_operands_that_are_no_paths_may_be_anything() -> None:
    words = [literal("-a"), literal("/etc/passwd")]
    assert by_spec(words, Spec(short="a", paths=False), Place()) == ""
    assert by_spec(words, Spec(short="a"), Place()) == "outside"
