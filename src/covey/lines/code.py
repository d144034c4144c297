"""Colours for code by simple means, line by line: what is a comment, a string, a number or a keyword nearly anywhere.

A line is looked at by itself, so a line that is finished is never coloured again, and a string over several lines is
coloured only where it begins.
"""

from __future__ import annotations

import re

from covey.lines.line import Span, Style, StyledLine

_HASH = "python py sh bash zsh shell console ruby rb yaml yml toml make makefile dockerfile perl r elixir nix ini conf"
_SLASHES = (
    "c h cpp c++ cc java js jsx javascript ts tsx typescript go rust rs swift kotlin kt scala php cs csharp dart zig "
    "json json5 jsonc proto"
)
_DASHES = "sql lua haskell hs elm ada"
_COMMENTS = {
    **dict.fromkeys(_HASH.split(), r"(?<!\S)\#.*"),
    **dict.fromkeys(_SLASHES.split(), r"//.*|/\*.*?(?:\*/|$)"),
    **dict.fromkeys(_DASHES.split(), r"--.*"),
}
_KEYWORDS = (
    "and as assert async await break case catch class const continue def default defer del do elif else enum except "
    "export extends false False finally fn for from func function go if impl import in interface is lambda let match "
    "mod module mut new nil None not null or package pass private protected pub public raise return self static struct "
    "super switch then this throw trait true True try type typeof union use val var void where while with yield "
    "echo exit fi done local set select insert update delete create table join on group order by limit into values"
)
_REST = (
    r"(?P<string>\"(?:\\.|[^\"\\])*\"?|'(?:\\.|[^'\\])*'?|`[^`]*`?)"
    r"|(?P<number>\b\d[\w.]*)"
    rf"|(?P<keyword>\b(?:{'|'.join(_KEYWORDS.split())}|SELECT|FROM|WHERE|INSERT|UPDATE|DELETE|JOIN|ORDER|GROUP|BY)\b)"
)
_PATTERNS: dict[str, re.Pattern[str]] = {}
_TEXT = frozenset({"", "text", "txt", "plain", "plaintext", "output", "log", "markdown", "md", "csv"})
_STYLES: dict[str, Style] = {"comment": "comment", "string": "string", "number": "number", "keyword": "keyword"}


def coloured(text: str, language: str) -> StyledLine:
    """One line of code."""
    if language in ("diff", "patch"):
        return StyledLine((Span(text, diff_style(text)),))
    if language in _TEXT:
        return StyledLine((Span(text, "code"),))
    spans: list[Span] = []
    at = 0
    for found in _pattern(language).finditer(text):
        if found.start() > at:
            spans.append(Span(text[at : found.start()]))
        spans.append(Span(found[0], _STYLES[found.lastgroup or "string"]))
        at = found.end()
    return StyledLine((*spans, Span(text[at:])))


def diff_style(text: str) -> Style:
    """What a line of a unified diff is, by its first character."""
    if text.startswith(("+++", "---", "@@", "diff ", "index ")):
        return "dim"
    return "added" if text.startswith("+") else "removed" if text.startswith("-") else ""


def _pattern(language: str) -> re.Pattern[str]:
    comment = _COMMENTS.get(language, r"(?<!\S)(?:\#|//)\s.*")
    if comment not in _PATTERNS:
        _PATTERNS[comment] = re.compile(f"(?P<comment>{comment})|{_REST}")
    return _PATTERNS[comment]
