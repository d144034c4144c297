"""A permission request as the person who is asked must see it: what will really happen, and nothing hidden in it."""

from __future__ import annotations

from typing import Any

from covey.lines.plain_text import visible
from covey.protocol.events import PermissionRequest

LINES_SHOWN = 40
"""As many as fit on a screen together with the question: most from the beginning, and the last ones."""
LAST_LINES = 10
COLUMNS_SHOWN = 1000
"""Of one line: a dozen lines of a terminal. What is left out is counted, so that nothing can hide in it."""
LAST_COLUMNS = 200


def request_text(request: PermissionRequest, *, whole: bool = False) -> str:
    """A headline, and below it the command or the change, indented; cut in the middle, unless all of it is wanted."""
    params = request.params
    headline, body = request.description, ""
    if isinstance(command := params.get("command"), str):
        where = params.get("working_dir")
        headline, body = f"in {where}" if where else "", command
    elif isinstance(diff := params.get("diff"), str):
        headline += f" (+{params.get('additions', '?')} -{params.get('removals', '?')} lines)"
        body = diff
    elif isinstance(content := params.get("content"), str):
        headline += f" ({len(content.encode('utf-8', 'replace'))} bytes)"
        body = content
    elif "old_string" in params and "new_string" in params:
        headline += " (wherever it occurs)" if params.get("replace_all") else ""
        body = "\n".join((*_marked("-", params["old_string"]), *_marked("+", params["new_string"])))
    head = f"{request.tool_name}: {headline}" if headline else f"{request.tool_name}:"
    return "\n".join((visible(head), *_indented(body, whole=whole)))


def _marked(mark: str, text: Any) -> list[str]:
    return [f"{mark}{line}" for line in str(text).split("\n")]


def _indented(text: str, *, whole: bool) -> list[str]:
    lines = text.rstrip("\n").split("\n") if text else []
    if whole:
        return [f"    {visible(line)}" for line in lines]
    more = len(lines) - LINES_SHOWN
    if more > 0:
        left_out = f"… {more} more line{'s' if more > 1 else ''} …"
        lines[LINES_SHOWN - LAST_LINES : -LAST_LINES] = [left_out]
    return [f"    {_cut(line)}" for line in lines]


def _cut(line: str) -> str:
    more = len(line) - COLUMNS_SHOWN
    if more <= 0:
        return visible(line)
    beginning, end = line[: COLUMNS_SHOWN - LAST_COLUMNS], line[-LAST_COLUMNS:]
    return f"{visible(beginning)} … {more} more characters … {visible(end)}"
