"""Frames → bytes: what has to be written so that the terminal shows the next frame. Pure.

Only rows that changed are touched, of these only the columns that changed, and rows that moved are scrolled by the
terminal. The screen is never cleared. No text is trusted to be as wide as we think: after characters that terminals
count differently the cursor is put where it belongs.
"""

from __future__ import annotations

from binascii import crc32
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from covey.lines.line import EMPTY, StyledLine
from covey.lines.plain_text import one_line
from covey.lines.theme import Theme
from covey.tui.frame import ScreenFrame
from covey.tui.terminal.cells import BLANK, NO_PEN, Cell, Pen, cells, certainty, is_border

if TYPE_CHECKING:
    from covey.tui.terminal.pictures import Pictures

NEAR = 8
"""Unchanged columns between two changes that are written again: to jump over them is no shorter."""
FEWEST_SCROLLED = 4
"""Rows that must have moved together before it pays to have them moved."""
SHIFTS_TRIED = 8
LONGEST_TITLE = 200
BEGIN_SYNCHRONIZED, END_SYNCHRONIZED = "\x1b[?2026h", "\x1b[?2026l"
HIDE_CURSOR, SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"


@dataclass(frozen=True, slots=True)
class ScreenLook:
    """The screen that is painted on, and what it can do."""

    width: int
    height: int
    theme: Theme
    is_synchronized: bool = False
    has_links: bool = True
    pictures: Pictures = ""


def paint(before: ScreenFrame | None, after: ScreenFrame, look: ScreenLook) -> bytes:
    """What to write. `before` is what the screen shows now; None: nobody knows. Nothing changed: no bytes."""
    rows = _Rows(look)
    new = _fitted(after, look)
    changed = set(range(len(new)))
    if before is None:
        for number, row in enumerate(new):
            rows.fill(number, row)
    else:
        old = _scrolled(rows, _fitted(before, look), new)
        changed = {n for n, (was, row) in enumerate(zip(old, new, strict=True)) if was is not row and was != row}
        for number in sorted(changed):
            rows.change(number, old[number], new[number])
    rows.use(NO_PEN)
    body = "".join(rows.out)
    if look.pictures == "iterm" and changed:
        body += _pictures(after, changed)
    tail = _cursor(before, after, look, is_painted=bool(body)) + _title(before, after)
    if not body:
        return tail.encode()
    if look.is_synchronized:
        return f"{BEGIN_SYNCHRONIZED}{body}{tail}{END_SYNCHRONIZED}".encode()
    return f"{HIDE_CURSOR}{body}{tail}".encode()


def _pictures(frame: ScreenFrame, changed: set[int]) -> str:
    from covey.tui.terminal.pictures import drawn_over  # late: few screens have one

    return drawn_over(frame, changed)


def _fitted(frame: ScreenFrame, look: ScreenLook) -> list[StyledLine]:
    """As many rows as the screen has."""
    return [*frame.rows[: look.height], *[EMPTY] * (look.height - len(frame.rows))]


def _cursor(before: ScreenFrame | None, after: ScreenFrame, look: ScreenLook, *, is_painted: bool) -> str:
    was = before.cursor if before else None
    if after.cursor is None:
        return HIDE_CURSOR if before is None or (was and (look.is_synchronized or not is_painted)) else ""
    if after.cursor == was and not is_painted:
        return ""
    row, column = (max(0, min(at, last - 1)) for at, last in zip(after.cursor, (look.height, look.width), strict=True))
    is_hidden = was is None or (is_painted and not look.is_synchronized)
    return f"\x1b[{row + 1};{column + 1}H{SHOW_CURSOR * is_hidden}"


def _title(before: ScreenFrame | None, after: ScreenFrame) -> str:
    if after.title == (before.title if before else ""):
        return ""
    return f"\x1b]2;{one_line(after.title)[:LONGEST_TITLE]}\x1b\\"


def _scrolled(rows: _Rows, old: list[StyledLine], new: list[StyledLine]) -> list[StyledLine]:
    """Have the terminal move what moved; gives the rows as they are then."""
    found = moved_rows(old, new)
    if not found:
        return old
    top, bottom, by = found
    rows.use(NO_PEN)
    rows.out.append(f"\x1b[{top + 1};{bottom + 1}r\x1b[{abs(by)}{'S' if by > 0 else 'T'}\x1b[r")
    inside = old[top : bottom + 1]
    gone = [EMPTY] * abs(by)
    inside = [*inside[by:], *gone] if by > 0 else [*gone, *inside[:by]]
    return [*old[:top], *inside, *old[bottom + 1 :]]


