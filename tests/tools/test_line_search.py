"""Lines that match: ripgrep and Python give the same answer, and what ripgrep prints is read as it is meant."""

from __future__ import annotations

import shutil
import tempfile
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covey.tools import line_search
from covey.tools.line_search import BadRegex, Hits, LineQuery, make_engine

RG = shutil.which("rg")
PIECES = st.sampled_from(
    ["a", "b", ".", "^", "$", r"\b", r"\w", r"\s", "a*", "(a|b)", "[^a]", "é", r"\.", "(?i)A", "x+?"]
)
LINES = st.lists(st.sampled_from(["a", "b", "A", " ", "é", ".", "\t", "x", "\n", "\r\n", "ab"]), max_size=40)


def search(query: LineQuery, base: Path, names: list[str], rg: str | None) -> list[Hits]:
    return list(make_engine(query, rg)(str(base), names))


@pytest.mark.skipif(RG is None, reason="there is no ripgrep here")
@settings(max_examples=60, deadline=None)
@given(
    st.lists(PIECES, min_size=1, max_size=4).map("".join),
    st.lists(LINES.map("".join), min_size=1, max_size=3),
    st.integers(0, 3),
    st.integers(1, 5),
    st.booleans(),
)
def test_ripgrep_and_python_find_the_same(
    pattern: str, texts: list[str], context: int, per_file: int, literal: bool
) -> None:
    query = LineQuery(pattern, literal, context, per_file)
    with tempfile.TemporaryDirectory() as directory:
        for number, text in enumerate(texts):
            (Path(directory) / str(number)).write_bytes(text.encode())
        names = [str(number) for number in range(len(texts))]
        try:
            expected = search(query, Path(directory), names, None)
        except BadRegex:
            return
        found = search(query, Path(directory), names, RG)
        assert [_up_to(hits, per_file) for hits in found] == [_up_to(hits, per_file) for hits in expected]


def _up_to(hits: Hits, matches: int) -> Hits:
    """Without the context after the last match wanted: ripgrep marks further matches in there as matches, or not."""
    index, lines = hits
    numbers = [line[0] for line in lines if line[1]]
    return index, [line for line in lines if line[0] <= numbers[:matches][-1]]


def test_what_ripgrep_prints_is_read(root: Path) -> None:
    output = (
        b"./a b\x00" + b"12:x: 1-2\x00y\r\n" + b"./a b\x00" + b"13-\xe9\n"
        b"./c\x00" + b"1:lost\n" + b'./c: binary file matches (found "\\0" byte around offset 7)\n'
        b"./unknown\x00" + b"1:x\n" + b"./d\x00" + b"no number\n"
    )
    batch = {b"./a b": 4, b"./c": 5, b"./d": 6}
    assert line_search._parsed(output, batch) == {4: [(12, True, "x: 1-2\0y"), (13, False, "�")]}


def test_names_are_given_in_batches_that_fit() -> None:
    names = ["n" * 1000] * 450
    batches = list(line_search._batches(names))
    assert batches[0][0] == 0 and batches[-1][1] == 450
    assert all(end == start for (_, end), (start, _) in pairwise(batches))
    assert all((end - start) * 1016 <= line_search._ARGUMENTS_BYTES for start, end in batches)
    assert list(line_search._batches(["a"] * 500)) == [(0, 200), (200, 500)]
    assert list(line_search._batches([])) == []
    assert list(line_search._batches(["n" * 200_000, "a"])) == [(0, 1), (1, 2)]


def test_a_file_that_is_gone_or_has_become_a_link_is_left_out(root: Path) -> None:
    (root / "link").symlink_to("/etc/passwd")
    (root / "a").write_text("root:")
    query = LineQuery("root:", True, 0, 10)
    assert search(query, root, ["gone", "link", "a"], None) == [(2, [(1, True, "root:")])]
