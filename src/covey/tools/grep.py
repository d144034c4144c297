"""The grep tool: lines that match a pattern, in the newest files first."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Annotated, Any

import msgspec

from covey.permissions.safe_searches import picks_secret
from covey.tools.base import Tool, ToolContext, ToolFailed, ToolOutput
from covey.tools.files import name_for, open_regular
from covey.tools.processes import Processes
from covey.tools.search import (
    PATTERN_LIMIT,
    Search,
    is_directory,
    name_below,
    place_to_look,
    report,
    searching_tool,
    shown_name,
)
from covey.tools.threads import in_thread

MATCHES_LIMIT = 100
"""Enough to see what a word is used for, and still some 5,000 tokens at most without context."""
LINE_CHARACTERS = 500
"""Longer lines are generated or data."""
CONTEXT_LIMIT = 10
"""Lines around a match. Who needs more wants to view the file."""

_LINE_BREAK = re.compile(r"(?<!\\)(?:\\\\)*\\n|\n")


class GrepParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pattern: Annotated[str, msgspec.Meta(max_length=PATTERN_LIMIT, description="A regular expression for one line.")]
    path: Annotated[str, msgspec.Meta(description="Directory or file to search. Default: the whole workspace.")] = ""
    include: Annotated[
        str, msgspec.Meta(max_length=PATTERN_LIMIT, description="Only files that match this, such as *.{ts,tsx}.")
    ] = ""
    literal: Annotated[bool, msgspec.Meta(description="The pattern is plain text, not a regular expression.")] = False
    context: Annotated[
        int, msgspec.Meta(ge=0, le=CONTEXT_LIMIT, description="Lines to show around each match; at most 10.")
    ] = 0


def grep_tool(processes: Processes) -> Tool[GrepParams]:
    return searching_tool(
        "grep",
        GrepParams,
        processes,
        action="read",
        place=_place,
        describe=_described,
        run=_run,
        picks_secret=lambda params: picks_secret(params.include),
    )


def _place(params: GrepParams, context: ToolContext) -> Path:
    return place_to_look(context, params.path)


def _described(params: GrepParams, context: ToolContext) -> str:
    return f"Search for {shown_name(params.pattern)} in {name_for(context, _place(params, context))}"


async def _run(params: GrepParams, context: ToolContext, search: Search) -> ToolOutput:
    base = _place(params, context)
    _check(params)
    where = base
    if not await is_directory(base):
        await in_thread(lambda: _check_file(context, base))
        where = base.parent
    request = {
        "pattern": params.pattern,
        "literal": params.literal,
        "include": params.include,
        "context": params.context,
        "limit": MATCHES_LIMIT,
        "rg": ripgrep(context),
    }
    answer = await search(context, base, request)
    blocks = [_block(name_below(context, where, name), lines) for name, lines in answer.found]
    count = sum(line[1] for _, lines in answer.found for line in lines)
    remarks = answer.remarks()
    if answer.summary.get("more"):
        remarks.insert(0, f"These are the first {count} matches, there are more: give a narrower pattern or path.")
    headline = _headline(count, len(blocks), answer.summary.get("files"))
    return ToolOutput(report(headline, "\n\n".join(blocks), remarks), metadata={"matches": count})


def ripgrep(context: ToolContext) -> str | None:
    """The ripgrep to use. Never one out of the workspace: nobody is asked before it is run."""
    found = shutil.which("rg", path=os.environ.get("PATH", os.defpath))
    if found is None or not os.path.isabs(found) or Path(found).resolve().is_relative_to(context.root):
        return None
    return found


def _check(params: GrepParams) -> None:
    if not params.pattern:
        raise ToolFailed("The pattern is empty. Use view to see a file, or glob to find files.")
    if "\0" in params.pattern + params.include:
        raise ToolFailed("The pattern has a NUL character in it, which no text has.")
    if "\n" in params.pattern or (not params.literal and _LINE_BREAK.search(params.pattern)):
        raise ToolFailed(
            "A pattern is matched against single lines, so it cannot have a line break. Search for one of the lines, "
            "and set context to see those around it."
        )


def _check_file(context: ToolContext, path: Path) -> None:
    with open_regular(path, name_for(context, path)):
        pass


def _headline(matches: int, files: int, searched: int | None) -> str:
    if matches:
        return f"{matches} {'match' if matches == 1 else 'matches'} in {files} {'file' if files == 1 else 'files'}:"
    return "No matches." if searched is None else f"No matches in {searched} {'file' if searched == 1 else 'files'}."


def _block(name: str, lines: list[Any]) -> str:
    """One file: its name, then its lines, a colon after the number of those that match."""
    text = [name]
    last = lines[0][0] - 1
    for number, is_match, line in lines:
        if number > last + 1 and any(not each[1] for each in lines):
            text.append("  --")
        last = number
        cut = f"{line[:LINE_CHARACTERS]} [... the line goes on]" if len(line) > LINE_CHARACTERS else line
        text.append(f"  {number}{':' if is_match else '-'} {cut}")
    return "\n".join(text)
