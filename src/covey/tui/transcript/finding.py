"""Looking for words in a transcript from where one is, to what is older or newer. It costs the way there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from covey.tui.transcript.course import Course
from covey.tui.transcript.items import Item
from covey.tui.transcript.pieces import head_text, source_texts

Order = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class FoundPlace:
    """Where words stand: in which entry, item and text of it, and from where."""

    entry: int
    """Its number when it was found."""
    entry_id: str
    item: int
    key: str
    section: int
    offset: int
    end: int

    @property
    def order(self) -> Order:
        return self.entry, self.item, self.section, self.offset


def pattern(words: str) -> re.Pattern[str]:
    """As people see it: any case, any blanks between words, and marks of Markdown around them do not count."""
    marks = r"[*_`~]*"
    return re.compile(rf"{marks}\s+{marks}".join(re.escape(word) for word in words.split()), re.IGNORECASE)


def _places(course: Course, wanted: re.Pattern[str], entry: int) -> list[FoundPlace]:
    """All places in one entry, in order."""
    return [
        FoundPlace(entry, course.ids[entry], number, item.key, section, found.start(), found.end())
        for number, item in enumerate(course.items(entry))
        for section, text in _texts(item)
        for found in wanted.finditer(text)
    ]


def _texts(item: Item) -> Iterator[tuple[int, str]]:
    yield -1, head_text(item)
    yield from enumerate(section.text for section in source_texts(item))


class Finder:
    """What is looked for, and where one is with it."""

    def __init__(self, course: Course) -> None:
        self._course = course
        self.words = ""
        self._wanted = pattern("")
        self.match: FoundPlace | None = None
        self._counted: tuple[list[str], str, dict[tuple[str, int, int, int], int]] | None = None
        """For these entries and words: the number of each place."""

    def clear(self) -> None:
        self.match = None

    def look_for(self, words: str, entry: int) -> FoundPlace | None:
        """Back from this entry, or from the last match as long as it fits; then from the end."""
        self.words, self._wanted = words, pattern(words)
        if not words.strip():
            self.match = None
            return None
        start = self._here(self.match) if self.match else (entry, 1 << 30, 0, 0)
        self.match = self._older((*start[:3], start[3] + 1)) or self._older(self._end)
        return self.match

    def step(self, by: int) -> FoundPlace | None:
        """The next newer match, or older if it is negative; from one end it goes on at the other."""
        if self.match is None:
            return self.look_for(self.words, len(self._course.ids))
        here = self._here(self.match)
        if by < 0:
            self.match = self._older(here) or self._older(self._end)
        else:
            self.match = self._newer(here) or self._newer((0, -1, 0, 0))
        return self.match

    def count(self) -> tuple[int, int]:
        """Which of the places the match is, from the oldest on, and how many there are in what is loaded."""
        if self.match is None:
            return 0, 0
        match, ids = self.match, self._course.ids
        key = match.entry_id, match.item, match.section, match.offset
        counted = self._counted
        # What streams into an entry changes places without a new entry: a match that is not among them says so.
        if counted is None or counted[0] is not ids or counted[1] != self.words or key not in counted[2]:
            places = (place for entry in range(len(ids)) for place in _places(self._course, self._wanted, entry))
            keys = ((place.entry_id, place.item, place.section, place.offset) for place in places)
            counted = self._counted = ids, self.words, {each: number for number, each in enumerate(keys, 1)}
        return counted[2].get(key, 0), len(counted[2])

    def _here(self, match: FoundPlace) -> Order:
        """Where it is now: older entries may have come before it."""
        number = self._course.number(match.entry_id)
        return (match.entry if number is None else number), match.item, match.section, match.offset

    @property
    def _end(self) -> Order:
        return len(self._course.ids), 0, 0, 0

    def _older(self, before: Order) -> FoundPlace | None:
        """The last place before this one."""
        for entry in range(min(before[0], len(self._course.ids) - 1), -1, -1):
            found = [place for place in _places(self._course, self._wanted, entry) if place.order < before]
            if found:
                return found[-1]
        return None

    def _newer(self, after: Order) -> FoundPlace | None:
        """The first place after this one."""
        for entry in range(max(after[0], 0), len(self._course.ids)):
            found = [place for place in _places(self._course, self._wanted, entry) if place.order > after]
            if found:
                return found[0]
        return None
