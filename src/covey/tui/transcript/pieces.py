"""An item in pieces, each of which is rendered on its own: rows at its head, and segments of what it says below."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from typing import Literal, assert_never

from covey.lines.calls import call_line, file_language, whole_call
from covey.lines.diffs import DiffPlace, beginning, read_diff
from covey.lines.pictures import PIXELS_IN, PictureSource, pixels
from covey.lines.plain_text import one_line
from covey.lines.results import whole_result
from covey.lines.segments import Segment, more_segments
from covey.protocol.messages import ToolResult
from covey.protocol.printed import as_printed
from covey.tui.transcript.items import (
    AnswerItem,
    CallItem,
    Item,
    NoteItem,
    PromptItem,
    ShellItem,
    SummaryItem,
    ThoughtItem,
)

SectionKind = Literal["prompt", "markdown", "thought", "text", "file", "diff", "picture"]
PieceKind = Literal["gap", "head"] | SectionKind
PROMPT_LINES, PROMPT_MORE, PROMPT_LENGTH = 12, 8, 2000
"""Of a long prompt so many lines, or characters, are shown at first; it is long if there are some more than that."""
NO_SEGMENT, NO_PLACE = Segment(0, 0), DiffPlace()


@dataclass(frozen=True, slots=True)
class Section:
    """A text that an item shows."""

    kind: SectionKind
    text: str
    language: str = ""
    """Of the file that it is from, by its ending."""
    picture: PictureSource | None = None


@dataclass(frozen=True, slots=True)
class Piece:
    item: Item
    kind: PieceKind
    text: str = ""
    """The whole text of its section: what its rows name as their source."""
    section: int = -1
    segment: Segment = NO_SEGMENT
    place: DiffPlace = NO_PLACE
    """Of a diff: where it begins."""
    is_open: bool = False
    """The item shows all that it has."""
    language: str = ""
    picture: PictureSource | None = None

    @property
    def key(self) -> PieceKey:
        return self.item.key, self.section if self.kind != "gap" else -2, self.segment.start


PieceKey = tuple[str, int, int]
"""The item, which of its texts (-1: the head, -2: the blank row before it), and where in that."""


def can_open(item: Item) -> bool:
    """There is more of it than is shown at first."""
    match item:
        case ThoughtItem() | SummaryItem():
            return True
        case CallItem():
            if item.call.name == "todos":  # the list is all there is to see
                return False
            return item.result is not None or bool(item.tail or item.printed or whole_call(item.call))
        case ShellItem():
            return not item.is_short
        case PromptItem():
            return _beginning(item.text) < len(item.text) or bool(item.pictures)
        case NoteItem():
            return item.picture is not None
        case AnswerItem():
            return False
        case _:
            assert_never(item)


def has_head(item: Item) -> bool:
    return not isinstance(item, AnswerItem)


def sections(item: Item, *, is_open: bool) -> list[Section]:
    """What is below its head."""
    match item:
        case PromptItem():
            shown = item.text if is_open else item.text[: _beginning(item.text)]
            pictures = [_picture(each) for each in item.pictures] if is_open else []
            return [*([Section("prompt", shown)] if shown else []), *pictures]
        case AnswerItem():
            return [Section("markdown", item.text)]
        case ThoughtItem():
            return [Section("thought", item.text)] if is_open else []
        case SummaryItem():
            return [Section("markdown", item.text)] if is_open else []
        case CallItem():
            return _call_sections(item) if is_open and item.call.name != "todos" else []
        case ShellItem():
            output = as_printed(item.command.output) if is_open or item.is_short else ""
            return [Section("text", output)] if output.strip() else []
        case NoteItem():
            return [_picture(item.picture)] if is_open and item.picture else []
        case _:
            assert_never(item)


def _picture(source: PictureSource) -> Section:
    """What is said of it, where it cannot be shown."""
    size = pixels(source.mime_type, source.data[:PIXELS_IN])
    about = f"{size[0]} × {size[1]}" if size else ""
    words = (source.name if source.name != source.mime_type else "", source.mime_type, about)
    return Section("picture", " · ".join(filter(None, map(one_line, words))), picture=source)


def _beginning(text: str) -> int:
    """How much of a prompt is shown at first: all of it, unless somebody has pasted a whole file into it."""
    ends = [found.end() for found in islice(re.finditer("\n", text), PROMPT_LINES + PROMPT_MORE)]
    end = ends[PROMPT_LINES - 1] if len(ends) == PROMPT_LINES + PROMPT_MORE else len(text)
    return min(end, PROMPT_LENGTH) if end > PROMPT_LENGTH + 500 else end


def _call_sections(item: CallItem) -> list[Section]:
    call = whole_call(item.call)
    found = [Section("text", call)] if call else []
    if item.printed:
        found.append(Section("text", as_printed(item.printed)))
    elif item.result and item.result.content:
        kind, text = whole_result(item.call, item.result)
        found.append(Section(kind, text, file_language(item.call) if kind == "file" else ""))
    if item.result and (picture := result_picture(item.result)):
        found.append(_picture(picture))
    return found


def result_picture(result: ToolResult) -> PictureSource | None:
    if not result.data or not (result.mime_type or "").startswith("image/"):
        return None
    return PictureSource("", result.mime_type or "", result.data)


def source_texts(item: Item) -> list[Section]:
    """All that can be found in it, also what is not shown at first."""
    return sections(item, is_open=True)


def head_text(item: Item) -> str:
    """What its head says that is no text below it."""
    match item:
        case CallItem():
            return call_line(item.call).text
        case ShellItem():
            return item.command.command
        case NoteItem():
            return item.text
        case PromptItem() | AnswerItem() | ThoughtItem() | SummaryItem():
            return ""
        case _:
            assert_never(item)


class Cutter:
    """Cuts items into pieces; what has grown since it was last cut keeps its pieces but the last. Bounded."""

    def __init__(self, kept: int = 256) -> None:
        self._kept = kept
        self._known: dict[tuple[str, int], tuple[Section, list[Segment], list[DiffPlace]]] = {}

    def pieces(self, item: Item, *, is_open: bool) -> list[Piece]:
        found = [Piece(item, "head", is_open=is_open)] if has_head(item) else []
        for number, section in enumerate(sections(item, is_open=is_open)):
            segments, places = self._segments(item.key, number, section)
            found += [
                Piece(
                    item, section.kind, section.text, number, segment, place, is_open, section.language, section.picture
                )
                for segment, place in zip(segments, places, strict=True)
            ]
        return found

    def clear(self) -> None:
        self._known.clear()

    def _segments(self, key: str, number: int, section: Section) -> tuple[list[Segment], list[DiffPlace]]:
        known = self._known.pop((key, number), None)
        if known and known[0].kind == section.kind and section.text.startswith(known[0].text):
            segments, places = known[1], known[2]
            if len(section.text) > len(known[0].text):
                segments = more_segments(section.text, segments, is_markdown=section.kind == "markdown")
        else:
            segments, places = more_segments(section.text, [], is_markdown=section.kind == "markdown"), []
        if len(places) != len(segments) or section.kind == "diff":
            places = _places(section, segments)
        self._known[key, number] = section, segments, places
        if len(self._known) > self._kept:
            del self._known[next(iter(self._known))]
        return segments, places


def _places(section: Section, segments: list[Segment]) -> list[DiffPlace]:
    if section.kind != "diff":
        return [NO_PLACE] * len(segments)
    places = [beginning(section.text)]
    for segment in segments[:-1]:
        places.append(read_diff(section.text, segment.start, segment.end, places[-1])[1])
    return places


def parted(before: Item | None, item: Item, *, is_open: bool = False) -> bool:
    """A blank row stands between these. What a step did stays together; what somebody says stands for itself.

    `is_open`: the one before shows all that it has.
    """
    if before is None:
        return False
    if isinstance(before, ThoughtItem) and isinstance(item, AnswerItem):
        return is_open
    if isinstance(before, AnswerItem) and isinstance(item, NoteItem):
        return False
    return _speaks(before) or _speaks(item)


def _speaks(item: Item) -> bool:
    return isinstance(item, PromptItem | AnswerItem | SummaryItem | ShellItem)


def estimate(piece: Piece, columns: int) -> int:
    """How many rows it will have, roughly, without rendering it."""
    if piece.kind in ("gap", "head"):
        return 1
    start, end = piece.segment.start, piece.segment.end
    return piece.text.count("\n", start, end) + (end - start) // max(columns, 1) + 1
