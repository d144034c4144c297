"""The transcript of a session as a face uses it: give it the view, ask it for rows, and tell it what the user does.

    transcript.sync(view, now)
    rows = transcript.rows(width, height)

Pure: it reads no clock and waits for nothing. Opening the longest session costs one screen, a delta what it brings, and
what is kept is bounded by what is shown. A row that has not changed since the last call is the very same object.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from covey.client.view.view import View
from covey.lines.line import EMPTY, StyledLine
from covey.lines.widths import width
from covey.tui.transcript.anchoring import TranscriptPoint, anchored, placed
from covey.tui.transcript.copying import cells_of, copied
from covey.tui.transcript.course import Course, Spot
from covey.tui.transcript.finding import Finder, FoundPlace
from covey.tui.transcript.items import AnswerItem, Item, NoteItem, is_live, ticks
from covey.tui.transcript.look import Look
from covey.tui.transcript.marking import MarkedRange, RowMarker, found_in
from covey.tui.transcript.pieces import Piece, can_open, source_texts
from covey.tui.transcript.rendering import Renderings
from covey.tui.transcript.window import RowName, RowSpot, Window

NEAR_TOP = 12
"""Entries above the screen: with fewer than these, older ones are wanted."""


@dataclass(frozen=True, slots=True)
class _Selection:
    start: TranscriptPoint
    end: TranscriptPoint


_Ends = tuple[tuple[RowSpot, int], tuple[RowSpot, int]]
"""The first and the last cell of what is selected."""


class ShownTranscript:
    def __init__(self, *, root: str = "", me: str = "", utc_offset: int = 0) -> None:
        self._look = Look(80, root, utc_offset)
        self._me = me
        self._course = Course()
        self._renderings = Renderings()
        self._window = Window(self._course, self._renderings)
        self._shown: list[tuple[RowSpot, StyledLine]] = []
        self._seen: list[tuple[str, Piece]] = []
        """Of which entries and pieces the rows are that were last given: what the user points at is there."""
        self._has_older = False
        self._is_synced = False
        self._selection: _Selection | None = None
        self._finder = Finder(self._course)
        self._focus = ""
        """The key of the item that the keyboard is on."""
        self._marker = RowMarker()

    def show_pictures(self, kinds: frozenset[str]) -> None:
        """The terminal can show these kinds."""
        self._look = replace(self._look, pictures=kinds)

    # ── what is shown ──

    def sync(self, view: View, now: float) -> None:
        """The view may have changed, however often since the last call; `now` is unix time."""
        if self._course.sync(view, now, self._me):
            self._window.reset()
            self._renderings.clear()
            self._finder.clear()
            self._selection, self._focus = None, ""
        self._has_older = view.conversation.has_older
        root = view.workspace.path if view.workspace else self._look.root
        self._look = replace(self._look, root=root, today=(int(now) + self._look.utc_offset) // 86_400)
        self._is_synced = True

    def rows(self, columns: int, height: int) -> tuple[StyledLine, ...]:
        """Exactly so many rows, none wider than the screen."""
        if not self._is_synced or columns < 1 or height < 1:
            return (EMPTY,) * max(height, 0)
        held = self._selection if columns != self._look.columns else None
        anchors = [anchored(each, self._window, self._course) for each in (held.start, held.end)] if held else []
        self._look = replace(self._look, columns=columns)
        self._renderings.set_look(self._look)
        self._window.resize(columns, height, self._look.text)
        if anchors:
            start, end = (placed(each, self._window, self._course) for each in anchors)
            self._selection = _Selection(start, end)
        self._shown = self._window.fill()
        self._seen = [(self._course.ids[spot.entry], self._course.piece(spot.spot)) for spot, _ in self._shown]
        self._renderings.forget()
        self._course.forget()
        ends, cells = self._selected(), self._match_cells()
        found = tuple(
            self._marker.mark(spot, row, self._marks(spot, row, ends, cells), is_meant=piece.item.key == self._focus)
            for (spot, row), (_, piece) in zip(self._shown, self._seen, strict=True)
        )
        return (*found, *(EMPTY,) * (height - len(found)))

    @property
    def is_following(self) -> bool:
        """The end is on the screen, and what comes will be."""
        return self._window.is_following

    @property
    def new_below(self) -> int:
        """About how many rows have come below since the user has left the end; at most 999."""
        return self._window.new_below() if self._is_synced else 0

    @property
    def older_wanted(self) -> bool:
        """The user is near the beginning of what is known, and there is more on the server."""
        top = self._shown[0][0].entry if self._shown else 0
        return self._has_older and (top < NEAR_TOP or len(self._shown) < self._window.height)

    @property
    def is_live(self) -> bool:
        """Something that was looked at goes on: a call runs or waits, or an answer is written."""
        return any(is_live(item) for item in self._course.seen_items())

    @property
    def ticks(self) -> bool:
        """Something that was looked at tells seconds that go by: without an event, look again in a second."""
        return any(ticks(item) for item in self._course.seen_items())

    # ── moving ──

    def scroll(self, lines: int) -> None:
        """Down by so many rows; up if it is negative."""
        if self._is_synced:
            self._window.scroll(lines)

    def page(self, pages: float) -> None:
        """Down by so many screens, less two rows that stay in sight; up if it is negative."""
        rows = max(int((self._window.height - 2) * abs(pages)), 1)
        self.scroll(rows if pages > 0 else -rows)

    def to_end(self) -> None:
        self._window.to_end()

    def to_start(self) -> None:
        if self._is_synced:
            self._window.to_start()

    # ── folding ──

    def toggle(self, key: str) -> bool:
        """Open an item, or close it; False if there is nothing to open. The row on top stays there, if it can."""
        item = self._item(key)
        if item is None or not can_open(item):
            return False
        self._window.hold()
        self._course.set_open(key, not self._course.is_open(key))
        self._window.settle()
        return True

    def fold_all(self, *, is_open: bool) -> None:
        self._course.open_all(is_open)
        if self._is_synced and not self._window.is_following:
            self._window.settle()

    @property
    def all_open(self) -> bool:
        return self._course.all_open

    # ── items by keyboard ──

    @property
    def focused(self) -> str:
        """The key of the item that the keyboard is on; '' if it is on none."""
        return self._focus

    def focus(self, key: str) -> None:
        self._focus = key

    def step(self, by: int) -> None:
        """To the next item, or the one before; from none to the last that is on the screen."""
        if not self._shown:
            return
        spots = self._item_spots(by)
        if spots:
            spot, item = spots
            self._focus = item.key
            self._window.reveal(RowSpot(spot.entry, spot.piece, 0))

    # ── the mouse ──

    def hit(self, row: int, column: int) -> TranscriptPoint | None:
        """What is in this cell of the rows that were last given; None: nothing."""
        if not 0 <= row < len(self._shown):
            return None
        (spot, shown), (entry_id, piece) = self._shown[row], self._seen[row]
        name = RowName(entry_id, spot.entry, piece.key, spot.row, self._look.columns, shown.source)
        return TranscriptPoint(piece.item.key, name, max(column, 0))

    def select(self, start: TranscriptPoint | None, end: TranscriptPoint | None = None) -> None:
        """From one cell to another, in any order, both included. None: nothing is selected."""
        self._selection = _Selection(start, end or start) if start else None

    @property
    def has_selection(self) -> bool:
        return self._selection is not None

    def selected_text(self) -> str:
        """As it was written."""
        ends = self._selected()
        if ends is None:
            return ""
        (first, column), (last, last_column) = ends
        texts: list[str] = []
        spot: Spot | None = first.spot
        while spot:
            is_last = spot == last.spot
            rows = self._window.rows_at(spot)
            begin = (first.row, column) if spot == first.spot else (0, 0)
            end = (last.row, last_column) if is_last else (len(rows) - 1, -1)
            piece = self._course.piece(spot)
            if piece.kind != "gap":
                joined = "\n" if texts else ""
                texts.append(joined + copied(piece, rows, begin, end))
            elif texts:
                texts.append("\n")
            spot = None if is_last else self._window.after(spot)
        return "".join(texts)

    def _selected(self) -> _Ends | None:
        if self._selection is None:
            return None
        start, end = self._window.resolve(self._selection.start.row), self._window.resolve(self._selection.end.row)
        if start is None or end is None:
            return None
        ends = sorted(((start, self._selection.start.column), (end, self._selection.end.column)))
        return ends[0], ends[1]

    def extend(self, rows: int) -> None:
        """Select the first row of the item that the keyboard is on; from then on, so many rows more, or less."""
        if self._selection is None:
            if not self._focus:
                self.step(-1)
            if spot := self._spot_of(self._focus):
                self.select(self._point(spot, 0, 0), self._point(spot, 0, self._look.columns))
            return
        end = self._window.resolve(self._selection.end.row)
        if end:
            moved = self._window.moved(end, rows)
            self.select(self._selection.start, self._point(moved.spot, moved.row, self._look.columns))
            self._window.reveal(moved)

    def _point(self, spot: Spot, row: int, column: int) -> TranscriptPoint:
        name = self._window.name(RowSpot(spot.entry, spot.piece, row))
        return TranscriptPoint(self._course.piece(spot).item.key, name, column)

    # ── copying whole things ──

    def item_text(self, key: str) -> str:
        """All that was written in it."""
        item = self._item(key)
        if item is None:
            return ""
        return item.text if isinstance(item, NoteItem) else "\n".join(each.text for each in source_texts(item))

    def last_answer(self) -> str:
        """The text of the last answer: all of it, whatever was done in between."""
        for number in range(len(self._course.ids) - 1, -1, -1):
            answers = [item.text for item in self._course.items(number) if isinstance(item, AnswerItem)]
            if answers:
                return "\n\n".join(answers)
        return ""

    # ── searching ──

    @property
    def words(self) -> str:
        """What is looked for; '' if nothing is."""
        return self._finder.words

    @property
    def match_count(self) -> tuple[int, int]:
        """Which one of how many is shown; (0, 0): none."""
        return self._finder.count()

    def search(self, words: str) -> bool:
        """Look for words, from the end of the screen back to what is older, then from the end. False: they are nowhere.

        Called anew with each letter, it stays where it is as long as that fits.
        """
        entry = self._shown[-1][0].entry if self._shown else len(self._course.ids)
        return self._is_synced and self._go(self._finder.look_for(words, entry))

    def next_match(self) -> bool:
        """The next newer one; from the last one to the first."""
        return self._is_synced and self._go(self._finder.step(1))

    def previous_match(self) -> bool:
        """The next older one; from the first one to the last."""
        return self._is_synced and self._go(self._finder.step(-1))

    def _go(self, found: FoundPlace | None) -> bool:
        """Show it, and open what hides it."""
        if found is None:
            return False
        item = self._course.items(found.entry)[found.item]
        if found.section >= 0 and can_open(item) and not self._course.is_open(item.key):
            self._course.set_open(item.key, True)
        for number, piece in enumerate(self._course.pieces(found.entry)):
            inside = piece.segment.start <= found.offset < piece.segment.end or found.section < 0
            is_text = piece.section == found.section and piece.kind != "gap"
            if piece.item.key == found.key and is_text and inside:
                cells = cells_of(piece, self._window.rows_at(Spot(found.entry, number)), found.offset, found.end)
                self._window.reveal(RowSpot(found.entry, number, min(cells, default=0)))
                break
        return True

    def _match_cells(self) -> dict[RowSpot, tuple[int, int]]:
        """Where the place stands at which the search is, if it is on the screen."""
        match = self._finder.match
        for (spot, _), (entry_id, piece) in zip(self._shown, self._seen, strict=True):
            if match is None or entry_id != match.entry_id or piece.item.key != match.key:
                continue
            if piece.section == match.section >= 0 and piece.segment.start <= match.offset < piece.segment.end:
                cells = cells_of(piece, self._window.rows_at(spot.spot), match.offset, match.end)
                return {RowSpot(spot.entry, spot.piece, row): columns for row, columns in cells.items()}
        return {}

    # ── helpers ──

    def _marks(
        self, spot: RowSpot, row: StyledLine, ends: _Ends | None, cells: dict[RowSpot, tuple[int, int]]
    ) -> list[MarkedRange]:
        marks = found_in(row, self.words, "found")
        if spot in cells:
            marks.append(MarkedRange(*cells[spot], "selected"))
        if ends and ends[0][0] <= spot <= ends[1][0]:
            first = ends[0][1] if spot == ends[0][0] else 0
            end = ends[1][1] + 1 if spot == ends[1][0] else width(row.text)
            marks.append(MarkedRange(first, max(end, first), "selected"))
        return marks

    def _item(self, key: str) -> Item | None:
        spot = self._spot_of(key)
        return self._course.piece(spot).item if spot else None

    def _spot_of(self, key: str) -> Spot | None:
        """Where an item begins: first among what is on the screen, then from the end."""
        entries = dict.fromkeys(spot.entry for spot, _ in self._shown)
        for number in (*entries, *range(len(self._course.ids) - 1, -1, -1)):
            if number < len(self._course.ids) and any(item.key == key for item in self._course.items(number)):
                for at, piece in enumerate(self._course.pieces(number)):
                    if piece.item.key == key and piece.kind != "gap" and self._window.rows_at(Spot(number, at)):
                        return Spot(number, at)
        return None

    def _item_spots(self, by: int) -> tuple[Spot, Item] | None:
        """The item next to the one that the keyboard is on."""
        here = self._spot_of(self._focus) if self._focus else None
        if here is None:
            last = self._seen[-1][1].item
            found = self._spot_of(last.key)
            return (found, last) if found else None
        item = self._course.piece(here).item
        walk = self._window.after if by > 0 else self._window.before
        at = walk(here)
        while at and (self._course.piece(at).kind == "gap" or self._course.piece(at).item.key == item.key):
            at = walk(at)
        if at is None:
            return None
        found = self._spot_of(self._course.piece(at).item.key)
        return (found, self._course.piece(found).item) if found else None
