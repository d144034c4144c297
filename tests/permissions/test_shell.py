"""The shell parser: which commands it finds, that it never fails, and that it agrees with a real bash."""

from __future__ import annotations

import random
import shutil
import sys
from collections import Counter
from pathlib import Path
from types import FrameType

import hypothesis.strategies as st
import pytest
from hypothesis import example, given, settings

from covey.permissions.judge import Intent, Rules, Verdict, decide, explain, session_rule
from covey.permissions.shell import MAX_LENGTH, Line, Unparsed, parse
from tests.permissions.fuzz_shell import Arena, fault, made_up, soup, structured

CALLS_PER_CHARACTER = 50
"""Twice what the most demanding of the texts takes."""


def commands(text: str) -> list[list[str]]:
    line = parse(text)
    assert isinstance(line, Line), line
    return [[word.text for word in command.words] for command in line.commands]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        ("# only a comment", []),
        ("a 'b c' \"d $e\" f\\ g", [["a", "b c", "d $e", "f g"]]),
        ("a;b&&c||d|e\nf", [["a"], ["b"], ["c"], ["d"], ["e"], ["f"]]),
        ('a $(b `c`) "${d:-$(e)}"', [["c"], ["b", "`c`"], ["e"], ["a", "$(b `c`)", "${d:-$(e)}"]]),
        ("if a; then b; elif c; then d; else e; fi", [["a"], ["b"], ["c"], ["d"], ["e"]]),
        ("while a; do b; done; until c; do d; done", [["a"], ["b"], ["c"], ["d"]]),
        ("for x in $(a) b; do c; done", [["a"], ["for", "x", "in", "$(a)", "b"], ["c"]]),
        (
            "case $(a) in b|c) d;; (e) f;& *) g; esac",
            [["a"], ["case", "$(a)", "in"], ["case", "b", "c"], ["d"], ["case", "e"], ["f"], ["case", "*"], ["g"]],
        ),
        ("cat <<A <<'B'\n$(a)\nA\n$(b)\nB\nc", [["cat"], ["a"], ["c"]]),
        ("cat <<-E\n\tx\n\tE\na", [["cat"], ["a"]]),
        ("cat <<E\nx\\\nE\nE\na", [["cat"], ["a"]]),
        ("a#b #c\nd", [["a#b"], ["d"]]),
        ("$'a\\x62\\143' $'\\n'", [["abc", "\n"]]),
        ("sh -c 'a; b'", [["sh", "-c", "a; b"], ["a"], ["b"]]),
        (
            "env -i A=1 nice -n 5 a b",
            [["env", "-i", "A=1", "nice", "-n", "5", "a", "b"], ["nice", "-n", "5", "a", "b"], ["a", "b"]],
        ),
        ("[[ -f a && b < c ]] && d", [["[[", "-f", "a", "&&", "b", "<", "c", "]]"], ["d"]]),
        ("x=1 y=$(a) b >c 2>&1 <d", [["a"], ["b"]]),
    ],
)
def test_every_command_is_found_with_its_words(text: str, found: list[list[str]]) -> None:
    assert commands(text) == found


def test_a_command_knows_its_surroundings() -> None:
    line = parse("cat a | (b; c) > d; while e; do f; done <<< g; X=1 h")
    assert isinstance(line, Line)
    by_name = {command.name: command for command in line.commands if command.words}
    assert [name for name, command in by_name.items() if command.fed] == ["b", "c", "e", "f"]
    assert [name for name, command in by_name.items() if command.looped] == ["e", "f"]
    assert [(name, value.text) for name, value in by_name["h"].assigns] == [("X", "1")]
    written = [redirect.target.text for command in line.commands for redirect in command.redirects if redirect.writes]
    assert written == ["d"]


PIECES = st.lists(
    st.sampled_from(
        [*"'\"\\$`(){}[]<>|&;#!*?~=\n\t ,", "$(", "${", "$((", "))", "<<E", "\nE\n", "if ", "then ", "a", "case "]
    )
).map("".join)


@settings(max_examples=400, deadline=None)
@given(st.text() | PIECES | st.randoms(use_true_random=False).map(soup))
@example("${" * 10_000)
@example("$(" * 10_000)
@example('"$(' * 5_000)
@example('"${x:-' * 5_000)
@example("`" * 10_001)
@example("\\`" * 5_000)
@example("((" * 5_000 + "))" * 5_000)
@example("{" * 10_000)
@example("if " * 5_000)
@example("sudo " * 5_000 + "rm x")
@example("eval " * 5_000 + "rm x")
@example("! " * 10_000)
def test_no_text_makes_it_fail(text: str) -> None:
    assert isinstance(parse(text), Line | Unparsed)
    intent = Intent("bash", "execute", text)
    rules = Rules(allow=("bash:a*",), deny=("bash:rm *",), root="/p")
    assert decide(intent, rules, frozenset(), skip=False) in Verdict
    assert explain(intent, rules)
    session_rule(intent, rules)


LONG = (
    "a ",
    "a;",
    "a|",
    "'a' ",
    "$(a) ",
    "`a` ",
    '"$a" ',
    "\\a",
    "$'\\x61'",
    "{a,b} ",
    "*",
    "[",
    "~ ",
    ">a ",
    "<<<a ",
    "#",
    "\n",
    "x=1 ",
)
LONG_NESTED = (
    "$(",
    "(",
    "{ ",
    '"$(',
    "${x:-",
    "if a;then ",
    "sh -c ",
    "sudo ",
    "env x=1 ",
    "eval ",
    "$((",
    "((",
    "[[ ",
    "case a in a)",
)


@pytest.mark.parametrize("piece", LONG + LONG_NESTED)
def test_the_work_grows_with_the_length_not_with_its_square(piece: str) -> None:
    text = (piece * 10_000)[:10_000]
    half, whole = _calls(text[:5_000]), _calls(text)
    assert whole < 2.2 * half + 1_000, f"{half:,} calls for one half, {whole:,} for all"
    assert whole < CALLS_PER_CHARACTER * len(text)


def _calls(text: str) -> int:
    """How many functions, Python's own among them, are called to parse the text."""
    count = 0

    def note(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        parse(text)
    finally:
        sys.setprofile(before)
    return count


def test_what_is_too_long_is_not_read() -> None:
    assert isinstance(parse("a " * MAX_LENGTH), Unparsed)


@pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")
def test_whatever_bash_runs_was_found(tmp_path: Path) -> None:
    """A short piece of what `python -m tests.permissions.fuzz_shell` does for as long as one likes."""
    arena, tally, draw = Arena(tmp_path), Counter[str](), random.Random(7)
    faults = {line: found for line in (made_up(draw) for _ in range(320)) if (found := fault(arena, line, tally))}
    assert faults == {}
    assert tally["parsed that ran something"] > 50, "else nothing was compared"
    assert tally["must be denied"] > 10


@settings(max_examples=200, deadline=None)
@given(draw=st.randoms(use_true_random=False), depth=st.integers(1, 4), before=st.booleans())
def test_nothing_that_stands_around_a_command_hides_it(draw: random.Random, depth: int, before: bool) -> None:
    other = structured(draw, depth)
    line = f"danger x\n{other}" if before else f"{other}\ndanger x"
    intent = Intent("bash", "execute", line)
    others = Rules(allow=("bash:a", "bash:a *", "bash:b", "bash:b *"))
    assert decide(intent, others, frozenset(), skip=False) is Verdict.ASK
    assert decide(intent, Rules(deny=("bash:danger*",)), frozenset(), skip=True) is Verdict.DENY
