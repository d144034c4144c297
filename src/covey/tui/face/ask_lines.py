"""An ask as a panel above the prompt: what is asked, why, and which keys answer it. Pure."""

from __future__ import annotations

from covey.client.view.records import OpenAsk
from covey.client.view.view import View
from covey.lines.line import Span, Style, StyledLine, line
from covey.lines.plain_text import visible
from covey.lines.widths import cut_line
from covey.lines.wrap import wrap
from covey.protocol.events import PermissionRequest, QuestionBatchRequest, QuestionItem
from covey.protocol.extensions import ApprovalRequest
from covey.protocol.requests import QuestionResponse
from covey.tui.face import answering, looks, questioning
from covey.tui.face.approval_rows import approval_keys, extension
from covey.tui.face.boxes import boxed, rule, window
from covey.tui.face.key_rows import flowed, key_spans
from covey.tui.face.keys import shown
from covey.tui.face.line_editor import line_with_caret
from covey.tui.face.permission_rows import (
    answer_rows,
    cut_rows,
    gap,
    panel_columns,
    panel_width,
    reason_rows,
    subject,
)
from covey.tui.face.room import ask_rows_left
from covey.tui.face.sizes import is_low
from covey.tui.face.state import AskPanel, FaceState

Caret = tuple[int, int] | None
AROUND_QUESTION = 7
"""Rows of a low screen that are not for a question and its choices: two are its keys."""
VERBS = {"execute": "allow this command?", "write": "allow this change?", "read": "allow it to read this?"}


def ask_panel(state: FaceState, view: View, client_id: str) -> tuple[list[StyledLine], Caret]:
    """The rows of the panel, none if nothing is asked here, and where the caret is if it is in them."""
    ask = answering.shown(state, view)
    if ask is None:
        return [], None
    columns = panel_width(state, ask.request)
    inner = panel_columns(state, ask.request)
    if isinstance(ask.request, PermissionRequest):
        lines, caret = _permission(state, view, ask.request, ask, inner)
        title = VERBS.get(ask.request.action, "allow this?")
    elif isinstance(ask.request, QuestionBatchRequest):
        lines, caret = _questions(state, view, ask.request, ask, inner)
        title = "a question"
    else:
        lines, caret = _approval(state, ask.request, ask, inner), None
        title = "may this extension be used?" if ask.request.what == "entry" else "may these tools be used?"
    more = looks.asks_here(view)
    right = " · ".join(
        filter(None, [f"1 of {len(more)}" if len(more) > 1 else "", _who_sees(view, client_id, state.me)])
    )
    has_keys = answering.takes_keys(state, view, state.now)
    style: Style = "accent" if state.focus == "ask" else "warning"
    foot = _foot(state, ask, has_keys=has_keys)
    if is_low(state):
        rows = [rule(columns, title, foot or right, style), *(line("  ", *each.spans) for each in lines)]
    else:
        rows = boxed(lines, columns, title, right, foot, style)
    return rows, (caret[0] + 1, caret[1] + 2) if caret else None


def _who_sees(view: View, client_id: str, me: str) -> str:
    others = [p for p in looks.present(view, client_id, me) if p.is_here and not p.is_you]
    names = list(dict.fromkeys(p.name for p in others if not p.is_yours))
    if not names:
        return "your other window shows it too" if others else ""
    return f"{names[0]} sees it too" if len(names) == 1 else f"{len(names)} others see it too"


def _foot(state: FaceState, ask: OpenAsk, *, has_keys: bool) -> str:
    if ask.is_being_answered:
        return "answered; waiting for the server"
    if state.focus != "ask":
        return f"{shown('tab')} answer"
    return "" if has_keys else "keys open in a moment"


def _permission(
    state: FaceState, view: View, request: PermissionRequest, ask: OpenAsk, columns: int
) -> tuple[list[StyledLine], Caret]:
    panel, shown_of_it = state.ask, subject(state, request)
    column: int | None = None
    why, back = reason_rows(state, request, columns), answering.behind_escape(state, view)
    if panel.words is not None:
        row, column = line_with_caret(panel.words, columns, "no, because: ")
        below = [row, _hint(f"⏎ denies and says why   esc {back}")]
    elif panel.confirming:
        below = [*_added_rule(request, panel, columns), _hint(f"⏎ add it, and allow   esc {back}")]
    else:
        keys = [] if ask.is_being_answered else answer_rows(state, request, columns, is_whole=shown_of_it.is_whole)
        return [*shown_of_it.rows, *why, *(gap(state) if keys else ()), *keys], None
    # What was shown until now gives way to what is written or confirmed.
    lines = [*cut_rows(shown_of_it.rows, ask_rows_left(state, len(why) + len(below))), *why]
    return [*lines, *below], (len(lines), column) if column is not None else None


def _approval(state: FaceState, request: ApprovalRequest, ask: OpenAsk, columns: int) -> list[StyledLine]:
    found = extension(state, request)
    if ask.is_being_answered:
        return found.rows
    return [*found.rows, *gap(state), *approval_keys(state, columns, is_cut=found.is_cut)]


