"""Add MCP servers to the user's own config.toml, and remove them: for every directory, or for one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

from covey.config.check import check
from covey.config.edit import change_file
from covey.config.expand import expand
from covey.config.load import config_dir, parse, read_text
from covey.config.schema import ConfigError, Files
from covey.config.toml_text import Table, header_of, quoted


def _table(name: str, directory: Path | None) -> Table:
    return ("projects", str(directory.resolve()), "mcp", name) if directory else ("mcp", name)


def add_mcp_server(
    environ: Mapping[str, str], name: str, entry: Mapping[str, Any], directory: Path | None = None
) -> Path:
    """Write an entry as it is given, also with `$VARIABLES` in it; gives the path of the file. Raises ConfigError."""
    table = _table(name, directory)

    def change(text: str, old: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        wanted = deepcopy(old)
        inner = wanted
        for word in table[:-1]:
            inner = inner.setdefault(word, {})
        if name in inner:
            raise ConfigError(f"there is an MCP server {name} already; `covey mcp remove {name}` first")
        inner[name] = dict(entry)
        lines = [header_of(table), *(f"{key} = {_written(value)}" for key, value in entry.items())]
        gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
        return text + gap + "\n".join(lines) + "\n", wanted

    path = config_dir(environ) / "config.toml"
    change_file(path, lambda content: check(expand(content, environ, []), Files), change, "Write it there yourself.")
    return path


def remove_mcp_server(environ: Mapping[str, str], name: str, directory: Path | None = None) -> bool:
    """False: there is no such entry. Raises ConfigError if it is written in a way that cannot be changed safely."""
    path, table = config_dir(environ) / "config.toml", _table(name, directory)
    if not _has(parse(read_text(path) or ""), table):
        return False

    def change(text: str, old: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        wanted = deepcopy(old)
        inner = wanted
        for word in table[:-1]:
            inner = inner[word]
        del inner[name]
        if not inner and table[:-1] == ("mcp",):
            del wanted["mcp"]
        return _without_table(text, table), _without_empty(wanted, table[:-1])

    check_all = _nothing_to_check
    change_file(path, check_all, change, f"Remove {header_of(table)} there yourself.")
    return True


def _nothing_to_check(content: dict[str, Any]) -> None:
    """What was wrong before is no reason to keep it."""


def _has(content: dict[str, Any], table: Table) -> bool:
    inner: Any = content
    for word in table:
        inner = inner.get(word) if isinstance(inner, dict) else None
    return isinstance(inner, dict)


def _without_empty(content: dict[str, Any], table: Table) -> dict[str, Any]:
    """Tables that are empty now stand nowhere in the text any more."""
    for length in range(len(table), 0, -1):
        inner = content
        for word in table[: length - 1]:
            inner = inner.get(word, {})
        if inner.get(table[length - 1]) == {}:
            del inner[table[length - 1]]
    return content


def _without_table(text: str, table: Table) -> str:
    """Without the lines from the header of the table, and of those inside it, up to the next header."""
    header = header_of(table)
    kept, is_inside = [], False
    for line in text.splitlines(keepends=True):
        if re.match(r"\s*\[", line):
            bare = line.split("#")[0].strip()
            is_inside = bare == header or bare.startswith(header[:-1] + ".")
        if not is_inside:
            kept.append(line)
    return "".join(kept).rstrip("\n") + "\n" if kept else ""


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(key)} = {_written(each)}" for key, each in value.items()) + " }"
    return "[" + ", ".join(map(_written, value)) + "]"


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else quoted(name)
