"""A permission request as a menu of short lines, and what its keys mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from covey.lines.code import diff_style
from covey.lines.line import Span, StyledLine, line
from covey.lines.plain_text import visible
from covey.lines.widths import cut_line, expanded
from covey.lines.wrap import broken, wrap
from covey.protocol.events import PermissionRequest

ALWAYS = {"execute": "this very command", "write": "changes to this file", "read": "this very file"}
"""What an answer for the session covers, by the action that is asked for."""
INDENT = "    "
"""What the text of a request has before the command or the change."""


@dataclass(frozen=True, slots=True)
class PermissionShown:
    """A request, and as much of it as is shown."""

    text: Sequence[str]
    """A headline, and below it the command or the change."""
    request: PermissionRequest
    is_cut: bool


Choice = tuple[str, str]


def choices(shown: PermissionShown) -> list[Choice]:
    """The keys, and what each of them does."""
    request = shown.request
    found = [("y", "yes, once"), ("n", "no"), ("s", f"yes, in this session: {_covers(request)}")]
    if request.rules:
        found.append(("r", f"yes, always here: {visible(' '.join(request.rules))}"))
    if request.prefix_rules:
        found.append(("p", f"yes, always here: {visible(request.prefix_rules[-1])}"))
    if request.confined:
        found += [("w", "yes, once, with the network"), ("u", "yes, once, outside the sandbox")]
    such_as = "no, use pytest" if request.tool_name == "bash" else "no, keep the old name"
    found.append(("e", f"answer in words, such as: {such_as}"))
    if shown.is_cut:
        found.append(("v", "see all of it"))
    return [*found, ("?", "what these mean")]


def _covers(request: PermissionRequest) -> str:
    return ALWAYS.get(request.action, "exactly this")


def permission_lines(shown: PermissionShown, keys: Sequence[Choice], columns: int) -> list[StyledLine]:
    """The request in full, wrapped where it is wider than the screen, then a line for each key, cut to its width."""
    request = shown.request
    network = "It probably needs the network." if request.network else ""
    reasons = [text for text in (request.reason, network, request.sandbox) if text]
    head, *body = shown.text
    lines = [*wrap([Span(head, "strong")], columns)]
    for text in body:
        lines += _body_rows(text, columns, is_diff="diff" in request.params)
    for reason in reasons:
        lines += wrap([Span(visible(reason), "dim")], columns)
    return [*lines, *(cut_line(line(Span(f"  {key}  ", "key"), text), columns) for key, text in keys)]


def _body_rows(text: str, columns: int, *, is_diff: bool) -> list[StyledLine]:
    """Every blank of a command counts, so it is cut where a row ends and not where a word does."""
    rest = expanded(text.removeprefix(INDENT))
    rows = broken(rest, max(columns - len(INDENT), 8), diff_style(rest) if is_diff else "")
    return [line(INDENT, *row.spans) for row in rows]


def help_lines(request: PermissionRequest, columns: int) -> list[StyledLine]:
    """What the keys mean, in sentences."""
    texts = [
        ("y", "It is done this once. The next time you are asked again."),
        ("n", "It is not done, and the agent goes on without it. Ctrl-D is the same; Ctrl-C cancels the run."),
        ("s", f"It is done, and {_covers(request)} is not asked about again in this session."),
    ]
    if request.rules:
        where = visible(request.path)
        texts.append(("r", f"It is done, and your config.toml gets a rule that holds in {where} and nowhere else."))
    if request.prefix_rules:
        texts.append(("p", "The same, for the command with any further words after it."))
    if request.confined:
        texts.append(("w", "It is done once, and the command may use the network."))
        texts.append(("u", "It is done once, and nothing keeps the command from the rest of your machine."))
    further = ", sw or ru for s and r with w and u" if request.confined else ""
    texts.append(("e", f"You type a line, and Enter: no and why, which the agent reads{further}."))
    texts.append(("v", "All of the command or the change is shown."))
    return [
        row
        for key, text in texts
        for row in wrap([Span(text)], columns, (Span(f"  {key}  ", "key"),), (Span("     "),))
    ]
