"""All of what is asked about, as a page: the whole command or change, why it is asked, and what a rule would be."""

from __future__ import annotations

from functools import partial

from covey.client.view.records import AskRequest
from covey.lines.approval import all_rows
from covey.lines.line import Span, StyledLine, line
from covey.lines.plain_text import visible
from covey.lines.widths import expanded
from covey.lines.wrap import broken, wrap
from covey.protocol.events import PermissionRequest, QuestionBatchRequest
from covey.protocol.extensions import ApprovalRequest
from covey.tui.face.permission_rows import as_chosen, diff_rows
from covey.tui.face.state import FaceState, PageText, TextPage

BACK = "esc goes back; nothing is answered here"
UNREAD = "answer at its end, or esc back"
MOVING = ("page_line_up", "page_line_down", "page_page_up", "page_page_down", "page_top", "page_end", "page_close")
"""What keeps its keys on such a page, also where they answer in the panel."""


def whole_page(request: AskRequest, state: FaceState) -> TextPage:
    if isinstance(request, QuestionBatchRequest):
        return TextPage("questions", partial(_questions, request), hint=BACK)
    hint = page_hint(request, state)
    if isinstance(request, ApprovalRequest):
        title = f"{request.kind} {visible(request.name)}"
        return TextPage(title, partial(_approval, request), hint=hint, asks=request.id)
    write = partial(_permission, as_chosen(state, request), state.is_unified)
    return TextPage(f"{request.tool_name}: all of it", write, hint=hint, asks=request.id)


def page_hint(request: AskRequest, state: FaceState) -> str:
    """What can be pressed on the page: answers too, once its end was seen."""
    if not state.ask.is_seen:
        return UNREAD
    offered = [("allow_once", "once"), ("allow_session", "session"), ("deny", "deny")]
    if isinstance(request, ApprovalRequest):
        offered = [("approve", "use it, as it is"), ("refuse", "do not")]
    keys = [(state.preferences.keys.shown(intent, beside=MOVING), words) for intent, words in offered]
    return "   ".join([*(f"{key} {words}" for key, words in keys if key), "esc back"])


def _approval(request: ApprovalRequest, columns: int) -> PageText:
    return PageText(tuple(all_rows(request, columns)))


def _permission(request: PermissionRequest, is_unified: bool, columns: int) -> PageText:
    lines: list[StyledLine] = []
    lines += wrap([Span(visible(request.description), "strong")], columns)
    for text in (request.reason, request.sandbox):
        lines += wrap([Span(visible(text), "dim")], columns) if text else []
    lines.append(StyledLine())
    diff = request.params.get("diff")
    if isinstance(diff, str) and diff:
        lines += diff_rows(diff, columns, is_unified=is_unified)
    else:
        for name, value in request.params.items():
            if value not in (None, "", False):  # what was not asked for is nothing to be read
                lines += _value(name, value, columns)
    if request.rules:
        rest = (Span(" " * 18),)
        rules = Span(visible(" ".join(request.rules)))
        lines += [StyledLine(), *wrap([rules], columns, (Span("always would add  ", "dim"),), rest)]
        lines += wrap([Span(visible(request.path))], columns, (Span("               in  ", "dim"),), rest)
    return PageText(tuple(lines))


def _value(name: str, value: object, columns: int) -> list[StyledLine]:
    text = value if isinstance(value, str) else repr(value)
    rows: list[StyledLine] = [line(Span(visible(name), "dim"))]
    for each in text.split("\n"):
        rows += [line("  ", *row.spans) for row in broken(expanded(visible(each)), columns - 2, "")]
    return rows


def _questions(batch: QuestionBatchRequest, columns: int) -> PageText:
    lines: list[StyledLine] = []
    for number, item in enumerate(batch.questions, 1):
        lines += wrap([Span(f"{number}. {visible(item.question)}", "strong")], columns)
        lines += wrap([Span(visible(item.description), "dim")], columns) if item.description else []
        for choice in item.choices:
            about = f" — {visible(choice.description)}" if choice.description else ""
            lines += wrap(
                [Span(visible(choice.label)), Span(about, "dim")], columns, (Span("   • "),), (Span("     "),)
            )
        lines.append(StyledLine())
    return PageText(tuple(lines))
