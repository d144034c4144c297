"""How the items of a transcript look: rows for a piece of one. Everything secondary is dim; what is said is not."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import assert_never

from covey.lines.calls import call_line
from covey.lines.code import coloured
from covey.lines.diffs import read_diff, split_rows, unified_rows
from covey.lines.inline import with_links
from covey.lines.line import EMPTY, Span, Style, StyledLine, line
from covey.lines.pictures import PictureRow, fitted
from covey.lines.plain_text import one_line, plain
from covey.lines.results import Shown, result_lines, tail_lines
from covey.lines.widths import cut_line, expanded, width
from covey.lines.words import counted, so_far
from covey.lines.wrap import broken_line, wrap
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
from covey.tui.transcript.pieces import Piece

TEXT_COLUMNS = 110
"""Longer lines are hard to read."""
MARGIN = "  "
"""Left of what is said: the marks of items stand there."""
SPLIT_FROM = 120
"""Columns from which before and after stand beside each other."""
WIDEST_DIFF = 200
OWN_END = 12
"""Last lines of a long output of one's own command."""
_NUMBER = re.compile(r" *\d+ +")


@dataclass(frozen=True, slots=True)
class Look:
    columns: int
    """Of the whole transcript."""
    root: str = ""
    """The directory of the workspace: paths below it are shown from there, and lead there."""
    utc_offset: int = 0
    """Seconds between the clock on the wall and UTC."""
    today: int = 0
    """The day that it is, counted from 1970 on that clock."""
    pictures: frozenset[str] = frozenset()
    """Kinds of them that the terminal can show."""

    @property
    def text(self) -> int:
        """Columns for what is said."""
        return max(min(self.columns, TEXT_COLUMNS + len(MARGIN)) - len(MARGIN), 8)

    @property
    def shown(self) -> Shown:
        return Shown(min(self.columns, TEXT_COLUMNS + len(MARGIN)), self.root)


def piece_rows(piece: Piece, look: Look) -> list[StyledLine]:
    """The rows of a piece of any kind but Markdown, which goes on where it ended: see `rendering.py`."""
    text = piece.text[piece.segment.start : piece.segment.end]
    match piece.kind:
        case "gap":
            return [EMPTY]
        case "head":
            return head_rows(piece.item, look, is_open=piece.is_open)
        case "prompt":
            assert isinstance(piece.item, PromptItem), "nothing else has such a text"
            return _prompt_rows(text, piece, piece.item, look)
        case "thought":
            return _lines(text, piece, look, Span("  ┊ ", "dim"), "dim")
        case "text" | "file":
            return _code_lines(text, piece, look)
        case "diff":
            return _diff(piece, look)
        case "picture":
            return _picture_rows(piece, look)
        case "markdown":
            raise AssertionError("it is rendered as it grows")
        case _:
            assert_never(piece.kind)


def _lines(text: str, piece: Piece, look: Look, bar: Span, style: Style) -> list[StyledLine]:
    """Words, wrapped at blanks, behind a bar."""
    rows: list[StyledLine] = []
    at = piece.segment.start
    for each in _split(text):
        spans = linked(with_links(expanded(plain(each)), style), look)
        rows += [StyledLine(row.spans, at) for row in wrap(spans, look.text + len(MARGIN), (bar,), (bar,))]
        at += len(each) + 1
    return rows


def _code_lines(text: str, piece: Piece, look: Look) -> list[StyledLine]:
    """What a program printed, or a file that was read: every blank counts."""
    rows: list[StyledLine] = []
    at = piece.segment.start
    columns = max(look.text - 2, 8)
    for each in _split(text):
        shown = expanded(plain(each))
        spans = _numbered(shown, piece.language) if piece.kind == "file" else linked(with_links(shown), look)
        made = broken_line(spans, columns)
        rows += [StyledLine((Span("  │ ", "border"), *row.spans), at) for row in made]
        at += len(each) + 1
    return rows


def _numbered(text: str, language: str) -> tuple[Span, ...]:
    """A line of a file, with the number before it that the model reads."""
    number = _NUMBER.match(text)
    if number is None:
        return (Span(text, "dim"),)
    return Span(number[0], "dim"), *coloured(text[number.end() :], language).spans


def _split(text: str) -> list[str]:
    """Lines; the line end of the last one begins no further line."""
    return text.removesuffix("\n").split("\n")


