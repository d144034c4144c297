"""What people and agents type every day: whatever was not asked about stays so, as far as it is harmless."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from covey.permissions.judge import Intent, Rules, Verdict, decide

NO_RULES = Rules(root="/p")


def recorded() -> Iterator[tuple[str, Verdict]]:
    _, *sections = Path(__file__).with_name("everyday_lines.txt").read_text("utf-8").split("\n== ")
    for section in sections:
        verdict, *lines = section.splitlines()
        for line in filter(None, lines):
            yield line.replace("⏎", "\n"), Verdict(verdict)


LINES = list(recorded())


def test_there_are_enough_lines_and_none_stands_there_twice() -> None:
    assert len({line for line, _ in LINES}) == len(LINES) > 400
    assert sum(verdict is Verdict.ALLOW for _, verdict in LINES) > 200


@pytest.mark.parametrize(("line", "verdict"), LINES)
def test_an_everyday_line_is_judged_as_it_was_when_it_was_recorded(line: str, verdict: Verdict) -> None:
    assert decide(Intent("bash", "execute", line), NO_RULES, frozenset(), skip=False) is verdict
