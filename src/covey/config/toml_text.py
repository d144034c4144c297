"""Change one list of strings or small tables in TOML text, and leave the rest as its writer left it. Text in, text out.

It knows only as much of TOML as it needs to find its way. So the caller must read the result again and compare:
where this and TOML are of different opinions, the file must stay as it was.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

MAX_LINE_CHARS = 100
"""A list on one line goes on below when it would become longer than this."""

Table = tuple[str, ...]
"""The name of a table, word by word."""
Item = str | Mapping[str, str | bool]
"""Of a list: a string, or a table on one line, whose names need no quotes."""

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_WORD = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*')"""
_KEY = re.compile(rf"{_WORD}(?:[ \t]*\.[ \t]*{_WORD})*")
_TOKEN = re.compile(
    r'''"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|\#[^\n]*|\s+|[\[\]{},]|[^\s\[\]{},"'\#]+''',
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class _List:
    """Where a list stands: its brackets, its items, and the commas between them."""

    opened: int
    closed: int
    items: tuple[tuple[int, int], ...]
    commas: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Found:
    values: _List | None
    header_end: int | None
    """The end of the line with the header of the table."""
    value: tuple[int, int] | None = None
    """Where the value of the key stands, if it is no list."""


def quoted(text: str) -> str:
    """As a TOML string. JSON writes the same, but for one character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def inline(item: Item) -> str:
    """As TOML writes an item of a list."""
    if isinstance(item, str):
        return quoted(item)
    values = {name: quoted(value) if isinstance(value, str) else str(value).lower() for name, value in item.items()}
    return "{ " + ", ".join(f"{name} = {value}" for name, value in values.items()) + " }"


def header_of(table: Table) -> str:
    """The line with which a table begins."""
    return f"[{'.'.join(word if _BARE.fullmatch(word) else quoted(word) for word in table)}]"


def with_items(text: str, table: Table, key: str, items: Sequence[Item]) -> str:
    """`text` with `items` at the end of the list `key` in `table` (() for none), which is made if it is not there."""
    newline = "\r\n" if "\r\n" in text else "\n"
    found = _find(text, table, key)
    if found.values:
        for item in items:
            text = _append(text, found.values, inline(item), newline)
            found = _find(text, table, key)
            assert found.values
        return text
    block = newline.join([f"{key} = [", *(f"  {inline(item)}," for item in items), "]", ""])
    if found.header_end is not None:
        before, after = text[: found.header_end], text[found.header_end :]
        return before + ("" if before.endswith("\n") else newline) + block + after
    gap = "" if not text or text.endswith("\n") else newline
    header = f"{newline if text else ''}{header_of(table)}{newline}" if table else ""
    return text + gap + header + block


def with_value(text: str, table: Table, key: str, value: str | float | bool) -> str:
    """`text` in which `key` of `table` has one plain value: in its place if it has one, else below the header."""
    newline = "\r\n" if "\r\n" in text else "\n"
    written = quoted(value) if isinstance(value, str) else str(value).lower()
    found = _find(text, table, key)
    if found.value is not None:
        start, end = found.value
        return text[:start] + written + text[end:]
    line = f"{key} = {written}{newline}"
    if found.header_end is not None:
        before, after = text[: found.header_end], text[found.header_end :]
        return before + ("" if before.endswith("\n") else newline) + line + after
    gap = "" if not text or text.endswith("\n") else newline
    return f"{text}{gap}{newline if text else ''}{header_of(table)}{newline}{line}"


def without_item(text: str, table: Table, key: str, item: str) -> str:
    """`text` with no `item` in that list. A comment on its line goes with it."""
    while (values := _find(text, table, key).values) and (
        span := next((span for span in values.items if _value(text[slice(*span)]) == item), None)
    ):
        start, end = span
        comma = next((comma for comma in values.commas if comma >= end), None)
        if comma is not None:
            text = text[:comma] + text[comma + 1 :]
        text = _cut(text, start, end)
    return text


def _cut(text: str, start: int, end: int) -> str:
    """Without these characters, and without their line if nothing else is on it."""
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", end) + 1
    rest = text[end:line_end].strip() if line_end else "]"
    if not text[line_start:start].strip() and (not rest or rest.startswith("#")):
        return text[:line_start] + text[line_end:]
    return text[:start] + text[end:].lstrip(" \t")


def _append(text: str, values: _List, item: str, newline: str) -> str:
    if not values.items:
        before, inner = text[: values.closed], text[values.opened + 1 : values.closed]
        if "\n" not in inner:
            return before + item + text[values.closed :]
        return _before_line(text, values.closed, f"  {item},{newline}")
    start, end = values.items[-1]
    line_start = text.rfind("\n", 0, start) + 1
    is_first = not text[line_start:start].strip()
    indent = text[line_start:start] if is_first else "  "
    if "\n" not in text[values.opened : values.closed]:
        fits = values.closed - line_start + len(item) <= MAX_LINE_CHARS
        return text[:end] + (", " if fits else f",{newline}  ") + item + text[end:]
    own_line = text[text.rfind("\n", 0, values.closed) + 1 : values.closed]
    if own_line.strip():  # the bracket stands after something
        return f"{text[:end]},{newline}{indent}{item}{text[end:]}"
    comma = "" if any(comma >= end for comma in values.commas) else ","
    text = text[:end] + comma + text[end:]
    return _before_line(text, values.closed + len(comma), f"{indent}{item},{newline}")


def _before_line(text: str, position: int, line: str) -> str:
    start = text.rfind("\n", 0, position) + 1
    if text[start:position].strip():
        return text[:position] + line.strip() + text[position:]
    return text[:start] + line + text[start:]


# ── finding the way ──


def _find(text: str, table: Table, key: str) -> _Found:
    wanted = [*table, key]
    current: list[str] = []
    header_end = None
    for header, name, start in _statements(text):
        path = _words(name)
        if header:
            # What stands in a list of tables is not what is wanted, whatever it is called.
            current = path if header == "[" else ["", *path]
            if current == list(table):
                header_end = _line_end(text, start)
        elif current + path == wanted:
            if text[start : start + 1] == "[":
                return _Found(_list(text, start), header_end)
            token = _TOKEN.match(text, start)
            return _Found(None, header_end, token.span() if token else None)
    return _Found(None, header_end)


def _statements(text: str) -> Iterator[tuple[str, str, int]]:
    """For each header and each key: the brackets before it, its name, and where the rest begins."""
    position = 0
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None:
            return
        if token[0].isspace() or token[0].startswith("#"):
            position = token.end()
            continue
        brackets = re.compile(r"\[{0,2}[ \t]*").match(text, position)
        assert brackets
        name = _KEY.match(text, brackets.end())
        if name is None:
            return
        header = brackets[0].strip()
        if header:
            yield header, name[0], name.end()
            position = _line_end(text, name.end())
        else:
            equals = re.compile(r"[ \t]*=[ \t]*").match(text, name.end())
            if equals is None:
                return
            yield "", name[0], equals.end()
            position = _value_end(text, equals.end())


def _words(name: str) -> list[str]:
    return [_value(word) if word[0] in "\"'" else word for word in re.findall(_WORD, name)]


def _value(text: str) -> str:
    try:
        return str(tomllib.loads(f"x = {text}")["x"])
    except ValueError:
        return ""


def _line_end(text: str, position: int) -> int:
    return text.find("\n", position) + 1 or len(text)


def _value_end(text: str, position: int) -> int:
    depth = 0
    while token := _TOKEN.match(text, position):
        if token[0] in ("[", "{"):
            depth += 1
        elif token[0] in ("]", "}"):
            depth -= 1
        elif not depth and "\n" in token[0] and token[0].isspace():
            break
        position = token.end()
    return position


def _table_end(text: str, position: int) -> int:
    """After the bracket that closes the table which is opened here."""
    depth = 0
    while token := _TOKEN.match(text, position):
        position = token.end()
        depth += {"{": 1, "}": -1}.get(token[0], 0)
        if not depth:
            break
    return position


def _list(text: str, opened: int) -> _List:
    items: list[tuple[int, int]] = []
    commas: list[int] = []
    position = opened + 1
    while (token := _TOKEN.match(text, position)) and token[0] not in ("]", "["):
        if token[0] == "{":
            end = _table_end(text, position)
            items.append((position, end))
            position = end
            continue
        if token[0] == ",":
            commas.append(position)
        elif not token[0].isspace() and not token[0].startswith("#"):
            items.append(token.span())
        position = token.end()
    return _List(opened, position, tuple(items), tuple(commas))
