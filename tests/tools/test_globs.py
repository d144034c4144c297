"""Patterns for names and paths: what they match, what they are too clever for, and that none takes long."""

from __future__ import annotations

import re
import time
from fnmatch import fnmatchcase

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covey.tools import globs
from covey.tools.globs import BadPattern, PathPattern, expand, name_regex


def matches(pattern: str, path: str) -> bool:
    return PathPattern(pattern).matches(path.split("/"))


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("*.py", ["a.py", ".py", ".a.py"], ["a.pyc", "d/a.py"]),
        ("**/*.py", ["a.py", "d/a.py", "d/e/a.py"], ["a.pyc"]),
        ("src/**", ["src/a", "src/a/b"], ["src", "a/src/b"]),
        ("src/**/test_?.py", ["src/test_a.py", "src/x/y/test_b.py"], ["test_a.py", "src/test_ab.py"]),
        ("a/**/b/**/c", ["a/b/c", "a/b/x/b/c", "a/x/b/y/c"], ["a/c", "a/b", "a/b/c/d"]),
        ("**/b/c", ["b/c", "b/b/c", "a/b/c"], ["c", "b/c/d"]),
        ("./a/./b", ["a/b"], ["b"]),
        ("a**b", ["ab", "axxb"], ["a/b"]),
        ("[a-c]x", ["ax", "cx"], ["dx", "x"]),
        ("[!a-c]x", ["dx", "!x"], ["ax"]),
        ("[^a]x", ["bx"], ["ax"]),
        ("[]-]x", ["]x", "-x"], ["ax"]),
        ("[a-]x", ["ax", "-x"], ["bx"]),
        ("[[:]x", ["[x", ":x"], ["ax"]),
        ("\\*", ["*"], ["a"]),
        ("a.b+c", ["a.b+c"], ["aXb+c", "a.bbc"]),
        ("{a}", ["{a}"], ["a"]),
    ],
)
def test_what_a_pattern_matches(pattern: str, yes: list[str], no: list[str]) -> None:
    assert [path for path in yes if not matches(pattern, path)] == []
    assert [path for path in no if matches(pattern, path)] == []


@pytest.mark.parametrize("pattern", ["", "/", "./", "[a", "[]", "a\\", "[z-a]"])
def test_a_pattern_that_means_nothing_says_so(pattern: str) -> None:
    with pytest.raises(BadPattern):
        PathPattern(pattern)


@settings(deadline=None)
@given(st.text("ab*?", max_size=8), st.text("ab", max_size=10))
def test_names_match_as_the_standard_library_has_it(pattern: str, name: str) -> None:
    assert (re.fullmatch(name_regex(pattern), name) is not None) == fnmatchcase(name, pattern)


@settings(deadline=None)
@given(st.lists(st.sampled_from(["a", "b", "**", "*"]), min_size=1, max_size=6), st.lists(st.sampled_from("ab")))
def test_paths_match_as_one_large_regular_expression_has_it(parts: list[str], path: list[str]) -> None:
    pieces = []
    for part in parts[:-1]:
        pieces.append("(?:[^/]+/)*" if part == "**" else part.replace("*", "[^/]+") + "/")
    last = "(?:[^/]+/)*[^/]+" if parts[-1] == "**" else parts[-1].replace("*", "[^/]+")
    expected = re.fullmatch("".join(pieces) + last, "/".join(path)) is not None
    assert PathPattern("/".join(parts)).matches(path) == expected


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*a" * 100 + "b", "a" * 255),
        ("?*" * 100 + "b", "a" * 255),
        ("**/a/" * 100 + "b", "/".join("a" * 200)),
        ("**/*/" * 100 + "b", "/".join("a" * 200)),
    ],
)
def test_no_pattern_takes_long(pattern: str, path: str) -> None:
    began = time.monotonic()
    assert not matches(pattern, path)
    assert time.monotonic() - began < 30


@pytest.mark.parametrize(
    ("pattern", "expanded"),
    [
        ("a", ["a"]),
        ("*.{ts,tsx}", ["*.ts", "*.tsx"]),
        ("{a,b}{c,d}", ["ac", "ad", "bc", "bd"]),
        ("{a,b{c,d}}", ["a", "bc", "bd"]),
        ("x{,y}", ["x", "xy"]),
        ("{a", ["{a"]),
        ("a,b}", ["a,b}"]),
        ("{a}{b,c}", ["{a}b", "{a}c"]),
        ("\\{a,b}", ["\\{a,b}"]),
        ("{a\\,b,c}", ["a\\,b", "c"]),
    ],
)
def test_braces_stand_for_several_patterns(pattern: str, expanded: list[str]) -> None:
    assert expand(pattern) == expanded


def test_braces_that_multiply_are_refused() -> None:
    with pytest.raises(BadPattern, match=f"more than {globs.ALTERNATIVES_LIMIT}"):
        expand("{a,b}" * 100)
    assert len(expand("{" + ",".join(map(str, range(100))) + "}")) == 100


def test_many_braces_that_are_none_are_read_quickly() -> None:
    began = time.monotonic()
    assert expand("{" * 1000) == ["{" * 1000]
    assert expand("\\" * 1000) == ["\\" * 1000]
    assert time.monotonic() - began < 30
