"""`covey stats`: runs, tokens and cost of the last days, by day, model or directory."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Sequence

from covey.cli import common, exits
from covey.cli.listing import literal, padded, room_beside
from covey.cli.terminal_text import json_text, one_line, plain
from covey.lines.widths import width
from covey.lines.words import counted
from covey.protocol.runs import Usage
from covey.protocol.stats import Spending

KEYS: dict[str, Callable[[Spending], str]] = {
    "day": lambda spent: spent.day,
    "model": lambda spent: spent.model or "(no model)",
    "directory": lambda spent: spent.path or spent.workspace_id,
}

GAP = "  "
HEADS = ("runs", "tokens in", "cached", "tokens out", "cost")
Line = tuple[str, int, Usage]
Table = Sequence[tuple[str, ...]]


def main(args: argparse.Namespace) -> int:
    return common.run(_stats(args))


async def _stats(args: argparse.Namespace) -> int:
    async with common.connected(args) as client:
        found = await client.stats(days=args.days)
    if args.cwd is not None:
        found = tuple(spent for spent in found if spent.path == _resolved(args.cwd))
    if args.json:
        print(json_text(found))
    else:
        _show(found, args)
    return exits.OK


def _resolved(directory: str) -> str:
    """As the server knows it."""
    return os.path.realpath(os.path.expanduser(directory))


def _show(found: tuple[Spending, ...], args: argparse.Namespace) -> None:
    if not found:
        common.note(f"No run has ended within {counted(args.days, 'day')}.")
        return
    lines = _added_up(found, KEYS[args.by])
    _print(_fitting(args.by, [*lines, _total(lines)]))


def _fitting(by: str, lines: Sequence[Line]) -> Table:
    """Of numbers that are wider than the terminal what was cached is left out, and then digits of large counts."""
    whole = [(by, *HEADS), *map(_cells, lines)]
    if _columns_taken(whole) <= room_beside(0):
        return whole
    fewer = _without_cached(whole)
    if _columns_taken(fewer) <= room_beside(0):
        return fewer
    return _without_cached([(by, *HEADS), *(_cells(each, short_count) for each in lines)])


def _without_cached(table: Table) -> Table:
    at = 1 + HEADS.index("cached")
    return [cells[:at] + cells[at + 1 :] for cells in table]


def _widths(table: Table) -> list[int]:
    return [max(map(width, column)) for column in zip(*table, strict=True)]


def _columns_taken(table: Table) -> int:
    """By the numbers, and what parts them from each other and from the names."""
    return sum(wide + len(GAP) for wide in _widths(table)[1:])


def _print(table: Table) -> None:
    """Names on the left, numbers on the right of columns that are as wide as needed.

    A name that has no room beside the numbers, such as a long path, stands above them.
    """
    columns = _widths(table)
    names = min(columns[0], room_beside(_columns_taken(table)))
    for name, *numbers in table:
        aligned = (f"{number:>{wide}}" for number, wide in zip(numbers, columns[1:], strict=True))
        if width(name) > names:
            print(plain(literal(name)))
            name = ""
        print(plain(GAP.join((padded(name, names), *aligned))))


def _cells(added: Line, written: Callable[[int], str] = "{:,}".format) -> tuple[str, ...]:
    name, runs, usage = added
    tokens = (usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens)
    return (name, *map(written, (runs, *tokens)), dollars(usage.cost))


def short_count(count: int) -> str:
    """101.7k, where all digits have no room."""
    if count < 10_000:
        return f"{count:,}"
    return f"{count / 1000:.1f}k" if count < 999_950 else f"{count / 1e6:,.1f}M"


def _added_up(found: Iterable[Spending], key: Callable[[Spending], str]) -> list[Line]:
    """Days in their order, the newest first; others by what they cost, then by name."""
    lines: dict[str, Line] = {}
    for spent in found:
        name = one_line(key(spent))
        _, runs, usage = lines.get(name, (name, 0, Usage()))
        lines[name] = (name, runs + spent.runs, usage + _usage(spent))
    if key is KEYS["day"]:
        return sorted(lines.values(), reverse=True)
    return sorted(lines.values(), key=lambda line: (-line[2].cost, line[0]))


def _total(lines: Iterable[Line]) -> Line:
    runs, usage = 0, Usage()
    for _, count, used in lines:
        runs, usage = runs + count, usage + used
    return "total", runs, usage


def _usage(spent: Spending) -> Usage:
    return Usage(
        prompt_tokens=spent.prompt_tokens,
        completion_tokens=spent.completion_tokens,
        cached_tokens=spent.cached_tokens,
        cost=spent.cost,
    )


def dollars(cost: float) -> str:
    """Cents matter, less than a tenth of one does not; nothing is shown as nothing."""
    if not cost:
        return "-"
    return f"${cost:.2f}" if cost >= 0.1 else f"${cost:.4f}"
