"""Marks inside a line of Markdown → styled text: code, strong, emphasis, links. Linear: no mark looks far ahead."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.entities import html5

from covey.lines.line import Span, Style

LONGEST = 240
"""Characters between two marks that belong together. Further apart they are taken as they stand."""

_TOGETHER = "\u2e80-\ua4cf\uac00-\ud7af\uf900-\ufaff\uff00-\uffef"
"""Scripts that write words without blanks: there a mark may stand between two letters."""
_BEGINS = rf"(?:(?<![\w/.\\)\]}}])|(?<=[{_TOGETHER}]))"
"""Where emphasis may begin. Inside of words and paths stars and underscores are part of a name: `src/*.py`, `2**8`."""
_ENDS = rf"(?![^\W{_TOGETHER}]|[/])"
_DUNDER = "(?![a-z0-9_]{1,60}__)"
"""`__init__` is a name."""
_MARKS = re.compile(
    r"\\(?P<escaped>[!-/:-@\[-`{-~])"
    rf"|(?<!`)(?P<ticks>`+)(?!`)(?P<code>.{{1,{LONGEST}}}?)(?<!`)(?P=ticks)(?!`)"
    rf"|{_BEGINS}\*(?=[^\W_]|[\"'(\[`$<@#“‘«„(《「]|\*\*[^\s*])"
    rf"(?P<emphasis>[^*]{{1,{LONGEST}}}?|[^*]{{0,80}}\*\*(?=\S)[^*]{{1,64}}(?<=\S)\*\*[^*]{{0,80}})"
    rf"(?<=[^\s/_(=-])\*(?!\*){_ENDS}"
    rf"|{_BEGINS}\*\*(?=\S)(?P<strong>.{{1,{LONGEST}}}?)(?<=\S)\*\*(?![*\d])"
    rf"|{_BEGINS}__{_DUNDER}(?=[^\s_])(?P<strong_>.{{1,{LONGEST}}}?)(?<=\S)__{_ENDS}"
    rf"|~~(?=\S)(?P<struck>.{{1,{LONGEST}}}?)(?<=\S)~~"
    rf"|{_BEGINS}_(?=[^\s_])(?P<emphasis_>[^_]{{1,{LONGEST}}}?)(?<=\S)_{_ENDS}"
    rf"|!?\[(?P<label>[^\[\]]{{0,{LONGEST}}})\]\((?P<url>[^()\s]{{1,{LONGEST}}}(?:\([^()\s]{{0,80}}\))?[^()\s]{{0,80}})"
    r"(?:\s+\"[^\"]{0,200}\")?\)"
    rf"|<(?P<auto>[a-z][a-z0-9+.-]{{1,20}}:[^\s<>]{{1,{LONGEST}}})>"
    r"|&(?P<entity>#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});"
    rf"|(?P<bare>https?://[^\s<>()\[\]`*]{{1,{LONGEST}}}[^\s<>()\[\]`*.,;:!?'\"])"
    r"|(?<![\w./@+-])(?P<place>(?:[\w.@+-]{0,80}/){0,20}[\w.@+-]{1,80}\.[A-Za-z]\w{0,9}:\d{1,7})(?![\w/])"
)
_PLACE = re.compile(r"(?:[\w.@+-]{0,80}/){0,20}[\w.@+-]{1,80}\.[A-Za-z]\w{0,9}:\d{1,7}")
"""A line of a file: `src/feed/feed.py:12`."""
_LINKS = re.compile(
    rf"https?://[^\s<>()\[\]`*'\"]{{1,{LONGEST}}}[^\s<>()\[\]`*.,;:!?'\"]"
    rf"|(?<![\w./@+-]){_PLACE.pattern}(?![\w/])"
)
"""What leads somewhere in text without marks."""
_FOLLOWED = ("https://", "http://", "mailto:")
"""What leads somewhere at one click. Whatever else a model may write is text."""
_NESTED: dict[str, Style] = {
    "strong": "strong",
    "strong_": "strong",
    "struck": "struck",
    "emphasis": "emphasis",
    "emphasis_": "emphasis",
}
_MAY_BEGIN = re.compile(_BEGINS)
_OPENS = re.compile(r"[`*_~\[\\]")
_NO_LINK = re.compile(r"\[[^\[\]]*\](?=[^(])")


def styled(text: str, base: Style = "") -> list[Span]:
    """The text without its marks. What has a style of its own inside a heading or a quote looks as that does."""
    return [span for span in _spans(text, base, depth=0) if span.text]


def _spans(text: str, base: Style, depth: int) -> Iterator[Span]:
    at = 0
    for found in _MARKS.finditer(text):
        yield Span(text[at : found.start()], base)
        yield from _marked(found, base, depth)
        at = found.end()
    yield Span(text[at:], base)


def _marked(found: re.Match[str], base: Style, depth: int) -> Iterator[Span]:
    name, groups = found.lastgroup or "", found.groupdict()
    if name == "code":
        code = groups["code"]
        code = code[1:-1] if code[:1] == code[-1:] == " " and code.strip() else code
        yield Span(code, "code", code if _PLACE.fullmatch(code) else "")
    elif name == "escaped":
        yield Span(groups["escaped"], base)
    elif name == "entity":
        yield Span(_character(found[0]), base)
    elif name in _NESTED:
        inner = _NESTED[name] if base in ("", "emphasis") else base
        yield from _spans(groups[name], inner, depth + 1) if depth < 3 else iter((Span(groups[name], inner),))
    elif name == "url":
        yield from _link(groups["label"], groups["url"], base)
    elif name == "place":
        yield Span(groups[name], base, groups[name])
    else:
        yield Span(groups[name], "link", _target(groups[name]))


def _character(entity: str) -> str:
    """What an entity stands for. One that could not be seen stays as it was written."""
    name = entity[1:-1]
    if name.startswith("#"):
        number = int(name[2:], 16) if name[1] in "xX" else int(name[1:])
        char = chr(number) if number <= 0x10FFFF else ""
    else:
        char = html5.get(f"{name};", "")
    return char if char and char.isprintable() else " " if char == "\xa0" else entity


def _link(label: str, url: str, base: Style) -> Iterator[Span]:
    """The text and where it leads: a terminal hides neither."""
    target = _target(url)
    if not label or label == url:
        yield Span(url, "link", target)
        return
    yield Span(label, base or "strong", target)
    yield Span(" (", base)
    yield Span(url, "link", target)
    yield Span(")", base)


def with_links(text: str, style: Style = "") -> list[Span]:
    """A text that is no Markdown, such as what a program printed: as it is, with what leads somewhere."""
    spans: list[Span] = []
    at = 0
    for found in _LINKS.finditer(text):
        spans += [Span(text[at : found.start()], style), Span(found[0], style, found[0])]
        at = found.end()
    return [span for span in (*spans, Span(text[at:], style)) if span.text]


def _target(url: str) -> str:
    return url if url.startswith(_FOLLOWED) or _PLACE.fullmatch(url) else ""


def complete_until(text: str) -> int:
    """How much of a line that still grows can be shown for good: whole words, with no mark that might be open.

    A mark that has stayed open for too long is taken as it stands.
    """
    end = text.rfind(" ") + 1
    at = 0
    while found := _OPENS.search(text, at, end):
        begin = found.start()
        whole = _MARKS.match(text, begin)
        if whole and whole.end() <= end and not _may_hold_more(text, whole):
            at = whole.end()
        elif not whole and (_cannot_open(text, begin) or len(text) - begin > LONGEST):
            at = begin + 1
        else:
            return text.rfind(" ", 0, begin) + 1
    return end


def _cannot_open(text: str, at: int) -> bool:
    """What stands here is no mark, whatever comes after it."""
    mark, following = text[at], text[at + 1 : at + 2]
    if mark == "[":
        return _NO_LINK.match(text, at) is not None
    is_inside_word = mark in "*_" and not _MAY_BEGIN.match(text, at)
    return is_inside_word or mark == "\\" or (mark in "*_~" and following == " ")


def _may_hold_more(text: str, whole: re.Match[str]) -> bool:
    """`***a**` is strong, unless it turns out as emphasis that begins with something strong."""
    begin = whole.start()
    return whole.lastgroup == "strong" and text.startswith("***", begin) and len(text) - begin <= LONGEST
