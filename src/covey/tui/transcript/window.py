"""The rows on the screen: which ones, and where they stay while everything around them changes. Pure.

While it follows, the last row of all is the last on the screen. Otherwise one row is its anchor: that row stays on top,
whatever comes below it, is loaded above it, is folded, or is wrapped otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from covey.lines.line import StyledLine
from covey.tui.transcript.course import Course, Spot
from covey.tui.transcript.pieces import PieceKey, estimate
from covey.tui.transcript.rendering import Renderings

COUNTED = 999
"""New lines are counted up to this: more says nothing else."""


@dataclass(frozen=True, slots=True, order=True)
class RowSpot:
    """A row: of which entry, of which of its pieces, and which of its rows. In the order in which they are shown."""

    entry: int
    piece: int
    row: int

    @property
    def spot(self) -> Spot:
        return Spot(self.entry, self.piece)


@dataclass(frozen=True, slots=True)
class RowName:
    """The same by names, which hold when other entries and rows come and go."""

    entry: str
    number: int
    """Of its entry, if that is gone."""
    piece: PieceKey
    row: int
    columns: int
    source: int = -1
    """For another width: the line in the source of the piece, and which of the rows that show it."""
    part: int = 0
    parts: int = 1


@dataclass(frozen=True, slots=True)
class _End:
    """Where the last row was."""

    entry: str
    number: int
    piece: PieceKey
    seen: int
    """How much of the text of that piece there was."""


class Window:
    def __init__(self, course: Course, renderings: Renderings) -> None:
        self._course = course
        self._renderings = renderings
        self.columns, self.height = 80, 24
        self.text_columns = 80
        self.is_following = True
        self._anchor: RowName | None = None
        self._end: _End | None = None
        """The end, when it was last on the screen."""
        self._was_resized = False

    def resize(self, columns: int, height: int, text_columns: int) -> None:
        self._was_resized = (columns, height) != (self.columns, self.height)
        self.columns, self.height, self.text_columns = columns, height, text_columns

    def reset(self) -> None:
        """Something else is shown: from its end."""
        self.is_following, self._anchor, self._end = True, None, None

    # ── what is shown ──

    def fill(self) -> list[tuple[RowSpot, StyledLine]]:
        """The rows on the screen, from the top; fewer than its height if there are no more."""
        if self.is_following or self._anchor is None:
            return self._filled_from_end()
        top = self._resolve(self._anchor)
        if top is None:
            return self._filled_from_end()
        shown = self._down(top)
        was_resized, self._was_resized = self._was_resized, False
        if was_resized and len(shown) < self.height:  # there is room for the end: it is on the screen again
            self.to_end()
            return self._filled_from_end()
        if shown:
            self._anchor = self.name(shown[0][0])
        return shown

    def _filled_from_end(self) -> list[tuple[RowSpot, StyledLine]]:
        found: list[tuple[RowSpot, StyledLine]] = []
        spot = self.before(Spot(len(self._course.ids), 0))
        while spot:
            found = [*self._rows_of(spot), *found]
            spot = self.before(spot) if len(found) < self.height else None
        return found[-self.height :] if self.height else []

    def _down(self, top: RowSpot) -> list[tuple[RowSpot, StyledLine]]:
        found = self._rows_of(top.spot)[top.row :]
        spot = top.spot
        while len(found) < self.height and (after := self.after(spot)):
            found += self._rows_of(after)
            spot = after
        return found[: self.height]

    def _rows_of(self, spot: Spot) -> list[tuple[RowSpot, StyledLine]]:
        rows = self.rows_at(spot)
        return [(RowSpot(spot.entry, spot.piece, number), row) for number, row in enumerate(rows)]

    def rows_at(self, spot: Spot) -> list[StyledLine]:
        return self._renderings.rows(self._course.piece(spot))

    def before(self, spot: Spot) -> Spot | None:
        """The piece before it that has rows."""
        found = self._course.before(spot)
        while found and not self.rows_at(found):
            found = self._course.before(found)
        return found

    def after(self, spot: Spot) -> Spot | None:
        """The piece after it that has rows."""
        found = self._course.after(spot)
        while found and not self.rows_at(found):
            found = self._course.after(found)
        return found

    # ── moving ──

    def scroll(self, lines: int) -> None:
        """Down by so many rows, or up if it is negative. Who comes to the end follows it again."""
        shown = self.fill()
        if not shown or (lines > 0 and self.is_following):
            return
        if lines < 0:
            top = self._moved_up(shown[0][0], -lines)
            if top != shown[0][0]:
                self._stay(top)
        elif lines > 0:
            self.show_at_top(self._moved_down(shown[0][0], lines))

    def show_at_top(self, top: RowSpot) -> None:
        """This row comes on top, or the end if that is nearer."""
        from_end = self._filled_from_end()
        if from_end and top >= from_end[0][0]:
            self.to_end()
        else:
            self._stay(top)

    def hold(self) -> None:
        """The row that is on top now stays there, also if the end was followed."""
        shown = self.fill()
        if shown:
            self._stay(shown[0][0])

    def settle(self) -> None:
        """After that: if the end has come on the screen, it is followed."""
        top = self._resolve(self._anchor) if self._anchor else None
        if top:
            self.show_at_top(top)

    def to_end(self) -> None:
        self.is_following, self._anchor, self._end = True, None, None

    def to_start(self) -> None:
        first = self.after(Spot(-1, 0))
        if first:
            self.show_at_top(RowSpot(first.entry, first.piece, 0))

    def reveal(self, row: RowSpot) -> None:
        """Move only if this row is not on the screen; then it comes to a third of it."""
        if all(spot != row for spot, _ in self.fill()):
            self.show_at_top(self._moved_up(row, self.height // 3))

    def _stay(self, top: RowSpot) -> None:
        if self.is_following:
            self._end = self._end_now()
        self.is_following = False
        self._anchor = self.name(top)

    def moved(self, row: RowSpot, lines: int) -> RowSpot:
        """The row so many rows below, or above, as far as there are."""
        return self._moved_down(row, lines) if lines >= 0 else self._moved_up(row, -lines)

    def _moved_up(self, row: RowSpot, lines: int) -> RowSpot:
        while lines > row.row:
            before = self.before(row.spot)
            if before is None:
                return RowSpot(row.entry, row.piece, 0)
            lines -= row.row + 1
            row = RowSpot(before.entry, before.piece, max(len(self.rows_at(before)) - 1, 0))
        return RowSpot(row.entry, row.piece, row.row - lines)

    def _moved_down(self, row: RowSpot, lines: int) -> RowSpot:
        while row.row + lines >= (count := len(self.rows_at(row.spot))):
            after = self.after(row.spot)
            if after is None:
                return RowSpot(row.entry, row.piece, max(count - 1, 0))
            lines -= count - row.row
            row = RowSpot(after.entry, after.piece, 0)
        return RowSpot(row.entry, row.piece, row.row + lines)

    # ── names ──

    def name(self, row: RowSpot) -> RowName:
        piece = self._course.piece(row.spot)
        rows = self.rows_at(row.spot)
        source = rows[row.row].source if row.row < len(rows) else -1
        same = [number for number, each in enumerate(rows) if each.source == source]
        part = same.index(row.row) if row.row in same else 0
        entry_id = self._course.ids[row.entry]
        return RowName(entry_id, row.entry, piece.key, row.row, self.columns, source, part, max(len(same), 1))

    def resolve(self, name: RowName) -> RowSpot | None:
        """None: its entry is gone."""
        return self._resolve(name) if self._course.number(name.entry) is not None else None

    def _resolve(self, name: RowName) -> RowSpot | None:
        """Where this row is now, or what has taken its place."""
        entry = self._course.number(name.entry)
        if entry is None:
            spot = self.after(Spot(min(name.number, len(self._course.ids)) - 1, 1 << 30))
            return RowSpot(spot.entry, spot.piece, 0) if spot else None
        pieces = self._course.pieces(entry)
        number = self._piece_of(name, [piece.key for piece in pieces])
        if number is None:
            spot = self.after(Spot(entry - 1, 1 << 30)) or self.before(Spot(entry, 0))
            return RowSpot(spot.entry, spot.piece, 0) if spot else None
        rows = self.rows_at(Spot(entry, number))
        if pieces[number].key != name.piece:
            return RowSpot(entry, number, 0)
        row = name.row if name.columns == self.columns else self._row_of(name, rows)
        return RowSpot(entry, number, max(min(row, len(rows) - 1), 0))

    @staticmethod
    def _piece_of(name: RowName, keys: list[PieceKey]) -> int | None:
        """The piece, or the nearest before it of the same item."""
        if name.piece in keys:
            return keys.index(name.piece)
        same = [number for number, key in enumerate(keys) if key[0] == name.piece[0]]
        return next(
            (number for number in reversed(same) if keys[number][1:] <= name.piece[1:]), same[0] if same else None
        )

    @staticmethod
    def _row_of(name: RowName, rows: list[StyledLine]) -> int:
        same = [number for number, row in enumerate(rows) if row.source == name.source]
        if not same:
            return 0
        return same[min(name.part * len(same) // name.parts, len(same) - 1)]

    # ── what is out of sight ──

    def _end_now(self) -> _End | None:
        last = self._course.last()
        if last is None:
            return None
        piece = self._course.piece(last)
        return _End(self._course.ids[last.entry], last.entry, piece.key, piece.segment.end)

    def new_below(self) -> int:
        """About how many rows have come since the end was last on the screen."""
        if self.is_following or self._end is None:
            return 0
        entry = self._course.number(self._end.entry)
        if entry is None:
            entry = min(self._end.number, len(self._course.ids) - 1)
        keys = [piece.key for piece in self._course.pieces(entry)]
        number = keys.index(self._end.piece) if self._end.piece in keys else len(keys) - 1
        count = -self._estimated_then(Spot(entry, number), self._end.seen) if self._end.piece in keys else 0
        for spot in self._from(Spot(entry, max(number, 0))):
            count += estimate(self._course.piece(spot), self.text_columns)
            if count > COUNTED:
                break
        return max(min(count, COUNTED), 0)

    def _estimated_then(self, spot: Spot, seen: int) -> int:
        """Rows that its text would have now, had nothing come: another width is no news."""
        piece = self._course.piece(spot)
        segment = replace(piece.segment, end=min(seen, piece.segment.end))
        return estimate(replace(piece, segment=segment), self.text_columns)

    def _from(self, spot: Spot) -> Iterator[Spot]:
        at: Spot | None = spot if self._course.pieces(spot.entry) else self._course.after(spot)
        while at:
            yield at
            at = self._course.after(at)