def _picture_rows(piece: Piece, look: Look) -> list[StyledLine]:
    """What it is called, and the picture itself where the terminal can show it."""
    rows = [_cut(look, Span(f"  ▣ {piece.text}", "dim"))]
    source = piece.picture
    if source is None or source.mime_type not in look.pictures:
        return rows
    picture = fitted(source, look.text - len(MARGIN))
    if picture is None:
        return rows
    blanks = " " * picture.columns
    shown = [PictureRow(picture, number) for number in range(picture.rows)]
    return [*rows, *(StyledLine((Span(MARGIN * 2), Span(blanks, picture=each))) for each in shown)]


def _diff(piece: Piece, look: Look) -> list[StyledLine]:
    lines, _ = read_diff(piece.text, piece.segment.start, piece.segment.end, piece.place)
    if look.columns >= SPLIT_FROM:
        return split_rows(lines, min(look.columns, WIDEST_DIFF))
    return unified_rows(lines, look.columns)


# ── heads ──


def head_rows(item: Item, look: Look, *, is_open: bool) -> list[StyledLine]:
    match item:
        case PromptItem():
            return _prompt_head(item, look)
        case ThoughtItem():
            return _thought_head(item, look, is_open=is_open)
        case CallItem():
            return _call_head(item, look, is_open=is_open)
        case ShellItem():
            return _shell_head(item, look, is_open=is_open)
        case SummaryItem():
            words = (
                "summarising the conversation …" if item.is_growing else "the conversation goes on from a summary of it"
            )
            return [_cut(look, Span(f"{_fold(is_open)} {words}", "dim"))]
        case NoteItem():
            return wrap(
                [Span(item.text, item.style)], look.text + 2, (Span(f"{item.mark} ", item.style),), (Span(MARGIN),)
            )
        case AnswerItem():
            return []
        case _:
            assert_never(item)


def _fold(is_open: bool) -> str:
    return "▾" if is_open else "▸"


def _cut(look: Look, *pieces: str | Span) -> StyledLine:
    return cut_line(line(*pieces), look.shown.columns)


def _prompt_head(item: PromptItem, look: Look) -> list[StyledLine]:
    """Who said it and when: above the text, where there is no room beside it."""
    spans, bar = _prompt_facts(item, look), Span("┃ ", "accent")
    if not spans or _has_room(item, spans, look):
        return []
    if item.state == "refused":  # why has to be read to its end: it says what to do
        return wrap(spans, look.text + len(MARGIN), (bar,), (bar,))
    return [_cut(look, bar, *spans)]


def _has_room(item: PromptItem, facts: list[Span], look: Look) -> bool:
    """For these beside the first line of the prompt."""
    first = item.text[: look.text + 1].partition("\n")[0]
    return bool(first.strip()) and width(expanded(plain(first))) + _width(facts) + 3 <= look.text


def _prompt_rows(text: str, piece: Piece, item: PromptItem, look: Look) -> list[StyledLine]:
    bar = Span("┃ ", "accent")
    rows = _lines(text, piece, look, bar, "")
    facts = _prompt_facts(item, look)
    if not piece.segment.start and facts and _has_room(item, facts, look):
        filling = Span(" " * (look.text + len(MARGIN) - width(rows[0].text) - _width(facts)))
        rows[0] = StyledLine((*rows[0].spans, filling, *facts), rows[0].source)
    left = len(item.text) - len(piece.text)
    if left and piece.segment.end == len(piece.text):  # only its beginning is shown
        lines = item.text.count("\n", len(piece.text)) + 1
        more = counted(lines, "more line") if lines > 1 else counted(left, "more character")
        rows.append(_cut(look, bar, Span(f"▸ {more}", "dim")))
    return rows


def _width(spans: Iterable[Span]) -> int:
    return sum(width(span.text) for span in spans)


def _prompt_facts(item: PromptItem, look: Look) -> list[Span]:
    """Who said it and when, and what became of it if it is not with the server yet."""
    words = [item.who, clock(item.at, look)] if item.state == "said" else [item.who]
    state: dict[str, tuple[str, Style]] = {
        "sending": ("sending …", "dim"),
        "not_sent": ("not sent yet", "warning"),
        "refused": (f"refused: {item.error}", "error"),
    }
    said, style = state.get(item.state, ("", "dim"))
    shown = " · ".join(filter(None, words))
    spans = [Span(shown, "dim"), Span(f"{' · ' * bool(shown and said)}{said}", style)]
    files = [Span(f"{' · ' * bool(shown or said)}with {', '.join(item.files)}", "dim")] if item.files else []
    return [span for span in (*spans, *files) if span.text]


