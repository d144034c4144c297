"""What a person who decides about an extension gets to see: all of it, with nothing that a terminal would act upon."""

from __future__ import annotations

import sys

from covey.cli.terminal_text import json_text
from covey.lines.plain_text import visible
from covey.lines.words import counted
from covey.protocol.extensions import ApprovalRequest, ExtensionKind, OfferedTool

KINDS: dict[ExtensionKind, str] = {
    "mcp": "MCP server",
    "lsp": "language server",
    "hook": "hook",
    "skill": "skill",
    "command": "command",
    "agent": "agent",
}
TEXT_LINES = 40
"""Of a text that the model would read, shown before somebody wants all of it."""


def in_short(request: ApprovalRequest) -> str:
    """One line."""
    what = "new or changed tools of the " if request.what == "tools" else ""
    return visible(f"{what}{KINDS[request.kind]} {request.name} ({request.source})")


def is_cut(request: ApprovalRequest) -> bool:
    """Whether there is more than `approval_text` shows at first."""
    return any(tool.schema for tool in request.tools) or len((request.text or "").split("\n")) > TEXT_LINES


def approval_text(request: ApprovalRequest, *, whole: bool = False) -> str:
    """The request. `whole`: with the schemas of tools, and all of a text."""
    facts = [
        ("runs", " ".join((request.command, *request.args)) if request.command else None),
        ("in", request.cwd),
        ("with the variables", ", ".join(request.variables)),
        ("connects to", request.url),
        ("with the headers", ", ".join(request.headers)),
        ("when", request.matcher),
        ("named in", request.source),
    ]
    title = f"The {KINDS[request.kind]} {request.name}"
    title += " offers tools that nobody has approved as they are now." if request.what == "tools" else " is new here."
    lines = [visible(title), *(f"  {name}: {visible(value)}" for name, value in facts if value)]
    if request.instructions:
        lines += ["  It tells the model:", *(f"    | {visible(line)}" for line in request.instructions.split("\n"))]
    for tool in request.tools:
        lines += _tool(tool, whole=whole)
    text = (request.text or "").split("\n") if request.text else []
    lines += [f"    | {visible(line)}" for line in (text if whole else text[:TEXT_LINES])]
    if len(text) > TEXT_LINES and not whole:
        lines.append(f"    … {counted(len(text) - TEXT_LINES, 'more line')}")
    return "\n".join((*lines, *(f"  ! {visible(warning)}" for warning in request.warnings)))


def _tool(tool: OfferedTool, *, whole: bool) -> list[str]:
    changed = {"new": "", "changed": " (changed)", "same": " (as approved)"}[tool.change]
    lines = [f"  tool {visible(tool.name)}{changed}"]
    lines += [f"    | {visible(line)}" for line in tool.description.split("\n") if line.strip()]
    if tool.diff:
        lines += [f"    {visible(line)}" for line in tool.diff.split("\n")]
    if whole:
        lines += [f"    {visible(line)}" for line in json_text(tool.schema).split("\n")]
    return lines


def says_yes(request: ApprovalRequest) -> bool:
    """Ask at the terminal; without one it is a no."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    from covey.cli.asks import ApprovalAnswer, ApprovalAsk, Heard  # it uses what is here
    from covey.cli.screen import Screen

    ask, screen = ApprovalAsk(request), Screen(sys.stderr, quiet=False, shares_terminal=True)
    screen.ask(ask.text)
    while True:
        typed = sys.stdin.readline()
        screen.answered(typed, "" if typed else "\n")
        heard = ask.hear(typed or "later")
        if isinstance(heard, ApprovalAnswer):
            return heard.approve is True
        screen.ask(ask.text if heard is Heard.WHOLE else ask.question)
