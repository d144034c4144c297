"""What a session has changed in files, for people: a headline for each file, who changed it, and its diff."""

from __future__ import annotations

from dataclasses import dataclass

from covey.lines.diffs import beginning, read_diff, split_rows, unified_rows
from covey.lines.line import EMPTY, Span, StyledLine, line
from covey.lines.plain_text import visible
from covey.lines.widths import cut_line
from covey.lines.words import counted
from covey.lines.wrap import wrap
from covey.protocol.changes import ChangedFile, SessionChanges

COMMAND_SHOWN = 60
SPLIT_FROM = 120
"""Columns from which before and after stand beside each other."""
ROWS_SHOWN = 5000
"""Of all diffs together: what comes after them is named, and not shown."""


@dataclass(frozen=True, slots=True)
class ChangesShown:
    lines: tuple[StyledLine, ...]
    files: tuple[int, ...]
    """The rows at which files begin."""
    hunks: tuple[int, ...]
    """The rows at which places begin that were changed."""


def file_name(file: ChangedFile, root: str) -> str:
    """From the directory of the workspace, with what it was called before."""
    start = root.rstrip("/") + "/"
    name, old = visible(file.path.removeprefix(start)), visible(file.change.old_path.removeprefix(start))
    return f"{old} => {name}" if old else name


def makers(file: ChangedFile) -> str:
    """Who changed it, each once."""
    found = dict.fromkeys(maker for turn in file.turns for maker in turn.made_by)
    return ", ".join(
        (maker.label or maker.made_by) if maker.made_by == "tool" else f"{maker.made_by} `{_short(maker.label)}`"
        for maker in found
    )


def _short(command: str) -> str:
    shown = visible(command)
    return shown if len(shown) <= COMMAND_SHOWN else f"{shown[: COMMAND_SHOWN - 1]}…"


def notes(file: ChangedFile) -> list[str]:
    """What else has to be known of it."""
    change = file.change
    found = ["binary"] if change.is_binary else []
    found += ["the diff is left out"] if change.is_left_out else []
    if change.is_executable is not None:
        found.append("executable now" if change.is_executable else "not executable any more")
    if not all(turn.can_undo for turn in file.turns):
        found.append("an undo leaves it")
    return found


def missed(changes: SessionChanges) -> list[str]:
    """Why there may be more than this."""
    return [f"not all could be looked at after `{visible(each.label)}`: {each.reason}" for each in changes.missed]


def changes_shown(changes: SessionChanges, columns: int, root: str = "") -> ChangesShown:
    """All of it, file by file."""
    if not changes.files:
        nothing = wrap([Span("the session has changed no file that is recorded", "dim")], columns)
        return ChangesShown((*nothing, *_warnings(changes, columns)), (), ())
    lines: list[StyledLine] = [_total(changes), *_warnings(changes, columns)]
    files: list[int] = []
    hunks: list[int] = []
    for file in changes.files:
        lines.append(EMPTY)
        files.append(len(lines))
        lines.append(cut_line(_headline(file, root), columns))
        if len(lines) > ROWS_SHOWN:
            lines.append(line(Span("  … too much for one page: `covey diff` shows it", "dim")))
        else:
            _add_diff(file.change.diff, columns, lines, hunks)
    return ChangesShown(tuple(lines), tuple(files), tuple(hunks))


def _total(changes: SessionChanges) -> StyledLine:
    added = sum(file.change.additions or 0 for file in changes.files)
    removed = sum(file.change.deletions or 0 for file in changes.files)
    count = counted(len(changes.files), "file")
    return line(Span(f"{count} changed", "strong"), Span(f"  +{added}", "added"), Span(f" −{removed}", "removed"))


def _warnings(changes: SessionChanges, columns: int) -> list[StyledLine]:
    return [row for text in missed(changes) for row in wrap([Span(text, "warning")], columns)]


def _headline(file: ChangedFile, root: str) -> StyledLine:
    change = file.change
    about = ", ".join(filter(None, (change.status, makers(file), *notes(file))))
    counts = [Span(f"  +{change.additions}", "added"), Span(f" −{change.deletions}", "removed")]
    return line(
        Span(file_name(file, root), "heading"),
        *(counts if change.additions is not None and change.deletions is not None else ()),
        Span(f"  {about}", "dim"),
    )


def _add_diff(diff: str, columns: int, lines: list[StyledLine], hunks: list[int]) -> None:
    found, _ = read_diff(diff, 0, len(diff), beginning(diff))
    begun = {each.source for number, each in enumerate(found) if number == 0 or found[number - 1].sign == "@"}
    rows = split_rows(found, columns) if columns >= SPLIT_FROM else unified_rows(found, columns)
    for row in rows[: ROWS_SHOWN - len(lines)]:
        if row.source in begun:
            hunks.append(len(lines))
            begun.discard(row.source)
        lines.append(row)
    if len(rows) > ROWS_SHOWN - len(lines) and len(lines) >= ROWS_SHOWN:
        lines.append(line(Span("      … the rest is too much for one page: `covey diff` shows it", "dim")))
