"""What keys do to the prompt that somebody writes, and where it goes when it is sent. Pure."""

from __future__ import annotations

import re
from dataclasses import replace

from covey.protocol.runs import Mode
from covey.tui.face import acting, commands, looks
from covey.tui.face.composer import Completion, Composer, Suggestion
from covey.tui.face.editing import edited
from covey.tui.face.editor import Editor, typed
from covey.tui.face.effects import Do, EditQueued, FindFiles, Post, ReadFile, RunOwnCommand, Scroll
from covey.tui.face.help import help_page
from covey.tui.face.sizes import body_columns, text_columns
from covey.tui.face.step import FaceStep
from covey.tui.inputs import Key

_IMAGE = re.compile(r"^(?:file://)?[~/][^\n]*\.(?:png|jpe?g|gif|webp|pdf)$", re.IGNORECASE)
"""A path that a terminal pastes when a picture is dropped onto it."""


def key(step: FaceStep, intent: str, pressed: Key) -> FaceStep | None:
    """What a key does to the composer; None: nothing."""
    composer = step.state.composer
    if (found := _special(step, intent, pressed)) is not None:
        return found
    if (changed := edited(composer.editor, intent)) is not None:
        return _with_editor(step, changed)
    if intent or not pressed.text:
        return None
    if pressed.text == "?" and composer.is_empty:
        return step.set(overlay=help_page(step.state.preferences.keys))
    return _with_editor(step, composer.editor.insert(typed(pressed.text)))


def _special(step: FaceStep, intent: str, pressed: Key) -> FaceStep | None:
    composer = step.state.composer
    match intent:
        case "suggest_previous" | "suggest_next":
            return _suggest(step, 1 if intent == "suggest_next" else -1)
        case "suggest_take":
            sends = step.state.preferences.keys.find(("composer",), pressed.name) == "send"
            return send(step, _busy_mode(step, is_other=False)) if sends and _is_typed_out(composer) else _take(step)
        case "send":
            return send(step, _busy_mode(step, is_other=False))
        case "send_other":
            return _tab(step)
        case "send_now":
            return send(step, "interrupt" if looks.is_busy(step.view) else None)
        case "newline":
            return _with_editor(step, composer.editor.insert("\n"))
        case "previous" | "next" | "select_up" | "select_down":
            return _vertical(step, intent)
        case "quit_if_empty":
            if composer.is_empty:
                return step.do(Do("quit"))
            return _with_editor(step, composer.editor.delete(composer.editor.right_of()))
        case "history":
            return acting.act(step, "history", "" if "\n" in composer.text else composer.text)
        case "details" if composer.token_at_caret():
            return step.compose(composer.opened())
    return None


def _with_editor(step: FaceStep, editor: Editor) -> FaceStep:
    composer = step.state.composer
    return suggest(step.compose(composer.with_editor(editor)))


def _vertical(step: FaceStep, intent: str) -> FaceStep:
    composer = step.state.composer
    move = -1 if intent in ("previous", "select_up") else 1
    selecting = intent.startswith("select")
    columns = text_columns(body_columns(step.state))
    moved = composer.editor.vertical(move, columns, composer.label, selecting=selecting)
    if moved is not None:
        return step.compose(composer.with_editor(moved))
    if selecting:
        return step
    if intent == "previous":
        return step.compose(composer.back(step.state.history))
    if composer.history_at is None:
        return step.compose(composer.with_editor(composer.editor.moved(len(composer.text))))
    return step.compose(composer.forward(step.state.history))


# ── sending ──


def _busy_mode(step: FaceStep, *, is_other: bool) -> Mode | None:
    """How a prompt goes to a session that works: into its turn, or after it."""
    if not looks.is_busy(step.view):
        return None
    steers = (step.state.preferences.busy == "steer") != is_other
    return "fold" if steers else "own_turn"


def _tab(step: FaceStep) -> FaceStep:
    """Queue while it works; else go to the next field: an ask, or the conversation."""
    if step.state.ask.ask_id:
        return step.set(focus="ask", last_input_at=0.0)
    if looks.is_busy(step.view) and not step.state.composer.is_empty:
        return send(step, _busy_mode(step, is_other=True))
    return step.set(focus="transcript")