def _added_rule(request: PermissionRequest, panel: AskPanel, columns: int) -> list[StyledLine]:
    rules = request.rules if panel.confirming == "allow_always" else request.prefix_rules[-1:]
    further = " · with network" * panel.network + " · outside of the sandbox" * panel.unsandboxed
    text = f"always would add  {visible(' '.join(rules))}{further}"
    return [
        *wrap([Span(text, "strong")], columns),
        *wrap([Span(f"to your own rules, for {visible(request.path)} and nowhere else", "dim")], columns),
    ]


def _hint(text: str) -> StyledLine:
    return line(Span(text, "dim"))


# ── questions ──


def _questions(
    state: FaceState, view: View, batch: QuestionBatchRequest, ask: OpenAsk, columns: int
) -> tuple[list[StyledLine], Caret]:
    panel = state.ask
    number = min(panel.question, len(batch.questions) - 1)
    item = batch.questions[number]
    is_last = number + 1 == len(batch.questions)
    given = questioning.answer_of(panel, item)
    lines = _question_rows(state, item, number, len(batch.questions), columns)
    lines += _choices(state, item, given, columns)
    if panel.words is not None:
        row, column = line_with_caret(panel.words, columns, "> ")
        done = ("send" if is_last else "next") if item.type == "free_text" else "keep it"
        return [*lines, row, _hint(f"⏎ {done}   esc {answering.behind_escape(state, view)}")], (len(lines), column)
    if said := given.fill_in_text or (given.notes if isinstance(given.notes, str) else ""):
        lines += wrap([Span(f"“{visible(said)}”")], columns)
    if ask.is_being_answered:
        return lines, None
    keys = state.preferences.keys
    spans = key_spans(keys, ("question_yes", "yes"), ("question_no", "no")) if item.type == "yes_no" else []
    if item.choices:
        spans += key_spans(keys, ("choose", "or number: choose"))
    goes_on = "send" if is_last else "next"
    goes_on = f"choose it, and {goes_on}" if questioning.takes_marked(panel, batch) else goes_on
    spans += key_spans(keys, ("question_words", "in words"), ("question_next", goes_on))
    spans += key_spans(keys, ("question_back", "back")) if number else []
    spans += key_spans(keys, ("question_refuse", "answer none"))
    return [*lines, *gap(state), *flowed(spans, columns)], None


def choice_at(state: FaceState, view: View, row: int) -> int | None:
    """Which choice of the question that is shown stands in this row of the panel; None: none does."""
    ask = answering.shown(state, view)
    if ask is None or not isinstance(ask.request, QuestionBatchRequest) or ask.is_being_answered:
        return None
    inner = panel_columns(state)
    batch = ask.request
    number = min(state.ask.question, len(batch.questions) - 1)
    item = batch.questions[number]
    at = 1 + len(_question_rows(state, item, number, len(batch.questions), inner))  # the frame is above it
    if item.type == "yes_no":
        return None
    given = _choice_rows(item, questioning.answer_of(state.ask, item), state.ask.choice, inner)
    for choice in _shown_choices(state, item):
        if at <= row < at + len(given[choice]):
            return choice
        at += len(given[choice])
    return None


def _shown_choices(state: FaceState, item: QuestionItem) -> range:
    """All of them or, on a low screen, those around the one that the keyboard is on."""
    count = len(item.choices)
    if not is_low(state):
        return range(count)
    return window(count, state.ask.choice, max(state.height - AROUND_QUESTION - _low_question(state), 2))


def _low_question(state: FaceState) -> int:
    """Rows of a question on a low screen: the choices and the keys need the rest, and all of it is a page."""
    return max((state.height - AROUND_QUESTION) // 3, 1)


def _question_rows(state: FaceState, item: QuestionItem, number: int, count: int, columns: int) -> list[StyledLine]:
    place = f"{number + 1} of {count}  " if count > 1 else ""
    rows = wrap([Span(place, "dim"), Span(visible(item.question), "strong")], columns)
    if is_low(state):
        most = _low_question(state)
        last = [cut_line(line(*rows[most - 1].spans, " …"), columns)] if len(rows) > most else rows[most - 1 :]
        return [*rows[: most - 1], *last]
    return [*rows, *(wrap([Span(visible(item.description), "dim")], columns) if item.description else [])]


def _choices(state: FaceState, item: QuestionItem, given: QuestionResponse, columns: int) -> list[StyledLine]:
    if item.type == "yes_no":
        marks = {True: "●" if given.yes is True else "○", False: "●" if given.yes is False else "○"}
        return [line(f"{marks[True]} yes    {marks[False]} no")]
    made = _choice_rows(item, given, state.ask.choice, columns)
    return [row for number in _shown_choices(state, item) for row in made[number]]


def _choice_rows(item: QuestionItem, given: QuestionResponse, at: int, columns: int) -> list[list[StyledLine]]:
    """Of each choice."""
    found: list[list[StyledLine]] = []
    for number, choice in enumerate(item.choices):
        is_chosen = choice.id in given.selected_ids
        sign = ("●" if is_chosen else "○") if item.type == "single_choice" else ("■" if is_chosen else "□")
        style: Style = "selected" if number == at else ""
        about = f"  {visible(choice.description)}" if choice.description else ""
        head = f"{number + 1} {sign} "
        spans = [Span(visible(choice.label), style), Span(about, "dim")]
        found.append(wrap(spans, columns, (Span(head),), (Span(" " * len(head)),)))
    return found
