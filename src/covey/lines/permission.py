"""A permission request as a menu of short lines, and what its keys mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from covey.lines.code import diff_style
from covey.lines.line import Span, StyledLine, line
from covey.lines.plain_text import visible
from covey.lines.request_text import reasons
from covey.lines.widths import cut_line, expanded, width
from covey.lines.wrap import broken, wrap
from covey.protocol.events import PermissionRequest
from covey.protocol.requests import PermissionAction

ALWAYS = {"execute": "this very command", "write": "changes to this file", "read": "this very file"}
"""What an answer for the session covers, by the action that is asked for."""
ANSWERED: dict[PermissionAction, str] = {
    "allow": "allowed once",
    "allow_session": "allowed in this session",
    "allow_always": "always allowed here",
    "allow_prefix": "always allowed here, with any further words",
    "deny": "denied",
}
_OTHER_LETTERS = {"yes": "y", "a": "y", "no": "n", "d": "n", "f": "v", "r": "A", "p": "P"}
"""Those of the terminal UI, and of earlier versions. What lasts beyond the session has a capital letter everywhere."""
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
RULE_CHARACTERS = 200
"""Of rules in the menu: a longer command stands above it, and would be there twice."""
RULES_SHOWN = 3
"""In the menu: a line with many commands needs as many rules."""


def reach_words(request: PermissionRequest) -> str:
    """What a plain yes says of the network or the sandbox, where somebody might expect otherwise: `, with network`."""
    if request.yes_has_network:
        return ", with network"
    if not request.confined:
        return ""
    if request.asks_for == "everything":
        return ", inside the sandbox"
    return ", without network" if request.network else ""


def letter_of(word: str) -> str:
    """The letter of a choice that was typed, as it is shown: `A` is another one than `a`, which is `y`."""
    return word if word in _OTHER_LETTERS.values() else _OTHER_LETTERS.get(word.lower(), word.lower())


def choices(shown: PermissionShown) -> list[Choice]:
    """The keys, and what each of them does."""
    request, reach = shown.request, reach_words(shown.request)
    found = [("y", f"yes, once{reach}"), ("n", "no"), ("s", f"yes, in this session{reach}: {_covers(request)}")]
    if request.action == "write":
        found.append(("m", "yes, and all edits in this session"))
    if request.rules:
        many = f"{len(request.rules)} rules, which ? lists"
        what = many if len(request.rules) > RULES_SHOWN else _rules(request)
        what = what if len(what) <= RULE_CHARACTERS else f"{_covers(request)}, word for word"
        found.append(("A", f"yes, always here{reach}: {what}"))
    if request.prefix_rules:
        found.append(("P", f"yes, always here{reach}: {visible(request.prefix_rules[-1])}"))
    if request.confined:
        other = ("o", "yes, once, without network") if request.yes_has_network else ("w", "yes, once, with network")
        found += [other, ("u", "yes, once, outside the sandbox")]
    found.append(("e", "no, and tell the agent why"))
    if shown.is_cut:
        found.append(("v", "see all of it"))
    return [*found, ("?", "what these mean")]


def _rules(request: PermissionRequest) -> str:
    return visible("  ".join(request.rules))


def _covers(request: PermissionRequest) -> str:
    return ALWAYS.get(request.action, "exactly this")


def permission_lines(shown: PermissionShown, keys: Sequence[Choice], columns: int) -> list[StyledLine]:
    """The request, and below it the keys."""
    return [*request_lines(shown, columns), *_key_rows(keys, columns)]


def request_lines(shown: PermissionShown, columns: int) -> list[StyledLine]:
    """The request, and why it is asked about; wrapped where it is wider than the screen."""
    request = shown.request
    head, *body = shown.text
    lines = [*wrap([Span(head, "strong")], columns)]
    for text in body:
        lines += _body_rows(text, columns, is_diff="diff" in request.params)
    for reason in reasons(request):
        lines += wrap([Span(visible(reason), "dim")], columns)
    return lines


def _key_rows(keys: Sequence[Choice], columns: int) -> list[StyledLine]:
    """The keys, as many on a row as fit. One whose text is wider than the screen goes on below it."""
    rows: list[list[Span]] = [[]]
    used = 0
    for key, text in keys:
        spans = [Span(f"  {key}  ", "key"), Span(text)]
        wide = sum(width(span.text) for span in spans)
        if used and used + wide > columns:
            rows.append([])
            used = 0
        rows[-1] += spans
        used += wide
    return [row for spans in rows for row in wrap(spans, columns, rest=(Span("     "),))]


def answered_line(request: PermissionRequest, action: PermissionAction, reach: str, columns: int) -> StyledLine:
    """What is left of a question that was answered here; `reach`: how far a command gets, where that is said."""
    command = request.params.get("command")
    what = f"$ {command.strip().partition(chr(10))[0]}" if isinstance(command, str) else request.description
    return cut_line(line(Span(f"{ANSWERED[action]}{reach}: {visible(what or request.tool_name)}", "dim")), columns)


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
        ("s", f"It is done, and you are not asked again in this session about {_covers(request)}."),
    ]
    if request.action == "write":
        texts.append(("m", "It is done, and the session is in the mode accept_edits from now on."))
    if request.rules:
        where = visible(request.path)
        said = f"It is done, and your config.toml gets what holds in {where} and nowhere else: {_rules(request)}"
        texts.append(("A", said))
    if request.prefix_rules:
        texts.append(("P", "The same, for the command with any further words after it."))
    if request.yes_has_network:
        texts.append(("", "All of these give the command the network, which it asks for; a rule says so."))
    if request.confined:
        if request.yes_has_network:
            texts.append(("o", "It is done once, and the command has no network."))
        else:
            texts.append(("w", "It is done once, and the command may use the network."))
        texts.append(("u", "It is done once, and nothing keeps the command from the rest of your machine."))
    texts.append(("e", "You type a line, and Enter: it is not done, and the agent reads why."))
    texts.append(("v", "All of the command or the change is shown."))
    return [
        row
        for key, text in texts
        for row in wrap([Span(text)], columns, (Span(f"  {key or ' '}  ", "key"),), (Span("     "),))
    ]
