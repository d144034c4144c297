"""Diffs: right for every pair of texts, and bounded."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from covey.tools.diffs import unified

texts = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "{\n", "\x0c\n", "é\r\n"]), max_size=40).map("".join)
endings = st.sampled_from(["", "end", "end\n"])


@given(texts, texts, texts, endings, endings)
def test_applying_the_diff_gives_the_text_after(start: str, old: str, new: str, old_end: str, new_end: str) -> None:
    before, after = start + old + old_end, start + new + new_end
    diff = unified(before, after, "f")
    assert applied(before, diff.text) == after
    assert (diff.text == "") == (before == after)
    body = diff.text.split("\n")[2:]
    assert diff.additions == sum(line.startswith("+") for line in body)
    assert diff.removals == sum(line.startswith("-") for line in body)


def applied(before: str, diff: str) -> str:
    old = before.split("\n")
    old = [line + "\n" for line in old[:-1]] + ([old[-1]] if old[-1] else [])
    result: list[str] = []
    position, kept = 0, False
    for line in diff.split("\n")[2:-1]:
        if line.startswith("@@"):
            start, _, count = line.split()[1][1:].partition(",")
            first = int(start) - (count != "0")
            result += old[position:first]
            position = first
        elif line.startswith("\\"):
            if kept:
                result[-1] = result[-1].removesuffix("\n")
        else:
            kept = line[0] in " +"
            if line[0] in " -":
                assert old[position].removesuffix("\n") == line[1:]
                position += 1
            if kept:
                result.append(line[1:] + "\n")
    return "".join(result + old[position:])


def test_a_small_change_of_a_large_file_is_small() -> None:
    before = "".join(f"line {number}\n" for number in range(50_000))
    diff = unified(before, before.replace("line 40000\n", "changed\n"), "f")
    assert (diff.additions, diff.removals) == (1, 1)
    assert "@@ -39998,7 +39998,7 @@" in diff.text


def test_a_rewrite_of_a_large_file_is_bounded() -> None:
    before = "".join(f"{number % 997}\n" for number in range(30_000))
    after = "".join(f"{number % 991}\n" for number in range(1, 30_000))
    began = time.monotonic()
    diff = unified(before, after, "f")
    assert time.monotonic() - began < 30
    assert (diff.additions, diff.removals) == (29_999, 30_000)
    assert len(diff.text) < 51_000
    assert diff.text.endswith("\n... the rest of the diff is left out\n")
