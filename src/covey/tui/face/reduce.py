"""The face in one function: a state, what came, and when → the next state, and what is to be done about it. Pure.

It reads the view and changes nothing in it. Every key goes one way: the key table says what it means where the user is,
and whoever has the keys carries that out.
"""

from __future__ import annotations

from dataclasses import replace

from covey.client.view.view import View
from covey.tui.face import acting, answering, composing, learning, looks, picking, pointing, queueing, searching
from covey.tui.face.editing import keyed, one_line
from covey.tui.face.effects import Cancel, Copy, Effect, Scroll, Search
from covey.tui.face.facts import FaceInput, Pointed
from covey.tui.face.keys import Context
from covey.tui.face.permission_page import page_hint, whole_page
from covey.tui.face.state import ARMED_S, Armed, FaceState, Picker, SearchBar, TextPage
from covey.tui.face.step import FaceStep
from covey.tui.inputs import FocusChange, Key, Mouse, Paste, Resize


def reduce(state: FaceState, view: View, fed: FaceInput, now: float) -> tuple[FaceState, tuple[Effect, ...]]:
    step = answering.settle(answering.hold_keys(FaceStep(replace(state, now=now), view)))
    match fed:
        case Key():
            was_pending = step.state.ask.pending
            step = answering.next_key(step, fed)
            if not (was_pending and fed.name == "enter"):
                step = _key(step, fed)
            step = step.set(last_input_at=now)
        case Paste(text):
            step = _paste(step, text).set(last_input_at=now)
        case Mouse():
            step = _mouse(step, fed)
        case Pointed():
            step = pointing.point(step, fed)
        case FocusChange(is_focused):
            step = step.set(is_focused=is_focused)
        case Resize(width, height):
            step = step.set(width=width, height=height)
        case _:
            step = learning.learn(step, fed)
    step = _read(step)
    if step.state.toast and now >= step.state.toast.until:
        step = step.set(toast=None)
    if step.state.armed and now >= step.state.armed.until:
        step = step.set(armed=None)
    return step.state, step.effects


def _read(step: FaceStep) -> FaceStep:
    """Whoever has seen the end of what is asked about may answer it."""
    page, panel, ask = step.state.overlay, step.state.ask, answering.shown(step.state, step.view)
    if not isinstance(page, TextPage) or panel.is_seen or ask is None or ask.request.id != page.asks:
        return step
    if not picking.is_at_end(step, page):
        return step
    step = step.set(ask=replace(panel, is_seen=True))
    return step.set(overlay=replace(page, hint=page_hint(ask.request, step.state)))


def contexts(state: FaceState, view: View, now: float) -> tuple[Context, ...]:
    """Where the user is: whose keys count, the nearest first."""
    if isinstance(state.overlay, Picker):
        return "picker", "editing", "everywhere"
    if isinstance(state.overlay, TextPage):
        return "page", "everywhere"
    if state.search and state.search.is_typing:
        return "editing", "everywhere"
    if answering.takes_keys(state, view, now):
        if state.ask.words is not None:
            return "editing", "everywhere"
        ask = answering.shown(state, view)
        return ask.kind if ask else "permission", "everywhere"
    if state.focus == "queue":
        return "queue", "everywhere"
    if state.focus == "transcript":
        return "transcript", "everywhere"
    completion = state.composer.completion
    if completion and completion.items:
        return "completion", "composer", "editing", "everywhere"
    return "composer", "editing", "everywhere"


def _key(step: FaceStep, key: Key) -> FaceStep:
    state = step.state
    where = contexts(state, step.view, state.now)
    intent = state.preferences.keys.find(where, key.name)
    if intent == "escape":
        return _escape(step)
    step = step.set(armed=state.armed if intent == "interrupt_or_quit" else None)
    if intent == "interrupt_or_quit":
        return _interrupt(step)
    if (found := _of_focus(step, where[0], intent, key)) is not None:
        return found
    return acting.act(step, intent) or step


def _of_focus(step: FaceStep, where: Context, intent: str, key: Key) -> FaceStep | None:
    """What the key does to whoever has the keys; None: it is not for them."""
    state = step.state
    if isinstance(state.overlay, Picker):
        return picking.picker_key(step, state.overlay, intent, key)
    if isinstance(state.overlay, TextPage):
        page = state.overlay
        return picking.page_key(step, page, intent) or answering.page_key(step, page, key)
    if state.search and state.search.is_typing:
        return _search_key(step, state.search, intent, key)
    if answering.takes_keys(state, step.view, state.now):
        if intent == "whole" and state.ask.words is None:
            ask = answering.shown(state, step.view)
            return step.set(overlay=whole_page(ask.request, state)) if ask else step
        found = answering.key(step, intent, key)
        if found is not None or intent or not key.text or state.ask.words is not None:
            return found
        # A letter that answers nothing begins a prompt: none is lost.
        return composing.key(step.set(focus="composer"), "", key)
    if where == "queue":
        return queueing.key(step, intent)
    if where == "transcript":
        return _transcript_key(step, intent, key)
    if state.focus == "ask":  # it appeared while somebody was typing: they go on
        step = step.set(focus="composer")
    return composing.key(step, intent, key)


