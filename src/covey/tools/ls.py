"""The ls tool: what is in a directory, as a tree."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec

from covey.tools.base import Tool, ToolContext, ToolFailed, ToolOutput
from covey.tools.files import name_for
from covey.tools.processes import Processes
from covey.tools.search import Search, is_directory, name_below, place_to_look, report, searching_tool, shown_name

ENTRIES_LIMIT = 1_000
"""Some 5,000 tokens. Nearer entries are shown first, so this cuts what is deep, not what comes last."""
DEFAULT_DEPTH = 3
DEPTH_LIMIT = 50


class LsParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    path: Annotated[str, msgspec.Meta(description="Directory to list. Default: the workspace root.")] = ""
    depth: Annotated[int, msgspec.Meta(ge=1, le=DEPTH_LIMIT, description="How many levels to show. Default: 3.")] = (
        DEFAULT_DEPTH
    )


def ls_tool(processes: Processes) -> Tool[LsParams]:
    return searching_tool("ls", LsParams, processes, action="list", place=_place, describe=_described, run=_run)


def _place(params: LsParams, context: ToolContext) -> Path:
    return place_to_look(context, params.path)


def _described(params: LsParams, context: ToolContext) -> str:
    return f"List {name_for(context, _place(params, context))}"


async def _run(params: LsParams, context: ToolContext, search: Search) -> ToolOutput:
    base = _place(params, context)
    name = name_for(context, base)
    if not await is_directory(base):
        raise ToolFailed(f"{name} is not a directory. Use view for a file, glob to find one.")
    answer = await search(context, base, {"depth": params.depth, "limit": ENTRIES_LIMIT})
    remarks = answer.remarks()
    if answer.summary.get("more"):
        remarks.insert(0, f"There is more: these are the {ENTRIES_LIMIT} nearest. List a directory of it.")
    tree = _tree(answer.found)
    headline = f"{name_below(context, base, '')}/" if tree else f"{name} is empty, or all in it is ignored."
    content = report("", f"{headline}\n{tree}" if tree else headline, remarks)
    return ToolOutput(content, metadata={"entries": len(answer.found)})


def _tree(found: list[Any]) -> str:
    """Nested lines out of entries that come level by level."""
    below: dict[tuple[str, ...], list[Any]] = {}
    for parts, kind, is_closed in found:
        below.setdefault(tuple(parts[:-1]), []).append((parts, kind, is_closed))
    lines: list[str] = []
    stack = below.get((), [])[::-1]
    while stack:
        parts, kind, is_closed = stack.pop()
        lines.append("  " * len(parts) + shown_name(f"{parts[-1]}{kind}") + (" ..." if is_closed else ""))
        stack.extend(below.get(tuple(parts), [])[::-1])
    return "\n".join(lines)
