"""What commands list is as wide as the terminal: rows are cut, sentences wrapped, and columns stay columns."""

from __future__ import annotations

import io
import sys

import pytest
from msgspec import structs

from covey.cli import jobs, listing, runs, sessions, stats, status
from covey.lines.widths import width
from covey.protocol.extensions import ExtensionView
from covey.protocol.jobs import JobView
from covey.protocol.runs import Usage
from tests.cli.test_screen import Terminal
from tests.client.values import some_run, some_session

TITLE = "The test of prices.py fails, 注文の合計が合わない, so fix it"
SESSION = structs.replace(some_session(title=TITLE), message_count=1, is_busy=True)


def at(monkeypatch: pytest.MonkeyPatch, columns: int | None) -> None:
    """None: stdout is no terminal."""
    monkeypatch.setattr(sys, "stdout", Terminal() if columns else io.StringIO())
    monkeypatch.setattr(listing, "columns_of", lambda stream: columns)


@pytest.mark.parametrize("columns", [40, 60, 80, 120, None])
def test_a_row_of_a_list_is_no_wider_than_the_terminal_and_whole_elsewhere(
    monkeypatch: pytest.MonkeyPatch, columns: int | None
) -> None:
    at(monkeypatch, columns)
    said = sessions._line(SESSION, "  ")
    assert said.startswith("  s1  ") and said.endswith(" (busy)"), "what is known of it is never cut off"
    if columns is None:
        assert said.endswith(f"{TITLE} (busy)") and "\n" not in said
    else:
        assert all(width(row) <= columns for row in said.split("\n"))
        assert "The test of" in said and ("…" in said) == (columns < 120)


@pytest.mark.parametrize("columns", [40, None])
def test_every_word_of_a_sentence_is_shown(monkeypatch: pytest.MonkeyPatch, columns: int | None) -> None:
    at(monkeypatch, columns)
    text = "  one line that is too long for a narrow terminal\nand another one"
    shown = listing.sentences(text)
    assert shown.split() == text.split() and shown.endswith("\nand another one")
    assert (max(map(len, shown.split("\n"))) < 40) == (shown != text) == (columns is not None)


def test_what_runs_and_jobs_do_stands_in_a_column_that_is_as_wide_as_needed() -> None:
    found = [structs.replace(some_run(), state="active", waiting_on=what, accepted_at=0) for what in (None, "store")]
    lines = [runs._line(run, 5.0, found, runs._states(found)) for run in found]
    assert "waiting for room on the disk     5 s ago" in lines[1]
    assert len({line.index("5 s ago") for line in lines}) == 1
    ended = [
        JobView(id="job-1", session_id="s", command="make", started_at=0, is_running=False, exit_code=0),
        JobView(id="job-2", session_id="s", command="make", started_at=0, is_running=False, state="closed"),
    ]
    states = max(len(jobs._state(job)) for job in ended)
    assert len({jobs._line(job, states).index("make") for job in ended}) == 1


def test_one_is_not_said_as_many() -> None:
    one = ExtensionView(kind="mcp", name="birds", state="ready", tools=("nests",), source="config.toml")
    assert status.extension_line(one).endswith("ready, 1 tool")
    assert " 1 message   " in sessions._line(SESSION)


def test_columns_of_stats_are_aligned_however_wide_names_are(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [("/home/鳥/巣箱", 12, Usage(prompt_tokens=1_234_567, cost=1.5)), ("/home/kim/nests", 3, Usage())]
    stats._print([("directory", *stats.HEADS), *map(stats._cells, [*rows, stats._total(rows)])])
    assert len({width(line) for line in capsys.readouterr().out.splitlines()}) == 1, "numbers end in the same column"
