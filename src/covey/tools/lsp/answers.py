"""What language servers answer, as values and as lines for a model. Pure; what cannot be read is left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from covey.tools.lsp.positions import BadRange, read_range

SHOWN = 100
"""Places or symbols that one answer lists. More are counted."""
LINE_LIMIT = 200
"""Characters of a source line that is shown."""

_KINDS = {
    2: "module", 3: "namespace", 4: "package", 5: "class", 6: "method", 7: "property", 8: "field", 9: "constructor",
    10: "enum", 11: "interface", 12: "function", 13: "variable", 14: "constant", 22: "member", 23: "struct",
    24: "event", 25: "operator", 26: "type",
}  # fmt: skip


class SourcePlace(NamedTuple):
    path: Path
    line: int
    """From 1."""


class Symbol(NamedTuple):
    name: str
    kind: str
    line: int
    """From 1."""
    end: int
    depth: int
    path: Path | None = None
    """Where it is, in an answer about more than one file."""


def path_of(uri: Any) -> Path | None:
    """The file that a URI names; None for anything else (`untitled:`, a place inside an archive)."""
    if not isinstance(uri, str):
        return None
    parts = urlsplit(uri)
    path = unquote(parts.path)
    return Path(path) if parts.scheme == "file" and path.startswith("/") and "\0" not in path else None


def read_places(given: Any) -> list[SourcePlace]:
    """The places of an answer: one or several locations, or links to them. Each once, in order."""
    listed = given if isinstance(given, list) else [given]
    return list(dict.fromkeys(place for each in listed if (place := _read_place(each))))


def _read_place(given: Any) -> SourcePlace | None:
    if not isinstance(given, dict):
        return None
    path = path_of(given.get("targetUri") or given.get("uri"))
    try:
        found = read_range(given.get("targetSelectionRange") or given.get("range"))
    except BadRange:
        return None
    return SourcePlace(path, found.start.line + 1) if path else None


def read_symbols(given: Any) -> list[Symbol]:
    return list(_symbols(given, 0)) if isinstance(given, list) else []


def _symbols(given: Sequence[Any], depth: int) -> Iterator[Symbol]:
    """Those of a file, nested, or those of a project, each with its place."""
    for each in given:
        if not isinstance(each, dict) or not isinstance(name := each.get("name"), str):
            continue
        location = each.get("location")
        within = location if isinstance(location, dict) else each
        try:
            found = read_range(within.get("range"))
        except BadRange:
            continue
        kind = _KINDS.get(each.get("kind", 0), "symbol")
        start, end = found.start.line + 1, found.end.line + 1
        yield Symbol(" ".join(name.split())[:LINE_LIMIT], kind, start, end, depth, path_of(within.get("uri")))
        if isinstance(children := each.get("children"), list) and depth < 10:
            yield from _symbols(children, depth + 1)


def list_places(places: Sequence[SourcePlace], name: Callable[[Path], str], line: Callable[[SourcePlace], str]) -> str:
    """A line for each place. `line` gives the source there, '' where nobody has agreed to look."""
    lines = [(f"{name(at.path)}:{at.line}", line(at).strip()[:LINE_LIMIT]) for at in places[:SHOWN]]
    shown = [f"{place}: {source}" if source else place for place, source in lines]
    return "\n".join([*shown, *_more(len(places))])


def list_symbols(symbols: Sequence[Symbol], name: Callable[[Path], str]) -> str:
    shown = [_symbol_line(symbol, name) for symbol in symbols[:SHOWN]]
    return "\n".join([*shown, *_more(len(symbols))])


def _symbol_line(symbol: Symbol, name: Callable[[Path], str]) -> str:
    if symbol.path:
        return f"{name(symbol.path)}:{symbol.line}: {symbol.kind} {symbol.name}"
    lines = f"line {symbol.line}" if symbol.end <= symbol.line else f"lines {symbol.line}-{symbol.end}"
    return f"{'  ' * symbol.depth}{symbol.kind} {symbol.name} ({lines})"


def _more(count: int) -> list[str]:
    return [f"... and {count - SHOWN} more"] if count > SHOWN else []
