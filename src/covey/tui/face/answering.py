"""Asks: which one is shown, when it takes keys, and what they answer. Pure.

An ask never answers itself: no key counts that was part of a burst of typing when it appeared, Enter alone answers
nothing, and an ask goes when the server says so.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from msgspec import structs

from covey.client.view.records import AskRequest, OpenAsk
from covey.client.view.view import View
from covey.protocol.events import PermissionRequest, QuestionBatchRequest, QuestionItem
from covey.protocol.extensions import ApprovalRequest
from covey.protocol.requests import PermissionAction, QuestionResponse
from covey.tui.face import looks
from covey.tui.face.approval_rows import approval_rows
from covey.tui.face.editing import keyed, one_line
from covey.tui.face.editor import Editor
from covey.tui.face.effects import AnswerBatch, AnswerPermission, DecideApproval
from covey.tui.face.permission_rows import panel_columns, permission_rows
from covey.tui.face.state import ALONE_S, QUIET_AT_MOST_S, QUIET_S, AskPanel, FaceState, PendingAnswer
from covey.tui.face.step import FaceStep
from covey.tui.inputs import Key

KEEP_TYPING = "keep typing"
"""What leaving an ask is called: the prompt below it has the keys again."""


def shown(state: FaceState, view: View) -> OpenAsk | None:
    return view.asks.open.get(state.ask.ask_id) if state.ask.ask_id else None


def opens_at(state: FaceState) -> float:
    """When the ask takes keys, if nobody types until then."""
    appeared = state.ask.appeared_at
    return min(max(appeared, state.last_input_at) + QUIET_S, appeared + QUIET_AT_MOST_S)


def takes_keys(state: FaceState, view: View, now: float) -> bool:
    """Whether the panel has the keys: it is not being written to, and it was quiet."""
    if shown(state, view) is None or state.focus != "ask":
        return False
    return state.ask.has_keys or now >= opens_at(state)


def hold_keys(step: FaceStep) -> FaceStep:
    """What has the keys keeps them until the focus goes elsewhere."""
    panel = step.state.ask
    has_keys = takes_keys(step.state, step.view, step.state.now)
    if has_keys == panel.has_keys:
        return step
    panel = replace(panel, has_keys=has_keys)
    ask = shown(step.state, step.view)
    if has_keys and ask and not ask.is_being_answered and isinstance(ask.request, QuestionBatchRequest):
        panel = _written_to(panel, ask.request)
    return step.set(ask=panel)


def settle(step: FaceStep) -> FaceStep:
    """A letter that stayed alone is an answer."""
    pending = step.state.ask.pending
    if pending is None or step.state.now < pending.at + ALONE_S:
        return step
    return _confirmed(step, pending.intent)


def next_key(step: FaceStep, pressed: Key) -> FaceStep:
    """Another key comes while a letter waits: both are typed. Enter makes it an answer at once, others drop it."""
    pending = step.state.ask.pending
    if pending is None:
        return step
    if pressed.name == "enter":
        return _confirmed(step, pending.intent)
    step = step.set(ask=replace(step.state.ask, pending=None))
    if not pressed.text:
        return step
    composer = step.state.composer
    step = step.set(focus="composer", ask=replace(step.state.ask, has_keys=False))
    return step.compose(composer.with_editor(composer.editor.insert(pending.text)))


def _confirmed(step: FaceStep, intent: str) -> FaceStep:
    step = step.set(ask=replace(step.state.ask, pending=None))
    ask = shown(step.state, step.view)
    if ask is None or ask.is_being_answered:
        return step
    request = ask.request
    match request:
        case PermissionRequest():
            return _permission(step, request, intent) or step
        case QuestionBatchRequest():
            return _question(step, request, intent, Key("")) or step
        case ApprovalRequest():
            return _approval(step, request, intent) or step
        case _:
            assert_never(request)


def look(step: FaceStep) -> FaceStep:
    """Show the oldest ask that is open, and say what became of the one that was shown."""
    state, view = step.state, step.view
    if state.ask.ask_id and shown(state, view) is None:
        step = _closed(step)
    waiting = [ask for ask in looks.asks_here(view) if not ask.is_being_answered] or looks.asks_here(view)
    if not step.state.ask.ask_id and waiting:
        step = step.set(ask=_panel(waiting[0].request, state.now))
        # Whoever writes goes on writing; the panel waits until they turn to it. The focus is that of now: closing the
        # ask before this one has just given it back to the prompt.
        if state.composer.is_empty and step.state.focus == "composer" and state.overlay is None:
            step = step.set(focus="ask")
    return step


def _panel(request: AskRequest, now: float) -> AskPanel:
    network = isinstance(request, PermissionRequest) and request.yes_has_network
    return AskPanel(request.id, appeared_at=now, network=network)


def _closed(step: FaceStep) -> FaceStep:
    state = step.state
    closed = step.view.asks.closed.get(state.ask.ask_id)
    step = step.set(ask=AskPanel(), focus="composer" if state.focus == "ask" else state.focus)
    if closed is None or (state.ask.is_sent and closed.outcome != "closed"):
        return step
    if closed.outcome in ("allowed", "denied") and not closed.by:
        return step  # its run was cancelled, or a rule decides now: that is said where it happened
    by = f" by {looks.called(closed.by, state.me)}" if closed.by else ""
    words = {
        "allowed": f"allowed{by}",
        "denied": f"denied{by}",
        "answered": f"answered{by}",
        "not_answered": "not answered: the agent goes on without",
        "closed": "no answer is needed any more",
    }
    return step.say(words[closed.outcome])


# ── keys ──


def key(step: FaceStep, intent: str, pressed: Key) -> FaceStep | None:
    """What a key does to the ask that has the keys; None: nothing, and it may be for somebody else."""
    ask = shown(step.state, step.view)
    if ask is None:
        return None
    if step.state.ask.words is not None:
        return _words(step, ask, intent, pressed)
    if ask.is_being_answered:
        return step if intent or pressed.text else None
    is_question = isinstance(ask.request, QuestionBatchRequest)
    if intent and pressed.text and (not is_question or intent == "question_refuse"):
        return step.set(ask=replace(step.state.ask, pending=PendingAnswer(intent, pressed.text, step.state.now)))
    if isinstance(ask.request, QuestionBatchRequest):
        return _question(step, ask.request, intent, pressed)
    return _confirmed(step, intent) if intent in ("confirm", "leave_ask") else None


def escape(step: FaceStep) -> FaceStep | None:
    """Back by one: out of the words, out of a rule that would be confirmed, to the prompt."""
    panel = step.state.ask
    if panel.words is not None:
        return step.set(ask=replace(panel, words=None))
    if panel.confirming:
        return step.set(ask=replace(panel, confirming=""))
    return step.set(focus="composer") if step.state.focus == "ask" else None


def behind_escape(state: FaceState, view: View) -> str:
    """What `escape` leads to while an ask has the focus, in the words that every row has for it."""
    panel, ask = state.ask, shown(state, view)
    if ask is None or not panel.is_half_given:
        return KEEP_TYPING
    if isinstance(ask.request, QuestionBatchRequest) and _item(panel, ask.request).type == "free_text":
        return "other keys"
    return "back"


def paste(step: FaceStep, text: str) -> FaceStep:
    """Into the words that are written; it is never an answer."""
    panel = step.state.ask
    if panel.words is None:
        return step
    return step.set(ask=replace(panel, words=panel.words.insert(one_line(text))))


def _permission(step: FaceStep, request: PermissionRequest, intent: str) -> FaceStep | None:
    panel = step.state.ask
    match intent:
        case "allow_once":
            return _allow(step, request, "allow")
        case "allow_session":
            return _allow(step, request, "allow_session")
        case "allow_always" if request.rules:
            return step.set(ask=replace(panel, confirming="allow_always"))
        case "allow_prefix" if request.prefix_rules:
            return step.set(ask=replace(panel, confirming="allow_prefix"))
        case "confirm":
            return _allow(step, request, panel.confirming) if panel.confirming else step
        case "with_network" if request.confined:
            return step.set(ask=replace(panel, network=not panel.network))
        case "without_sandbox" if request.confined:
            return step.set(ask=replace(panel, unsandboxed=not panel.unsandboxed))
        case "diff_shape" if request.params.get("diff"):
            return step.set(is_unified=not step.state.is_unified)
        case "deny":
            return _sent(step, AnswerPermission(request.id, "deny"))
        case "deny_with_words":
            return step.set(ask=replace(panel, words=Editor(), confirming=""))
        case "leave_ask":
            return step.set(focus="composer", ask=replace(panel, confirming=""))
    return None


def _allow(step: FaceStep, request: PermissionRequest, action: PermissionAction) -> FaceStep:
    """What was shown in part only cannot be allowed before all of it was seen."""
    panel = step.state.ask
    if not panel.is_seen and permission_rows(step.state, request)[1]:
        return step.say(f"see all of it first: {step.state.preferences.keys.shown('whole')}", "warning")
    answer = AnswerPermission(request.id, action, network=panel.network, unsandboxed=panel.unsandboxed)
    return _sent(step.set(ask=replace(panel, confirming="")), answer)


def _sent(step: FaceStep, answer: AnswerPermission | AnswerBatch | DecideApproval) -> FaceStep:
    """It is on its way; the ask goes when the server says so."""
    return step.set(ask=replace(step.state.ask, is_sent=True)).do(answer)


def _approval(step: FaceStep, request: ApprovalRequest, intent: str) -> FaceStep | None:
    """What it is must have been seen: all of it may be executed, or told to the model."""
    panel, state = step.state.ask, step.state
    if intent == "approve":
        if not panel.is_seen and approval_rows(request, panel_columns(state), state.height)[1]:
            return step.say(f"see all of it first: {state.preferences.keys.shown('whole')}", "warning")
        return _sent(step, DecideApproval(request.id, True))
    if intent == "refuse":
        return _sent(step, DecideApproval(request.id, False))
    return step.set(focus="composer") if intent == "leave_ask" else None


def _words(step: FaceStep, ask: OpenAsk, intent: str, pressed: Key) -> FaceStep | None:
    panel = step.state.ask
    assert panel.words is not None
    if pressed.name == "enter":
        return _words_done(step, ask, panel.words.text.strip())
    edited = keyed(panel.words, intent, pressed)
    return step.set(ask=replace(panel, words=edited)) if edited is not None else None


def _words_done(step: FaceStep, ask: OpenAsk, text: str) -> FaceStep:
    panel = step.state.ask
    if isinstance(ask.request, PermissionRequest):
        if not text:
            return step.say("say why, or esc: d denies without words")
        return _sent(step.set(ask=replace(panel, words=None)), AnswerPermission(ask.request.id, "deny", text))
    if isinstance(ask.request, ApprovalRequest):
        return step.set(ask=replace(panel, words=None))
    item = ask.request.questions[panel.question]
    if item.type == "free_text":
        if not text:
            return step.say("write an answer, or esc: x answers none")
        return _answer(step, ask.request, replace_answer(panel, item, fill_in_text=text), moves=True)
    step = step.set(ask=replace(panel, words=None))
    return _answer(step, ask.request, replace_answer(panel, item, notes=text), moves=False)


# ── questions ──


def answer_of(panel: AskPanel, item: QuestionItem) -> QuestionResponse:
    return next((a for a in panel.answers if a.request_id == item.id), QuestionResponse(request_id=item.id))


def replace_answer(panel: AskPanel, item: QuestionItem, **changes: object) -> AskPanel:
    """The panel with another answer to one question; the others stay as they are."""
    answer = structs.replace(answer_of(panel, item), **changes)
    others = tuple(a for a in panel.answers if a.request_id != item.id)
    return replace(panel, answers=(*others, answer))


def is_answered(item: QuestionItem, answer: QuestionResponse) -> bool:
    match item.type:
        case "yes_no":
            return answer.yes is not None
        case "free_text":
            return bool(answer.fill_in_text)
        case "single_choice" | "multi_choice":
            return bool(answer.selected_ids or answer.notes)
        case _:
            assert_never(item.type)


def _question(step: FaceStep, batch: QuestionBatchRequest, intent: str, pressed: Key) -> FaceStep | None:
    panel = step.state.ask
    item = batch.questions[min(panel.question, len(batch.questions) - 1)]
    match intent:
        case "choice_up" | "choice_down" if item.choices:
            choice = panel.choice + (1 if intent == "choice_down" else -1)
            return step.set(ask=replace(panel, choice=max(0, min(choice, len(item.choices) - 1))))
        case "choose":
            return _choose(step, batch, item, panel.choice)
        case "question_yes" | "question_no" if item.type == "yes_no":
            return _answer(step, batch, replace_answer(panel, item, yes=intent == "question_yes"), moves=False)
        case "question_words":
            given = answer_of(panel, item)
            text = given.fill_in_text or (given.notes if isinstance(given.notes, str) else "")
            return step.set(ask=replace(panel, words=Editor(text, len(text))))
        case "question_back":
            return step.set(ask=_at(panel, batch, max(panel.question - 1, 0)))
        case "question_next":
            return _next(step, batch, item)
        case "question_refuse":
            return _sent(step, AnswerBatch(batch.id, ()))
    if pressed.name.isdecimal() and 0 < int(pressed.name) <= len(item.choices):
        return _choose(step, batch, item, int(pressed.name) - 1)
    return None


def choose_by_mouse(step: FaceStep, number: int) -> FaceStep:
    """A click on a choice: it is chosen, or not, and nothing is sent."""
    ask = shown(step.state, step.view)
    if ask is None or ask.is_being_answered or not isinstance(ask.request, QuestionBatchRequest):
        return step
    batch = ask.request
    item = batch.questions[min(step.state.ask.question, len(batch.questions) - 1)]
    step = step.set(focus="ask", ask=replace(step.state.ask, has_keys=True))
    return _choose(step, batch, item, number) if number < len(item.choices) else step


def _choose(step: FaceStep, batch: QuestionBatchRequest, item: QuestionItem, number: int) -> FaceStep:
    panel = replace(step.state.ask, choice=number)
    if item.type == "free_text":
        return step.set(ask=replace(panel, words=Editor()))
    if not item.choices:
        return step
    chosen, given = item.choices[number].id, answer_of(panel, item).selected_ids
    if item.type == "single_choice":
        selected: tuple[str, ...] = (chosen,)
    else:
        selected = tuple(i for i in given if i != chosen) if chosen in given else (*given, chosen)
    return _answer(step, batch, replace_answer(panel, item, selected_ids=selected), moves=False)


def _answer(step: FaceStep, batch: QuestionBatchRequest, panel: AskPanel, *, moves: bool) -> FaceStep:
    is_last = panel.question + 1 >= len(batch.questions)
    at = panel.question + 1 if moves and not is_last else panel.question
    panel = replace(panel, words=None)
    return step.set(ask=_at(panel, batch, at) if at != panel.question else panel)


def _item(panel: AskPanel, batch: QuestionBatchRequest) -> QuestionItem:
    """The question that is shown."""
    return batch.questions[min(panel.question, len(batch.questions) - 1)]


def _at(panel: AskPanel, batch: QuestionBatchRequest, number: int) -> AskPanel:
    """The panel with another of the questions."""
    return _written_to(replace(panel, question=number, choice=0), batch)


def _written_to(panel: AskPanel, batch: QuestionBatchRequest) -> AskPanel:
    """Where words are the only answer, whoever types writes it: no letter is a key there, or begins a prompt."""
    item = _item(panel, batch)
    if item.type != "free_text" or panel.words is not None or is_answered(item, answer_of(panel, item)):
        return panel
    return replace(panel, words=Editor())


def _next(step: FaceStep, batch: QuestionBatchRequest, item: QuestionItem) -> FaceStep:
    """Enter goes on; on the last question it sends, once every question has an answer."""
    panel = step.state.ask
    if item.type == "free_text" and not is_answered(item, answer_of(panel, item)):
        return step.set(ask=replace(panel, words=Editor()))
    if not is_answered(item, answer_of(panel, item)):
        return step.say("choose first: space or a number; e answers in words, x answers none")
    if panel.question + 1 < len(batch.questions):
        return step.set(ask=_at(panel, batch, panel.question + 1))
    missing = [n for n, i in enumerate(batch.questions) if not is_answered(i, answer_of(panel, i))]
    if missing:
        return step.set(ask=_at(panel, batch, missing[0])).say("this one has no answer yet")
    return _sent(step, AnswerBatch(batch.id, tuple(answer_of(panel, i) for i in batch.questions)))
