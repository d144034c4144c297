"""What commands list is as wide as the terminal: rows are cut, sentences wrapped, and columns stay columns."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from msgspec import structs

from covey.cli import jobs, listing, runs, sessions, stats, status, trust
from covey.lines.widths import width
from covey.protocol.events import PermissionRequest
from covey.protocol.extensions import ExtensionView
from covey.protocol.jobs import JobView
from covey.protocol.runs import Usage
from tests.cli.test_screen import Terminal
from tests.client.values import some_run, some_session

TITLE = "The test of prices.py fails, 注文の合計が合わない, so fix it"
SESSION = structs.replace(some_session(title=TITLE), message_count=1, is_busy=True)


def at(monkeypatch: pytest.MonkeyPatch, columns: int | None) -> io.StringIO:
    """Where it is printed. None: stdout is no terminal."""
    stdout = Terminal() if columns else io.StringIO()
    monkeypatch.setattr(sys, "stdout", stdout)
    monkeypatch.setattr(listing, "columns_of", lambda stream: columns)
    return stdout


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


@pytest.mark.parametrize("columns", [40, 60, None])
def test_a_long_command_that_a_run_asks_about_goes_on_in_its_own_column(
    monkeypatch: pytest.MonkeyPatch, columns: int | None
) -> None:
    at(monkeypatch, columns)
    command = "tar  --exclude=.git -czf nests.tar.gz " + " ".join(f"nests/{number}" for number in range(20))
    said = runs._asked(_permission(command)).split("\n")
    assert said[0] == "    asks: bash:"
    rows = said[1 : next(number for number, row in enumerate(said) if "covey runs allow" in row)]
    assert "".join(row[8:] for row in rows) == command, "no blank of it is lost"
    assert all(row[:8].isspace() for row in rows) and (len(rows) == 1) == (columns is None)
    assert columns is None or all(len(row) <= columns for row in said)


def _permission(command: str) -> PermissionRequest:
    return PermissionRequest(
        id="p1",
        session_id="s1",
        tool_call_id="c1",
        tool_name="bash",
        description="",
        action="execute",
        params={"command": command},
        path="/project",
    )


def test_what_a_command_has_done_is_said_in_whole_words(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    stdout = at(monkeypatch, 40)
    trust._add(tmp_path, yes=True)
    said = stdout.getvalue()
    assert "It has no covey.toml; if it gets one,\n  that counts in full.\n" in said


@pytest.mark.parametrize("columns", [60, 80, None])
def test_a_path_that_has_no_room_beside_its_numbers_stands_above_them(
    monkeypatch: pytest.MonkeyPatch, columns: int | None
) -> None:
    stdout = at(monkeypatch, columns)
    long = "/home/kim/where/birds/are/counted/" + "nests-of-last-year/" * 4
    found = [(long, 12, Usage(prompt_tokens=1_234_567, cost=1.5)), ("/nests", 3, Usage())]
    stats._print([("directory", *stats.HEADS), *map(stats._cells, found)])
    rows = stdout.getvalue().splitlines()
    numbers = [row for row in rows if row.endswith(("cost", "$1.50", "-"))]
    assert len({width(row) for row in numbers}) == 1 and len(numbers) == 3, "numbers end in the same column"
    assert long in "".join(rows) and (len(rows) == 3) == (columns is None)
    assert columns is None or all(width(row) <= columns for row in rows)


SPENT = [("2026-01-02", 1_200, Usage(prompt_tokens=101_700, cached_tokens=90_100, completion_tokens=9_000, cost=0.32))]
MORE = [("2026-01-02", 12, Usage(prompt_tokens=12_345_678_901, completion_tokens=1_234_567_890, cost=1234.5))]


@pytest.mark.parametrize("found", [SPENT, MORE])
@pytest.mark.parametrize("columns", [40, 60, None])
def test_numbers_of_stats_are_never_wider_than_the_terminal(
    monkeypatch: pytest.MonkeyPatch, columns: int | None, found: list[stats.Line]
) -> None:
    stdout = at(monkeypatch, columns)
    stats._print(stats._fitting("day", found))
    rows = stdout.getvalue().splitlines()
    assert columns is None or all(width(row) <= columns for row in rows)
    said = "\n".join(rows)
    assert ("cached" in said) == (columns != 40), "what was cached goes first"
    assert ("12,345.7M" in said) == (columns == 40 and found is MORE), "then digits"


def test_large_counts_are_short_where_their_digits_have_no_room() -> None:
    counts = (0, 9_999, 101_700, 999_949, 999_950, 12_345_678)
    assert [stats.short_count(count) for count in counts] == ["0", "9,999", "101.7k", "999.9k", "1.0M", "12.3M"]


def test_a_count_and_its_word_are_not_parted_on_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    at(monkeypatch, 40)
    for digits in range(4, 28):
        session = structs.replace(some_session(title=TITLE), id="0" * digits, message_count=4, cost=0.32)
        for indent in ("", "  "):
            said = sessions._line(session, indent).split("\n")
            assert any("4 messages" in row for row in said) and all(width(row) <= 40 for row in said)