def send(step: FaceStep, mode: Mode | None) -> FaceStep:
    composer = step.state.composer
    editor = composer.editor
    if editor.caret == len(editor.text) and editor.text.endswith("\\") and not composer.is_shell:
        return step.compose(composer.with_editor(editor.delete(editor.caret - 1).insert("\n")))
    text = composer.expanded()
    if not text.strip() and not composer.files:
        return step
    if composer.editing:
        change = {"prompt": text, "unpark": True}
        return step.do(EditQueued(step.view.current, composer.editing, change, "edited"))
    if composer.is_shell:
        return _shell(step, text)
    if text.startswith("/") and (found := _command(step, text)) is not None:
        return found
    step = acting.remember(step, text).compose(composer.sent())
    post = Post(text, mode, tuple(composer.files))
    if not step.view.current:
        state = step.state
        post = Post(text, mode, tuple(composer.files), state.new_model, state.new_mode)
        step = step.set(unsent=text, new_model="", new_mode="ask")
    return step.do(post, Scroll("to_end"))


def _shell(step: FaceStep, text: str) -> FaceStep:
    is_other = text.startswith("!!")
    command = text.lstrip("!").strip()
    if not command:
        return step.say("write a command after the !")
    if not step.view.current:
        return step.say("a command of your own belongs to a session: write the first prompt first")
    share = step.state.preferences.shares_shell != is_other
    return acting.remember(step, text).compose(step.state.composer.sent()).do(RunOwnCommand(command, share))


def _command(step: FaceStep, text: str) -> FaceStep | None:
    """A command of ours; None: it is one of the workspace, which the server knows."""
    name, _, words = text[1:].partition(" ")
    command = commands.BY_NAME.get(name)
    if command is None:
        if any(known.text == name for known in step.state.commands) or "/" in name:
            return None
        return step.say(f"there is no command /{name}; put a blank before the / to send it as text", "warning")
    step = acting.remember(step, text).compose(step.state.composer.sent())
    return acting.act(step, command.intent, words.strip())


# ── suggestions ──


def suggest(step: FaceStep) -> FaceStep:
    """Suggestions for the word at the caret, or none."""
    composer = step.state.composer
    word = composer.word()
    if word is None:
        return _set_completion(step, composer, None)
    kind, start, query = word
    if kind == "command":
        found = Completion("command", start, query, commands.suggestions(step.state, query))
        return _set_completion(step, composer, found if found.items else None)
    known = composer.completion.items if composer.completion and composer.completion.kind == "file" else ()
    return _set_completion(step, composer, Completion("file", start, query, known)).do(FindFiles(query))


def _set_completion(step: FaceStep, composer: Composer, completion: Completion | None) -> FaceStep:
    return step if completion == composer.completion else step.compose(replace(composer, completion=completion))


def _suggest(step: FaceStep, move: int) -> FaceStep:
    composer = step.state.composer
    found = composer.completion
    if found is None or not found.items:
        return step
    return step.compose(
        replace(composer, completion=replace(found, selected=(found.selected + move) % len(found.items)))
    )


def _is_typed_out(composer: Composer) -> bool:
    """What would be taken stands there already: there is nothing to take but the time of whoever typed it."""
    found = composer.completion
    return found is not None and bool(found.items) and _chosen(found).text == found.query


def _chosen(found: Completion) -> Suggestion:
    return found.items[min(found.selected, len(found.items) - 1)]


def take_suggestion(step: FaceStep, number: int) -> FaceStep:
    """By the mouse."""
    composer = step.state.composer
    if composer.completion is None or number >= len(composer.completion.items):
        return step
    return _take(step.compose(replace(composer, completion=replace(composer.completion, selected=number))))


def _take(step: FaceStep) -> FaceStep:
    composer = step.state.composer
    found = composer.completion
    if found is None or not found.items:
        return step.compose(composer.closed())
    suggestion = _chosen(found)
    taken = composer.taken(suggestion)
    step = step.compose(taken)
    command = commands.BY_NAME.get(suggestion.text) if found.kind == "command" else None
    return send(step, None) if command and not command.takes else step


# ── pastes ──


def paste(step: FaceStep, text: str) -> FaceStep:
    """Text that came at once: it is put in, and nothing of it is a key."""
    stripped = text.strip().strip("'\"").replace("\\ ", " ")
    if _IMAGE.match(stripped):
        return step.do(ReadFile(stripped.removeprefix("file://"), text))
    composer = step.state.composer.pasted(text)
    return suggest(step.compose(composer)).set(focus="composer")