def _transcript_key(step: FaceStep, intent: str, key: Key) -> FaceStep | None:
    match intent:
        case "leave":
            return step.set(focus="ask" if step.state.ask.ask_id and key.name == "tab" else "composer")
        case "find_next" | "find_previous" if step.state.search:
            return searching.go(step, 1 if intent == "find_next" else -1)
        case "find" | "":
            return None
    return step.do(Scroll(intent)) if step.state.preferences.keys.find(("transcript",), key.name) else None


def _search_key(step: FaceStep, bar: SearchBar, intent: str, key: Key) -> FaceStep | None:
    if key.name in ("enter", "down", "up"):
        # Enter goes to the text at the hit that is shown; it does not go on to another.
        step = step.set(search=replace(bar, is_typing=key.name != "enter"))
        return searching.go(step, {"down": 1, "up": -1}.get(key.name, 0))
    query = keyed(bar.query, intent, key)
    if query is None:
        return None
    return searching.typed(step, replace(bar, query=query))


def _escape(step: FaceStep) -> FaceStep:
    """Leaves whatever is open. Twice: cancels what runs, from everywhere; if nothing does, goes back in time.

    Taking back half an answer is no first time: whoever then leaves the panel as well would cancel the run.
    """
    state = step.state
    is_second = state.armed is not None and state.now <= state.armed.until
    if is_second and state.armed and state.armed.what == "cancel":
        return step.set(armed=None).do(Cancel(step.view.current))
    if is_second and state.armed and state.armed.what == "timeline":
        return acting.act(step.set(armed=None), "timeline") or step
    if state.focus == "ask" and state.ask.is_half_given:
        return answering.escape(step) or step
    left = _leave(step)
    if looks.is_busy(step.view):
        return (left or step).set(armed=Armed("cancel", state.now + ARMED_S))
    if left is not None:
        return left
    if state.composer.is_empty and looks.prompts(step.view):
        return step.set(armed=Armed("timeline", state.now + ARMED_S))
    return step.say("nothing runs here") if state.composer.is_empty else step


def _leave(step: FaceStep) -> FaceStep | None:
    """Close one thing that is open; None: nothing is."""
    state = step.state
    if isinstance(state.overlay, Picker):
        return picking.escape(step, state.overlay)
    if isinstance(state.overlay, TextPage):
        return step.set(overlay=None)
    if state.search:
        return step.set(search=None, focus="composer").do(Search(""))
    if state.composer.completion:
        return step.compose(state.composer.closed())
    if state.focus == "ask" or state.ask.words is not None:
        return answering.escape(step)
    if state.composer.editing:
        return queueing.leave_edit(step)
    if state.composer.editor.selection:
        return step.compose(state.composer.with_editor(state.composer.editor.moved(state.composer.editor.caret)))
    if state.focus != "composer":
        return step.set(focus="composer", queued="").do(Scroll("unselect"))
    return None


def _interrupt(step: FaceStep) -> FaceStep:
    """What is selected is copied; the shell knows what of the conversation is, and says if nothing was."""
    editor = step.state.composer.editor
    if editor.selection and step.state.focus == "composer" and step.state.overlay is None:
        return step.do(Copy(editor.selected, "the selection"))
    return acting.interrupt_or_quit(step)


def _paste(step: FaceStep, text: str) -> FaceStep:
    state = step.state
    if isinstance(state.overlay, Picker):
        return picking.paste(step, state.overlay, text)
    if isinstance(state.overlay, TextPage):
        return step
    if state.search and state.search.is_typing:
        query = state.search.query.insert(one_line(text))
        return searching.typed(step, replace(state.search, query=query))
    if state.ask.words is not None and state.focus == "ask":
        return answering.paste(step, text)
    return composing.paste(step, text)


def _mouse(step: FaceStep, mouse: Mouse) -> FaceStep:
    """The wheel moves what is on top; clicks are told apart by where things are, which the layout knows."""
    if mouse.action not in ("wheel_up", "wheel_down"):
        return step
    down = mouse.action == "wheel_down"
    overlay = step.state.overlay
    if isinstance(overlay, Picker):
        return picking.picker_key(step, overlay, "pick_down" if down else "pick_up", Key("")) or step
    if isinstance(overlay, TextPage):
        return picking.scroll_page(step, overlay, 3 if down else -3)
    return step.do(Scroll(mouse.action))
