"""A permission request as the person who is asked must see it: what will really happen, and nothing hidden in it."""

from __future__ import annotations

from typing import Any

from covey.lines.plain_text import visible
from covey.protocol.events import PermissionRequest

LINES_SHOWN = 40
"""As many as fit on a screen together with the question: most from the beginning, and the last ones."""
FEWEST_LINES = 4
"""On a small screen: fewer say nothing."""
LAST_LINES = 10
"""Of LINES_SHOWN; a quarter of fewer."""
COLUMNS_SHOWN = 1000
"""Of one line: a dozen lines of a terminal. What is left out is counted, so that nothing can hide in it."""
LAST_COLUMNS = 200


def reasons(request: PermissionRequest) -> list[str]:
    """Why somebody is asked, and what they should know besides."""
    guess = "It probably needs the network." if request.network and not request.asks_for else ""
    return [text for text in (request.reason, guess, request.sandbox) if text]


def request_text(request: PermissionRequest, *, whole: bool = False, lines: int = LINES_SHOWN) -> str:
    """A headline, and below it the command or the change, indented; cut in the middle, unless all of it is wanted.

    `lines`: as many of it as are shown.
    """
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
    # "Write a.py" says already which tool it is.
    is_said = headline.lower().startswith(f"{request.tool_name} ")
    head = headline if is_said else f"{request.tool_name}: {headline}" if headline else f"{request.tool_name}:"
    return "\n".join((visible(head), *_indented(body, None if whole else lines)))


def _marked(mark: str, text: Any) -> list[str]:
    return [f"{mark}{line}" for line in str(text).split("\n")]


def _indented(text: str, limit: int | None) -> list[str]:
    """None: all of it."""
    lines = text.rstrip("\n").split("\n") if text else []
    if limit is None:
        return [f"    {visible(line)}" for line in lines]
    more, last = len(lines) - limit, limit * LAST_LINES // LINES_SHOWN
    if more > 0:
        left_out = f"… {more} more line{'s' if more > 1 else ''} …"
        lines[limit - last : -last] = [left_out]
    columns = COLUMNS_SHOWN * limit // LINES_SHOWN  # where there is room for fewer lines, a long one has less too
    return [f"    {_cut(line, columns)}" for line in lines]


def _cut(line: str, columns: int) -> str:
    more = len(line) - columns
    if more <= 0:
        return visible(line)
    last = columns * LAST_COLUMNS // COLUMNS_SHOWN
    beginning, end = line[: columns - last], line[-last:]
    return f"{visible(beginning)} … {more} more characters … {visible(end)}"
