"""The glob tool: files by name, the newest first."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from covey.tools.base import Tool, ToolContext, ToolFailed, ToolOutput
from covey.tools.files import name_for
from covey.tools.globs import is_plain
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

RESULTS_LIMIT = 100
"""Some 2,000 tokens. Who gets more names than this needs a narrower pattern, not the rest."""


class GlobParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pattern: Annotated[
        str,
        msgspec.Meta(max_length=PATTERN_LIMIT, description="A glob, such as *.py or src/**/*.{ts,tsx}."),
    ]
    path: Annotated[str, msgspec.Meta(description="Directory to look in. Default: the workspace root.")] = ""


def glob_tool(processes: Processes) -> Tool[GlobParams]:
    return searching_tool("glob", GlobParams, processes, action="list", place=_place, describe=_described, run=_run)


def _place(params: GlobParams, context: ToolContext) -> Path:
    return _split(params, context)[0]


def _described(params: GlobParams, context: ToolContext) -> str:
    base, pattern = _split(params, context)
    return f"Find files {shown_name(pattern)} in {name_for(context, base)}"


async def _run(params: GlobParams, context: ToolContext, search: Search) -> ToolOutput:
    base, pattern = _split(params, context)
    if not await is_directory(base):
        raise ToolFailed(f"{name_for(context, base)} is not a directory, so there is nothing to find in it.")
    # A pattern with a slash says where: from the directory down, not just somewhere below it.
    request = {"pattern": pattern, "anchored": "/" in params.pattern, "limit": RESULTS_LIMIT}
    answer = await search(context, base, request)
    names = [name_below(context, base, name) for name in answer.found]
    count = answer.summary.get("count", len(names))
    remarks = answer.remarks()
    if count > len(names):
        remarks.insert(0, f"These are the newest {len(names)} of {count}: give a narrower pattern or path.")
    headline = "" if names else f"No file matches {shown_name(params.pattern)} in {name_for(context, base)}."
    return ToolOutput(report(headline, "\n".join(names), remarks), metadata={"count": count})


def _split(params: GlobParams, context: ToolContext) -> tuple[Path, str]:
    """Where the pattern begins to be one, and the pattern from there: what comes before is a path like any other."""
    parts = params.pattern.split("/")
    if not params.pattern.strip("/. "):
        raise ToolFailed("The pattern is empty. Use ls to see what is in a directory, or **/* for all files.")
    if "\0" in params.pattern:
        raise ToolFailed("The pattern has a NUL character in it, which no name has.")
    plain = 0
    while plain < len(parts) - 1 and is_plain(parts[plain]):
        plain += 1
    if ".." in parts[plain:]:
        raise ToolFailed("A pattern cannot go up (..) after a wildcard or at its end. Say in path where to look.")
    prefix = "/".join(parts[:plain]) or ("/" if params.pattern.startswith("/") else "")
    return place_to_look(context, str(Path(params.path) / prefix)), "/".join(parts[plain:])
