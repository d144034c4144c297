"""No word that a shell expands escapes the judge: shown for every place of the grammar in which a word can stand.

The places are not listed here. They are found by watching the parser read all lines that the tables know, and that no
place was missed is checked against its source: each call that reads a word must have been seen.
"""

from __future__ import annotations

import ast
import inspect
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from types import FrameType

import pytest

from covey.permissions import shell, shell_grammar, shell_redirects, shell_words
from covey.permissions.judge import Intent, Rules, Verdict, decide
from covey.permissions.shell import Line, SimpleCommand, Unparsed, parse
from covey.permissions.shell_grammar import Grammar
from covey.permissions.shell_words import CannotRead, Scanner, Word, WordKind, literal
from tests.permissions.fuzz_shell import structured
from tests.permissions.test_everyday_lines import LINES
from tests.permissions.test_permissions_table import CASES
from tests.permissions.test_shell_details import DETAILS, parsed

MARKERS = ('"$MARK"', "$((MARK))", "${MARK@P}", "${!MARK}", "a${MARK}b")
"""What a shell expands, some of it twice."""
MODULES = (shell, shell_grammar, shell_redirects, shell_words)
NO_RULES = Rules(root="/p")
ALL_COMMANDS = Rules(allow=("bash:*",), root="/p")
"""Every command that says all by itself is allowed: what is not known before it runs is asked about even so."""

Site = tuple[str, int]
"""A function of the parser, and the line in it."""


@dataclass(frozen=True)
class Place:
    """Where a word, or a name that is set, stands in a line."""

    line: str
    start: int
    end: int
    site: Site

    def with_text(self, text: str) -> str:
        return self.line[: self.start] + text + self.line[self.end :]


def lines() -> list[str]:
    draw = random.Random(5)
    judged_lines = [line for line, *_ in (*CASES, *DETAILS, *LINES)]
    made_up = [structured(draw, 3) for _ in range(150)]
    return list(dict.fromkeys((*judged_lines, *(text for text, _ in parsed()), *made_up)))


def watched(monkeypatch: pytest.MonkeyPatch, reader: type[Scanner], method: str, text: str) -> list[Place]:
    """Every place in `text` from which the parser's `method` took something."""
    found: list[Place] = []
    original = getattr(reader, method)

    def watch(self: Scanner) -> Word:
        start, caller = self.at, _caller(sys._getframe(1))
        word: Word = original(self)
        taken = self.text[start : self.at]
        if self.text == text and taken:
            blanks = len(taken) - len(taken.lstrip())
            found.append(Place(text, start + blanks, self.at, caller))
        return word

    with monkeypatch.context() as patched:
        patched.setattr(reader, method, watch)
        parse(text)
    return found


def _caller(frame: FrameType | None) -> Site:
    while frame and frame.f_code.co_name == "_word":  # which only insists on a word
        frame = frame.f_back
    assert frame
    return (frame.f_code.co_name, frame.f_lineno)


def sites(*methods: str) -> set[Site]:
    """Every call of these methods in the parser's source."""
    return {site for module in MODULES for site in _sites(Path(inspect.getfile(module)), methods)}


def _sites(file: Path, methods: tuple[str, ...]) -> Iterator[Site]:
    for function in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(function, ast.FunctionDef) and function.name != "_word":
            for node in ast.walk(function):
                match node:
                    case ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=name)) if name in methods:
                        yield (function.name, node.lineno)


def judged(line: Line) -> Iterator[Word]:
    """All words that are handed to the judge."""
    for command in line.commands:
        yield from command.words
        yield from (value for _, value in command.assigns)
        yield from (redirect.target for redirect in command.redirects)


def verdict(line: str, rules: Rules) -> Verdict:
    return decide(Intent("bash", "execute", line), rules, frozenset(), skip=False)


def test_a_word_reaches_the_judge_from_every_place_of_the_grammar(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: set[Site] = set()
    markers = cycle(MARKERS)
    for text in lines():
        for place in watched(monkeypatch, Scanner, "word", text):
            seen.add(place.site)
            marked = place.with_text(next(markers))
            line = parse(marked)
            if isinstance(line, Line):
                assert any("MARK" in word.text and word.kind is WordKind.UNKNOWN for word in judged(line)), marked
            assert verdict(marked, NO_RULES) is Verdict.ASK, marked
            assert verdict(marked, ALL_COMMANDS) is Verdict.ASK, marked
    assert seen == sites("word", "_word"), "a place that no line of the tables reaches: add one"


def test_a_name_that_is_set_reaches_the_judge_from_every_place_of_the_grammar(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: set[Site] = set()
    for text in lines():
        for place in watched(monkeypatch, Grammar, "_plain_name", text):
            seen.add(place.site)
            for name in ("PATH", "PS4", "HOME", "CDPATH", "http_proxy", "histchars"):
                marked = place.with_text(name)
                line = parse(marked)
                assert isinstance(line, Unparsed) or name in [word.text for word in judged(line)], marked
                assert verdict(marked, NO_RULES) is Verdict.ASK, marked
                assert verdict(marked, ALL_COMMANDS) is Verdict.ASK, marked
    assert seen == sites("_plain_name"), "a place that no line of the tables reaches: add one"


def test_the_text_of_a_document_reaches_the_judge() -> None:
    for document in ("cat <<E\n{}\nE", "cat <<-E\n\t{}\n\tE", "a | cat <<E\nx {}\nE", "while a; do b; done <<E\n{}\nE"):
        for marker in MARKERS:
            marked = document.format(marker)
            assert verdict(marked, NO_RULES) is Verdict.ASK, marked


class Forgetful(Grammar):
    """A grammar that reads words and drops the last of them, as the one for `for` and `case` once did."""

    def note(self, command: SimpleCommand) -> None:
        targets = [redirect.target for redirect in command.redirects]
        words = [*command.words, *(value for _, value in command.assigns), *targets]
        self.hand_over(words[:-1])

    def _expanded(self, body: str) -> Word:
        return literal(body)


@pytest.mark.parametrize("text", ["ls a", "x=1", "case a in b) c;; esac", "for x in a; do b c; done", "ls > x"])
def test_a_word_that_is_read_and_dropped_makes_the_line_unreadable(text: str) -> None:
    with pytest.raises(CannotRead, match="a word in an unusual place"):
        Forgetful(text).whole()
