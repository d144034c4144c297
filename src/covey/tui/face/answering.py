"""Asks: which one is shown, when it takes keys, and what they answer. Pure.

An ask never answers itself: no key counts that was part of a burst of typing when it appeared, Enter alone answers
nothing, and an ask goes when the server says so.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from covey.client.view.records import AskRequest, OpenAsk
from covey.client.view.view import View
from covey.lines.words import called
from covey.protocol.events import PermissionRequest, QuestionBatchRequest
from covey.protocol.extensions import ApprovalRequest
from covey.protocol.requests import PermissionAction
from covey.tui.face import looks, questioning
from covey.tui.face.approval_rows import extension
from covey.tui.face.editing import keyed, one_line
from covey.tui.face.editor import Editor
from covey.tui.face.effects import AllowEdits, AnswerPermission, DecideApproval
from covey.tui.face.permission_rows import subject
from covey.tui.face.state import ALONE_S, QUIET_AT_MOST_S, QUIET_S, AskPanel, FaceState, PendingAnswer, TextPage
from covey.tui.face.step import FaceStep
from covey.tui.inputs import Key

KEEP_TYPING = "keep typing"
"""What leaving an ask is called: the prompt below it has the keys again."""
ANSWERS = (
    *("allow_once", "allow_session", "allow_edits", "allow_always", "allow_prefix", "deny", "deny_with_words"),
    *("approve", "refuse"),
)
"""What may be pressed on the page with all of it, too."""


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
        panel = questioning.written_to(panel, ask.request)
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
    if not pressed.text or step.state.overlay is not None:
        return step
    composer = step.state.composer
    step = step.set(focus="composer", ask=replace(step.state.ask, has_keys=False))
    return step.compose(composer.with_editor(composer.editor.insert(pending.text)))


def _confirmed(step: FaceStep, intent: str) -> FaceStep:
    step = step.set(ask=replace(step.state.ask, pending=None))
    ask = shown(step.state, step.view)
    if ask is None or ask.is_being_answered:
        return step
    if isinstance(step.state.overlay, TextPage):
        step = step.set(overlay=None, focus="ask")  # the panel says what becomes of it
    request = ask.request
    match request:
        case PermissionRequest():
            return _permission(step, request, intent) or step
        case QuestionBatchRequest():
            return questioning.key(step, request, intent, Key("")) or step
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
    if closed.outcome != "closed" and not closed.by:
        return step  # its run was cancelled, or a rule decides now: that is said where it happened
    by = f" by {called(closed.by, state.me)}" if closed.by else ""
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
        return questioning.key(step, ask.request, intent, pressed)
    return _confirmed(step, intent) if intent in ("confirm", "leave_ask") else None


def page_key(step: FaceStep, page: TextPage, pressed: Key) -> FaceStep | None:
    """What a key that means nothing to the page answers, once the end of what is asked about was seen.

    Whoever types words there answers nothing: such a key has to stand alone, before and after.
    """
    state, ask = step.state, shown(step.state, step.view)
    if ask is None or ask.is_being_answered or ask.request.id != page.asks:
        return None
    intent = state.preferences.keys.find((ask.kind,), pressed.name)
    if intent not in ANSWERS or not pressed.text:
        return None
    if not state.ask.is_seen:
        return step.say(f"read it to its end first: {state.preferences.keys.shown('page_page_down')}")
    if state.now < state.last_input_at + QUIET_S:
        return step.say("that came too fast for an answer: press it again")
    return step.set(ask=replace(state.ask, pending=PendingAnswer(intent, pressed.text, state.now)))


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
    if isinstance(ask.request, QuestionBatchRequest) and questioning.shown_item(panel, ask.request).type == "free_text":
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
        case "allow_edits" if request.action == "write":
            return _seen(step, request, AllowEdits(request.id, request.session_id))
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
            return step.answer(AnswerPermission(request.id, "deny"))
        case "deny_with_words":
            return step.set(ask=replace(panel, words=Editor(), confirming=""))
        case "leave_ask":
            return step.set(focus="composer", ask=replace(panel, confirming=""))
    return None


def _allow(step: FaceStep, request: PermissionRequest, action: PermissionAction) -> FaceStep:
    panel = step.state.ask
    return _seen(step, request, AnswerPermission(request.id, action, "", panel.network, panel.unsandboxed))


def _seen(step: FaceStep, request: PermissionRequest, answer: AnswerPermission | AllowEdits) -> FaceStep:
    """What would be done and was not shown cannot be allowed before all of it was seen."""
    panel = step.state.ask
    if not panel.is_seen and subject(step.state, request).is_cut:
        return step.say(f"see all of it first: {step.state.preferences.keys.shown('whole')}", "warning")
    return step.set(ask=replace(panel, confirming="")).answer(answer)


def _approval(step: FaceStep, request: ApprovalRequest, intent: str) -> FaceStep | None:
    """What it is must have been seen: all of it may be executed, or told to the model."""
    panel, state = step.state.ask, step.state
    if intent == "approve":
        if not panel.is_seen and extension(state, request).is_cut:
            return step.say(f"see all of it first: {state.preferences.keys.shown('whole')}", "warning")
        return step.answer(DecideApproval(request.id, True))
    if intent == "refuse":
        return step.answer(DecideApproval(request.id, False))
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
        return step.set(ask=replace(panel, words=None)).answer(AnswerPermission(ask.request.id, "deny", text))
    if isinstance(ask.request, ApprovalRequest):
        return step.set(ask=replace(panel, words=None))
    return questioning.said(step, ask.request, text)


def choose_by_mouse(step: FaceStep, number: int) -> FaceStep:
    """A click on a choice: it is chosen, or not, and nothing is sent."""
    ask = shown(step.state, step.view)
    if ask is None or ask.is_being_answered or not isinstance(ask.request, QuestionBatchRequest):
        return step
    return questioning.choose(step.set(focus="ask", ask=replace(step.state.ask, has_keys=True)), ask.request, number)
