"""The pieces of a transcript in their order, made where somebody looks. Messages that nobody looks at cost nothing.

Beside the messages there is one entry at the end, for what comes after all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from covey.client.view.view import View
from covey.protocol.messages import Message
from covey.tui.transcript.items import Item
from covey.tui.transcript.pieces import Cutter, Piece, parted
from covey.tui.transcript.reading import CallClock, EntryReader, MessageEntry

KEPT_ENTRIES = 400
"""Messages whose pieces are known: some screens of them, even if each is one row."""
AFTER_ALL = ""
"""The id of the last entry, which is of no message."""


@dataclass(frozen=True, slots=True)
class Spot:
    """A piece, by its entry and its number there. It holds until the course is looked at anew."""

    entry: int
    piece: int


@dataclass(slots=True)
class _Known:
    """What is known of an entry."""

    items: tuple[Item, ...]
    pieces: tuple[Piece, ...] | None = None
    """None: nobody has asked for them yet."""
    is_parted: bool = False
    """A blank row comes before it."""


class Course:
    """Entries by number: one for each message that is known, and the one after all."""

    def __init__(self) -> None:
        self._view: View | None = None
        self._reader: EntryReader | None = None
        self._clock = CallClock()
        self._cutter = Cutter()
        self._shape: tuple[object, int] = (None, -1)
        self.ids: list[str] = [AFTER_ALL]
        self._numbers: dict[str, int] | None = None
        """Of the ids; None: nobody has asked since they changed."""
        self._known: dict[str, _Known] = {}
        """Those used last are at the end."""
        self._checked: set[str] = set()
        """Entries that were compared with the view since it was last given."""
        self._settled: set[str] = set()
        """Those whose pieces fit to what is before them."""
        self.opened: dict[str, bool] = {}
        """Items that the user has opened or closed."""
        self.all_open = False

    def sync(self, view: View, now: float, me: str) -> bool:
        """The view may have changed. True: it shows another session, or all of it is other than it was."""
        messages = view.conversation.messages
        is_other = self._shape[0] is not messages
        if (messages, messages.shape) != self._shape:
            self._shape = messages, messages.shape
            self.ids = [*messages.ids(), AFTER_ALL]
            self._numbers = None
        if is_other:
            self._known.clear()
            self._cutter.clear()
            self._clock = CallClock()
        self._view = view
        self._reader = EntryReader(view, self._clock, now, self.is_open, me)
        self._checked.clear()
        self._settled.clear()
        return is_other

    def number(self, entry_id: str) -> int | None:
        if self._numbers is None:
            self._numbers = {each: number for number, each in enumerate(self.ids)}
        return self._numbers.get(entry_id)

    def items(self, number: int) -> tuple[Item, ...]:
        """What an entry says."""
        return self._entry(number).items

    def pieces(self, number: int) -> tuple[Piece, ...]:
        known = self._entry(number)
        if known.pieces is not None and self.ids[number] in self._settled:
            return known.pieces
        before = self._item_before(number) if known.items else None
        is_parted = self._is_parted(before, known.items[0]) if known.items else False
        if known.pieces is None or known.is_parted != is_parted:
            known.pieces, known.is_parted = tuple(self._cut(before, known.items)), is_parted
        self._settled.add(self.ids[number])
        return known.pieces

    def piece(self, spot: Spot) -> Piece:
        return self.pieces(spot.entry)[spot.piece]

    def is_open(self, key: str) -> bool:
        return self.opened.get(key, self.all_open)

    def set_open(self, key: str, is_open: bool) -> None:
        self.opened[key] = is_open
        self.remake()

    def open_all(self, is_open: bool) -> None:
        self.opened.clear()
        self.all_open = is_open
        self.remake()

    def remake(self) -> None:
        """Items are folded otherwise: pieces of what is looked at are made again."""
        self._known.clear()
        self._checked.clear()
        self._settled.clear()

    # ── walking ──

    def last(self) -> Spot | None:
        return self.before(Spot(len(self.ids), 0))

    def before(self, spot: Spot) -> Spot | None:
        if spot.piece > 0:
            return Spot(spot.entry, spot.piece - 1)
        for number in range(spot.entry - 1, -1, -1):
            if pieces := self.pieces(number):
                return Spot(number, len(pieces) - 1)
        return None

    def after(self, spot: Spot) -> Spot | None:
        if spot.entry >= 0 and spot.piece + 1 < len(self.pieces(spot.entry)):
            return Spot(spot.entry, spot.piece + 1)
        for number in range(spot.entry + 1, len(self.ids)):
            if self.pieces(number):
                return Spot(number, 0)
        return None

    def seen_items(self) -> Iterator[Item]:
        """Of what was looked at since the last view."""
        return (item for entry_id in self._checked for item in self._known[entry_id].items)

    # ── entries ──

    def _entry(self, number: int) -> _Known:
        """Compared with the view once after each sync; what has not changed stays as it is."""
        entry_id = self.ids[number]
        known = self._known.pop(entry_id, None)
        if known is None or entry_id not in self._checked:
            items = tuple(self._read(number))
            if known is None or known.items != items:
                known = _Known(items)
            self._checked.add(entry_id)
        self._known[entry_id] = known
        return known

    def forget(self) -> None:
        """Let go of what was not looked at for the longest time. Call it when a screen is done."""
        while len(self._known) > KEPT_ENTRIES and (oldest := next(iter(self._known))) not in self._checked:
            del self._known[oldest]

    def _read(self, number: int) -> list[Item]:
        assert self._reader, "nothing is looked at before there is a view"
        if number == len(self.ids) - 1:
            return self._reader.after_all()
        message = self._message(number)
        if message is None or (message.role == "tool" and self._owner(number)):
            return []
        return self._reader.items(MessageEntry(message, self._results(number) if message.role == "assistant" else ()))

    def _message(self, number: int) -> Message | None:
        """None: it has gone since the last sync."""
        return self._view.conversation.messages.get(self.ids[number]) if self._view else None

    def _results(self, number: int) -> tuple[Message, ...]:
        """The messages after an answer that hold what its calls gave; a person's own command may stand among them."""
        found: list[Message] = []
        for following in range(number + 1, len(self.ids) - 1):
            message = self._message(following)
            if message is None or not (message.role == "tool" or message.is_command):
                break
            if message.role == "tool":
                found.append(message)
        return tuple(found)

    def _owner(self, number: int) -> Message | None:
        """The answer whose calls gave what is in this message."""
        for earlier in range(number - 1, -1, -1):
            message = self._message(earlier)
            if message and message.role != "tool" and not message.is_command:
                return message if message.role == "assistant" else None
        return None

    def _item_before(self, number: int) -> Item | None:
        for earlier in range(number - 1, -1, -1):
            if items := self._entry(earlier).items:
                return items[-1]
        return None

    def _is_parted(self, before: Item | None, item: Item) -> bool:
        return parted(before, item, is_open=before is not None and self.is_open(before.key))

    def _cut(self, before: Item | None, items: tuple[Item, ...]) -> Iterator[Piece]:
        for item in items:
            if self._is_parted(before, item):
                yield Piece(item, "gap")
            yield from self._cutter.pieces(item, is_open=self.is_open(item.key))
            before = item
