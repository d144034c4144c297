"""A permission request as a menu of short lines, and what its keys mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from covey.lines.code import diff_style
from covey.lines.line import Span, StyledLine, line
from covey.lines.plain_text import visible
from covey.lines.request_text import reasons
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


def reach_words(request: PermissionRequest) -> str:
    """What a plain yes says of the network or the sandbox, where somebody might expect otherwise: `, with network`."""
    if request.yes_has_network:
        return ", with network"
    if not request.confined:
        return ""
    if request.asks_for == "everything":
        return ", inside the sandbox"
    return ", without network" if request.network else ""


def choices(shown: PermissionShown) -> list[Choice]:
    """The keys, and what each of them does."""
    request, reach = shown.request, reach_words(shown.request)
    found = [("y", f"yes, once{reach}"), ("n", "no"), ("s", f"yes, in this session{reach}: {_covers(request)}")]
    if request.rules:
        found.append(("r", f"yes, always here{reach}: {visible(' '.join(request.rules))}"))
    if request.prefix_rules:
        found.append(("p", f"yes, always here{reach}: {visible(request.prefix_rules[-1])}"))
    if request.confined:
        other = ("o", "yes, once, without network") if request.yes_has_network else ("w", "yes, once, with network")
        found += [other, ("u", "yes, once, outside the sandbox")]
    found.append(("e", "answer in words, such as: no, use pytest"))
    if shown.is_cut:
        found.append(("v", "see all of it"))
    return [*found, ("?", "what these mean")]


def _covers(request: PermissionRequest) -> str:
    return ALWAYS.get(request.action, "exactly this")


def permission_lines(shown: PermissionShown, keys: Sequence[Choice], columns: int) -> list[StyledLine]:
    """The request in full, wrapped where it is wider than the screen, then a line for each key, cut to its width."""
    request = shown.request
    head, *body = shown.text
    lines = [*wrap([Span(head, "strong")], columns)]
    for text in body:
        lines += _body_rows(text, columns, is_diff="diff" in request.params)
    for reason in reasons(request):
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
    if request.yes_has_network:
        texts.append(("", "All of these give the command the network, which it asks for; a rule says so."))
    if request.confined:
        if request.yes_has_network:
            texts.append(("o", "It is done once, and the command has no network."))
        else:
            texts.append(("w", "It is done once, and the command may use the network."))
        texts.append(("u", "It is done once, and nothing keeps the command from the rest of your machine."))
    pair = ("so", "o") if request.yes_has_network else ("sw", "w")
    further = f", {pair[0]} or ru for s and r with {pair[1]} and u" if request.confined else ""
    texts.append(("e", f"You type a line, and Enter: no and why, which the agent reads{further}."))
    texts.append(("v", "All of the command or the change is shown."))
    return [
        row
        for key, text in texts
        for row in wrap([Span(text)], columns, (Span(f"  {key or ' '}  ", "key"),), (Span("     "),))
    ]
