"""The head of a Markdown file, between two lines of `---`: fields for programs, in the part of YAML that people use.

A reader of our own, because real files are not valid YAML now and then, nearly always for a colon in a description that
nobody has quoted. What can be read is read: nothing here raises. Only text comes out, lists of text, and one level of
named text; there are no anchors, tags or types, so nothing in a file can make anything but strings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Value = str | tuple[str, ...] | Mapping[str, str]

MAX_LINES = 500
"""Of a head: the longest real ones have some fifty."""

_FENCE = re.compile(r"---[ \t]*")
_END = re.compile(r"(?:---|\.\.\.)[ \t]*")
_KEY = re.compile(
    r"""(?P<quote>["']?)(?P<key>[A-Za-z_][\w .-]{0,99}?)(?P=quote)[ \t]*:(?:[ \t]+(?P<value>.*)|[ \t]*)"""
)
_BLOCK = re.compile(r"[|>][+-]?\d?[+-]?(?:[ \t]+#.*)?")
_COMMENT = re.compile(r"(?:^|[ \t])#.*")
_ITEM = re.compile(r"\s*-(?:[ \t]+(?P<item>.*)|[ \t]*)")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "", '"': '"', "\\": "\\", "/": "/", " ": " "}
_FLOW = re.compile(r"""\s*("(?:\\.|[^"\\])*"|'(?:''|[^'])*'|[^,]*)\s*(?:,|\Z)""")


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """A file, cut into its fields and the rest."""

    body: str
    fields: Mapping[str, Value] = field(default_factory=dict)

    def text(self, name: str) -> str:
        """A field as one text; '' where there is none."""
        value = self.fields.get(name, "")
        if isinstance(value, str):
            return value.strip()
        return ", ".join(value) if isinstance(value, tuple) else ""

    def words(self, name: str) -> tuple[str, ...]:
        """A field as a list: as it was written, or a text cut at its commas outside of brackets."""
        value = self.fields.get(name, "")
        if isinstance(value, str):
            return _cut_at_commas(value)
        return tuple(value)

    def is_set(self, name: str) -> bool:
        """Whether a field says yes."""
        return self.text(name).lower() in ("true", "yes", "on")

    def is_unset(self, name: str) -> bool:
        """Whether a field says no; not if there is none."""
        return self.text(name).lower() in ("false", "no", "off")


def read_front_matter(text: str) -> FrontMatter:
    """The fields and the body. A file without a head is all body."""
    lines = text.removeprefix("\ufeff").splitlines()
    start = next((number for number, line in enumerate(lines) if line.strip()), len(lines))
    if start == len(lines) or not _FENCE.fullmatch(lines[start]):
        return FrontMatter(text.removeprefix("\ufeff").strip())
    head = lines[start + 1 : start + 1 + MAX_LINES]
    end = next((number for number, line in enumerate(head) if _END.fullmatch(line)), None)
    if end is None:
        return FrontMatter(text.strip())
    return FrontMatter("\n".join(lines[start + end + 2 :]).strip(), _fields(head[:end]))


def _fields(lines: Sequence[str]) -> dict[str, Value]:
    fields: dict[str, Value] = {}
    number = 0
    while number < len(lines):
        match = _KEY.fullmatch(lines[number])
        number += 1
        if match is None:  # a comment, or what nobody understands
            continue
        below = _below(lines, number)
        number += len(below)
        fields[match["key"]] = _value((match["value"] or "").strip(), below)
    return fields


def _below(lines: Sequence[str], start: int) -> list[str]:
    """The lines that belong to the key before them: indented, empty, or items of a list."""
    below: list[str] = []
    for line in lines[start:]:
        if line.strip() and not line[0].isspace() and not _ITEM.fullmatch(line):
            break
        below.append(line)
    return below


def _value(first: str, below: Sequence[str]) -> Value:
    if _BLOCK.fullmatch(first):
        return _block(below, folded=first[0] == ">")
    if first and first[0] in "\"'":
        return _quoted(" ".join([first, *(line.strip() for line in below)]))
    if first.startswith("["):
        return _flow(" ".join([first, *(line.strip() for line in below)]))
    plain = _COMMENT.sub("", first).strip()
    if plain:
        more = [line.strip() for line in below if line.strip() and not line.lstrip().startswith("#")]
        return " ".join([plain, *more])
    return _nested(below)


def _block(lines: Sequence[str], *, folded: bool) -> str:
    """The text after `|`, with its lines, or after `>`, in which they are joined."""
    indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    text = "\n".join(line[indent:].rstrip() for line in lines).strip("\n")
    if not folded:
        return text
    paragraphs = re.split(r"\n{2,}", text)
    return "\n".join(" ".join(paragraph.split("\n")) for paragraph in paragraphs)


def _quoted(text: str) -> str:
    """A text in quotes, with what their escapes stand for; a comment after it is gone."""
    if text[0] == "'":
        match = re.match(r"'((?:''|[^'])*)'", text)
        return match[1].replace("''", "'") if match else text[1:]
    match = re.match(r'"((?:\\.|[^"\\])*)"', text)
    inside = match[1] if match else text[1:]
    return re.sub(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)", _escaped, inside)


def _escaped(match: re.Match[str]) -> str:
    code = match[1]
    if len(code) > 1:
        return chr(int(code[1:], 16)).encode("utf-8", "replace").decode()
    return _ESCAPES.get(code, code)


def _flow(text: str) -> tuple[str, ...]:
    """`[a, "b, c"]`."""
    inside = _COMMENT.sub("", text).strip()[1:].removesuffix("]")
    items = (match[1].strip() for match in _FLOW.finditer(inside) if match[0])
    return tuple(_quoted(item) if item[:1] in ("'", '"') else item for item in items if item)


def _nested(lines: Sequence[str]) -> Value:
    """What stands below a key without a value of its own: a list, or names with texts."""
    said = [line for line in lines if line.strip() and not line.lstrip().startswith("#")]
    if not said:
        return ""
    if _ITEM.fullmatch(said[0]):
        return tuple(_item(match["item"] or "") for line in said if (match := _ITEM.fullmatch(line)))
    pairs = (_KEY.fullmatch(line.strip()) for line in said)
    named = {match["key"]: match["value"] or "" for match in pairs if match}
    if named:
        return {key: _item(value) for key, value in named.items()}
    return " ".join(line.strip() for line in said)


def _item(text: str) -> str:
    text = text.strip()
    return _quoted(text) if text[:1] in ("'", '"') else _COMMENT.sub("", text).strip()


def _cut_at_commas(text: str) -> tuple[str, ...]:
    """`Bash(git add, git commit), Read` has two: a comma in brackets cuts nothing."""
    words, depth, word = [], 0, ""
    for char in text:
        depth += (char == "(") - (char == ")")
        if char == "," and depth <= 0:
            words.append(word)
            word = ""
        else:
            word += char
    return tuple(cleaned for each in [*words, word] if (cleaned := each.strip()))
