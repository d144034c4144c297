"""Modules and styles of the page as they are sent: without comments and space that only those who read the files need.

Not a minifier: every token stays as it was written, and so do the ends of lines, but where no statement can end.
"""

from __future__ import annotations

import re

_TOKEN = re.compile(
    r"""(?P<space>\s+)|(?P<comment>//[^\n]*|/\*.*?\*/)
    |(?P<string>'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")|(?P<word>[\w$\#]+)|(?P<other>.)""",
    re.DOTALL | re.VERBOSE,
)
_REGEX = re.compile(r"/(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/\w*")
_TEMPLATE = re.compile(r"(?:[^`\\$]|\\.|\$(?!\{))*(?:`|\$\{)", re.DOTALL)
"""From a backtick, or from the end of an expression within, up to the next of them."""
_NO_SPACE = frozenset("(){}[],;:=?&|<>!")
"""Beside these no space is needed. The others are two tokens with a space and one without, as `a + +b`."""
_NO_NEWLINE = frozenset("({[,;")
"""After these a newline ends no statement."""
_BEFORE_REGEX = frozenset(
    ["return", "typeof", "case", "in", "of", "void", "delete", "throw", "new", "else", "do", "await", "yield"]
)

_STYLE = re.compile(r"""("[^"]*")|/\*.*?\*/|\s*([{};,>])\s*|(?<=:)\s+|\s+""", re.DOTALL)
"""A string stays, a comment goes, and so does space where it separates nothing: before a colon it may."""


def tight_style(source: str) -> str:
    """The same style sheet."""

    def kept(found: re.Match[str]) -> str:
        if found[1] or found[2]:
            return found[1] or found[2]
        is_space = not found[0].startswith("/*") and source[found.start() - 1] != ":"
        return " " if is_space else ""

    return _STYLE.sub(kept, source).strip().replace(";}", "}")


def without_comments(source: str) -> str:
    """The same program. What cannot be read as a module (an open string or comment) is a `ValueError`."""
    kept: list[str] = []
    last = ""  # the last token that counts: it tells a regular expression from a division
    gap = ""  # what stands between it and the next one, comments included
    depths: list[int] = []  # open braces within each open expression of a template
    at = 0
    while at < len(source):
        token, kind = _next(source, at, last, depths)
        at += len(token)
        if kind in ("space", "comment"):
            gap += token
            continue
        if gap and kept:
            kept.append(_between(last, token, gap))
        kept.append(token)
        last, gap = token, ""
    if depths:
        raise ValueError("a template has no end")
    return "".join(kept) + "\n"


def _between(last: str, token: str, gap: str) -> str:
    """What has to stay of the space and comments between two tokens."""
    if "\n" in gap:
        return "" if last in _NO_NEWLINE else "\n"
    return "" if last in _NO_SPACE or token in _NO_SPACE else " "


def _next(source: str, at: int, last: str, depths: list[int]) -> tuple[str, str]:
    """The token that begins here, and its kind. Templates are kept as they are but for the expressions in them."""
    char = source[at]
    if char == "`" or (char == "}" and depths and depths[-1] == 0):
        if char == "}":
            depths.pop()
        text = _whole(_TEMPLATE.match(source, at + 1), source, at)
        if text.endswith("${"):
            depths.append(0)
        return char + text, "template"
    if depths and char in "{}":
        depths[-1] += 1 if char == "{" else -1
    if char == "/" and source[at + 1 : at + 2] not in ("/", "*") and _may_be_regex(last):
        return _whole(_REGEX.match(source, at), source, at), "regex"
    found = _TOKEN.match(source, at)
    token = _whole(found, source, at)
    is_comment = found is not None and found.lastgroup == "comment"
    if token in ("'", '"') or (source.startswith("/*", at) and not is_comment):
        raise ValueError(f"no end of what begins at {at}: {source[at : at + 40]!r}")
    return token, (found and found.lastgroup) or "other"


def _may_be_regex(last: str) -> bool:
    """After a value a slash divides. `)` and `}` are taken as the page writes them: a test compares all its modules."""
    is_value = bool(re.fullmatch(r"[\w$#]+", last)) and last not in _BEFORE_REGEX
    return not (is_value or last.endswith((")", "]", "`", "'", '"')))


def _whole(found: re.Match[str] | None, source: str, at: int) -> str:
    if not found:
        raise ValueError(f"no end of what begins at {at}: {source[at : at + 40]!r}")
    return found[0]
