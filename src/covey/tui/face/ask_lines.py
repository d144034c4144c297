"""An ask as a panel above the prompt: what is asked, why, and which keys answer it. Pure."""

from __future__ import annotations

from covey.client.view.records import OpenAsk
from covey.client.view.view import View
from covey.lines.line import Span, Style, StyledLine, line
from covey.lines.plain_text import visible
from covey.lines.request_text import reasons
from covey.lines.widths import cut_line, width
from covey.lines.wrap import wrap
from covey.protocol.events import PermissionRequest, QuestionBatchRequest, QuestionItem
from covey.protocol.extensions import ApprovalRequest
from covey.protocol.requests import QuestionResponse
from covey.tui.face import answering, looks
from covey.tui.face.approval_rows import approval_rows
from covey.tui.face.boxes import boxed, rule, window
from covey.tui.face.keys import KeyTable, shown
from covey.tui.face.line_editor import line_with_caret
from covey.tui.face.permission_rows import FRAME, SPLIT_FROM, as_chosen, panel_columns, panel_width, permission_rows
from covey.tui.face.sizes import body_columns, is_low
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


def _keys(keys: KeyTable, *intents: tuple[str, str]) -> list[Span]:
    spans: list[Span] = []
    for intent, words in intents:
        spans += [Span(keys.shown(intent), "key"), Span(f" {words}   ")]
    return spans


def _flowed(spans: list[Span], columns: int) -> list[StyledLine]:
    """Keys with their words, as many on a row as fit; a key stays with its word."""
    rows: list[StyledLine] = []
    row: list[Span] = []
    used = 0
    for key, words in zip(spans[::2], spans[1::2], strict=True):
        needed = width(key.text) + width(words.text.rstrip())
        if row and used + needed > columns:
            rows.append(StyledLine(tuple(row)))
            row, used = [], 0
        # The blanks after the last word of a row would be cut with a sign that something is missing.
        room = max(columns - used - width(key.text), width(words.text.rstrip()))
        row += [key, Span(words.text[:room], words.style)]
        used += width(key.text) + width(words.text)
    return [*rows, StyledLine(tuple(row))]


def _permission(
    state: FaceState, view: View, request: PermissionRequest, ask: OpenAsk, columns: int
) -> tuple[list[StyledLine], Caret]:
    panel, keys = state.ask, state.preferences.keys
    back = answering.behind_escape(state, view)
    lines, is_cut = permission_rows(state, request)
    for text in reasons(as_chosen(state, request)) if not is_low(state) else ():
        lines += wrap([Span(visible(text), "dim")], columns)
    if panel.words is not None:
        row, column = line_with_caret(panel.words, columns, "no, because: ")
        return [*lines, row, _hint(f"⏎ denies and says why   esc {back}")], (len(lines), column)
    if panel.confirming:
        return [*lines, *_added_rule(request, panel, columns), _hint(f"⏎ add it, and allow   esc {back}")], None
    once = "once, with network" if panel.network else "once"
    spans = _keys(keys, ("allow_once", once), ("allow_session", "session"))
    if request.rules:
        spans += _keys(keys, ("allow_always", "always …"))
    if request.prefix_rules:
        spans += _keys(keys, ("allow_prefix", "always, any words …"))
    spans += _keys(keys, ("deny", "deny"), ("deny_with_words", "deny with words"))
    if request.confined and not is_low(state):
        spans += _keys(keys, ("with_network", f"network: {'on' if panel.network else 'off'}"))
        spans += _keys(keys, ("without_sandbox", f"sandbox: {'off' if panel.unsandboxed else 'on'}"))
    spans += _keys(keys, ("whole", "see all of it" if is_cut else "whole"))
    if request.params.get("diff") and body_columns(state) - FRAME >= SPLIT_FROM:
        spans += _keys(keys, ("diff_shape", "beside each other" if state.is_unified else "unified"))
    if ask.is_being_answered:
        return lines, None
    return [*lines, *_gap(state), *_flowed(spans, columns)], None


def _gap(state: FaceState) -> list[StyledLine]:
    return [] if is_low(state) else [StyledLine()]


def _approval(state: FaceState, request: ApprovalRequest, ask: OpenAsk, columns: int) -> list[StyledLine]:
    lines, is_cut = approval_rows(request, min(columns, panel_columns(state)), state.height)
    if ask.is_being_answered:
        return lines
    keys = state.preferences.keys
    spans = _keys(keys, ("approve", "use it, as it is"), ("refuse", "do not"), ("whole", "see all of it"))
    return [*lines, *_gap(state), *_flowed(spans if is_cut else spans[:-2], columns)]


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
    given = answering.answer_of(panel, item)
    lines = _question_rows(state, item, number, len(batch.questions), columns)
    lines += _choices(state, item, given, columns)
    if panel.words is not None:
        row, column = line_with_caret(panel.words, columns, "> ")
        return [*lines, row, _hint(f"⏎ keep it   esc {answering.behind_escape(state, view)}")], (len(lines), column)
    if said := given.fill_in_text or (given.notes if isinstance(given.notes, str) else ""):
        lines += wrap([Span(f"“{visible(said)}”")], columns)
    if ask.is_being_answered:
        return lines, None
    is_last = number + 1 == len(batch.questions)
    keys = state.preferences.keys
    spans = _keys(keys, ("question_yes", "yes"), ("question_no", "no")) if item.type == "yes_no" else []
    if item.choices:
        spans += _keys(keys, ("choose", "or number: choose"))
    spans += _keys(keys, ("question_words", "in words"), ("question_next", "send" if is_last else "next"))
    spans += _keys(keys, ("question_back", "back")) if number else []
    spans += _keys(keys, ("question_refuse", "answer none"))
    return [*lines, *_gap(state), *_flowed(spans, columns)], None


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
    given = _choice_rows(item, answering.answer_of(state.ask, item), state.ask.choice, inner)
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