def moved_rows(old: Sequence[StyledLine], new: Sequence[StyledLine]) -> tuple[int, int, int] | None:
    """First and last row of a region in which the rows have moved up (down, if negative), and by how many."""
    changed = [n for n, (was, row) in enumerate(zip(old, new, strict=True)) if was is not row and was != row]
    if len(changed) < FEWEST_SCROLLED:
        return None
    places: dict[StyledLine, list[int]] = {}
    for number, row in enumerate(old):
        if row.spans:
            places.setdefault(row, []).append(number)
    votes = Counter(place - n for n in changed for place in places.get(new[n], ()))
    likely = [by for by, count in votes.most_common(SHIFTS_TRIED) if by and count >= FEWEST_SCROLLED]
    # Rows that repeat fit in many places: the longest region counts, then the nearest.
    found = [(*_longest_region(old, new, by), by) for by in likely]
    length, first, by = max(found, key=lambda each: (each[0], -abs(each[2])), default=(0, 0, 0))
    if length < FEWEST_SCROLLED:
        return None
    last = first + length - 1
    return (first, last + by, by) if by > 0 else (first + by, last, by)


def _longest_region(old: Sequence[StyledLine], new: Sequence[StyledLine], by: int) -> tuple[int, int]:
    """How many rows in a row have moved by this much, and the first of them."""
    best, begin = (0, 0), None
    for n in range(len(new) + 1):
        if n < len(new) and 0 <= n + by < len(old) and new[n] == old[n + by]:
            begin = n if begin is None else begin
        elif begin is not None:
            best, begin = max(best, (n - begin, begin)), None
    return best


class _Rows:
    """What is written, and with which pen."""

    def __init__(self, look: ScreenLook) -> None:
        self.out: list[str] = []
        self._look = look
        self._pen = NO_PEN

    def use(self, pen: Pen) -> None:
        if pen.code != self._pen.code:
            self.out.append(f"\x1b[0;{pen.code}m" if pen.code else "\x1b[m")
        if pen.link != self._pen.link:
            # With an id the parts of a link on several rows belong together.
            name = f"id={crc32(pen.link.encode()):x}" if pen.link else ""
            self.out.append(f"\x1b]8;{name};{pen.link}\x1b\\")
        self._pen = pen

    def fill(self, number: int, row: StyledLine) -> None:
        """A row of which it is not known what stands there."""
        self._go(number, 0)
        if not row.spans:
            self._erase()
            return
        new = self._cells(row)
        if _has_disputed(row, new):
            self._erase()
        self._put(number, new, 0, len(new), erases=True)

    def change(self, number: int, was: StyledLine, row: StyledLine) -> None:
        old, new = self._cells(was), self._cells(row)
        changed = [n for n, (before, after) in enumerate(zip(old, new, strict=True)) if before != after]
        if not changed:
            return
        if _has_disputed(was, old) or _has_disputed(row, new):
            # Nobody knows in which columns the rest stands: it is drawn anew from here on.
            self._go(number, changed[0])
            self._erase()
            self._put(number, new, changed[0], len(new), erases=True)
            return
        begin = end = changed[0]
        for column in [*changed[1:], -1]:
            if 0 <= column <= end + NEAR:
                end = column
                continue
            self._go(number, begin)
            self._put(number, new, begin, _whole(new, end + 1), erases=False)
            begin = end = column

    def _cells(self, row: StyledLine) -> list[Cell]:
        return cells(row, self._look.theme, self._look.has_links, self._look.width, self._look.pictures)

    def _go(self, number: int, column: int) -> None:
        self.out.append(f"\x1b[{number + 1};{column + 1}H")

    def _erase(self) -> None:
        """To the end of the row. What is erased gets the background of the pen, so it has to have none."""
        self.use(NO_PEN)
        self.out.append("\x1b[K")

    def _put(self, number: int, row: list[Cell], begin: int, end: int, *, erases: bool) -> None:
        """These columns; the cursor stands in the first. `erases`: blanks at the end of the row may be erased."""
        last = _last_shown(row) + 1
        blanks = end - max(last, begin)
        if end == len(row) and (blanks > NEAR or (erases and blanks)):
            end -= blanks
        else:
            blanks = 0
        is_placed, before = True, ""
        for column in range(begin, end):
            cluster, pen = row[column]
            if is_placed and pen is self._pen and cluster.isascii():
                self.out.append(cluster)  # nearly all of what is ever written
                continue
            if not cluster:
                continue
            is_gap = cluster == " " and row[column + 1 : column + 2] == [BLANK]
            if not is_placed and (
                pen != self._pen or is_gap or (is_border(cluster) and not is_border(before)) or before == "disputed"
            ):
                self._go(number, column)
                is_placed = True
            self.use(pen)
            self.out.append(cluster)
            kind = certainty(cluster)
            before = "disputed" if kind == "disputed" else cluster
            is_placed = is_placed and kind == "sure"
        if blanks:
            if not is_placed:
                self._go(number, end)
            self._erase()


def _has_disputed(row: StyledLine, drawn: list[Cell]) -> bool:
    if all(span.text.isascii() for span in row.spans):
        return False
    return any(certainty(cluster) == "disputed" for cluster, _ in drawn)


def _whole(row: list[Cell], end: int) -> int:
    """The end, or one further if a wide character is there."""
    while end < len(row) and not row[end][0]:
        end += 1
    return end


def _last_shown(row: list[Cell]) -> int:
    """The last column that is not just blank; -1: there is none."""
    return next((n for n in range(len(row) - 1, -1, -1) if row[n] != BLANK), -1)