def clock(at: float, look: Look) -> str:
    """`14:02`, with the days since then if it was not today."""
    if not at:
        return ""
    days, seconds = divmod(int(at) + look.utc_offset, 86_400)
    time = f"{seconds // 3600:02}:{seconds // 60 % 60:02}"
    ago = look.today - days
    return time if ago <= 0 else f"yesterday {time}" if ago == 1 else f"{ago} days ago, {time}"


def _thought_head(item: ThoughtItem, look: Look, *, is_open: bool) -> list[StyledLine]:
    if not item.is_growing:
        took = f" {item.seconds} s" if item.seconds else ""
        return [_cut(look, Span(f"{_fold(is_open)} thought{took}", "dim"))]
    rows = [_cut(look, Span(f"{_fold(is_open)} thinking …", "dim"))]
    if is_open:
        return rows
    last = [text for text in plain(item.text[-2000:]).split("\n") if text.strip()][-1:]
    wrapped = [row for text in last for row in wrap([Span(expanded(text), "dim")], look.text - 2)]
    return [*rows, *(line(Span("  ┊ ", "dim"), *row.spans) for row in wrapped[-2:])]


def _call_head(item: CallItem, look: Look, *, is_open: bool) -> list[StyledLine]:
    shown = look.shown
    if item.result:
        rows = result_lines(item.call, item.result, item.seconds, shown)
        if is_open and item.result.content and item.call.name != "todos":
            rows = rows[:1]
    else:
        rows = [_running(item, look)]
    image = item.result.mime_type if item.result and item.result.data and not is_open else None
    named = [_cut(look, Span(f"  ▣ {one_line(image)}", "dim"))] if image else []
    return [*rows, *named, *tail_lines(item.tail, shown.columns)]


_MARKS: dict[str, tuple[str, Style, str]] = {
    "written": ("○", "dim", "…"),
    "waits": ("○", "dim", "waits"),
    "asked": ("?", "warning", "waits for an answer"),
    "running": ("●", "accent", ""),
    "left": ("■", "dim", "not finished"),
}


def _running(item: CallItem, look: Look) -> StyledLine:
    mark, style, words = _MARKS[item.state]
    if item.state == "running" and item.seconds:
        words = so_far(item.seconds)
    after = Span(f"  {words}" if words else "", "dim" if style == "accent" else style)
    made = cut_line(call_line(item.call, look.root), max(look.shown.columns - 2 - width(after.text), 8))
    return line(Span(f"{mark} ", style), *made.spans, after)


def _shell_head(item: ShellItem, look: Look, *, is_open: bool) -> list[StyledLine]:
    command = item.command
    first, *more = command.command.strip().split("\n")
    failed = f"  exit code {command.exit_code}" if command.exit_code else ""
    rest = f"  … {counted(len(more), 'more line')}" if more else ""
    alone = "" if command.share else "  not shown to the model"
    head = _cut(
        look,
        Span("! ", "accent"),
        Span(one_line(first[:2000]), "tool"),
        Span(rest, "dim"),
        Span(failed, "error"),
        Span(alone, "dim"),
    )
    if is_open or item.is_short:
        return [head]
    last = [text for text in plain(as_printed(command.output[-8000:])).split("\n") if text.strip()][-OWN_END:]
    before = command.output.strip().count("\n") + 1 - len(last)
    above = [_cut(look, Span(f"  ▸ {counted(before, 'line')} before", "dim"))] if before > 0 else []
    return [head, *above, *tail_lines(last, look.shown.columns)]


def linked(spans: Iterable[Span], look: Look) -> tuple[Span, ...]:
    """Places in the workspace become addresses of files; without a workspace they lead nowhere."""
    return tuple(Span(span.text, span.style, _address(span.link, look)) if span.link else span for span in spans)


def _address(link: str, look: Look) -> str:
    if "://" in link or link.startswith("mailto:"):
        return link
    path, _, number = link.rpartition(":")
    full = path if path.startswith("/") else f"{look.root.rstrip('/')}/{path}" if look.root else ""
    return f"file://{full.replace('%', '%25').replace(' ', '%20')}#{number}" if full else ""
