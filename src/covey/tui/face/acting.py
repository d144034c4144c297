"""What holds wherever the user is: each intent of the key table, and each command of the palette, once. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from covey.protocol.messages import SessionMode
from covey.tui.face import lists, looks, queueing
from covey.tui.face.composer import HISTORY_SHOWN, draft_of
from covey.tui.face.editor import Editor
from covey.tui.face.effects import (
    ChangeSession,
    Do,
    Effect,
    ExportSession,
    FindText,
    GoToSession,
    LoadChanges,
    LoadList,
    LogIn,
    OpenEditor,
    ReadClipboard,
    SaveHistory,
    Scroll,
    Settle,
    Summarize,
)
from covey.tui.face.help import help_page
from covey.tui.face.state import ARMED_S, Armed, Picker, SearchBar
from covey.tui.face.step import FaceStep

Action = Callable[[FaceStep, str], FaceStep]


def act(step: FaceStep, intent: str, words: str = "") -> FaceStep | None:
    """Carry out an intent that holds everywhere; `words` came after its command. None: it is none of these."""
    if action := _ACTIONS.get(intent):
        return action(step, words)
    if intent in _SCROLLS:
        return step.do(Scroll(intent))
    if intent.startswith("session_"):
        return _session_number(step, int(intent.removeprefix("session_")))
    return None


_SCROLLS = {"page_up", "page_down", "to_end", "to_top", "details", "copy_answer"}


def _does(*effects: Effect) -> Action:
    return lambda step, words: step.do(*effects)


def _opens(make: Callable[[FaceStep], Picker]) -> Action:
    return lambda step, words: step.set(overlay=make(step))


def _new_session(step: FaceStep, words: str) -> FaceStep:
    if not step.view.current:
        return step.set(overlay=None, focus="composer").say("this is a new session: write the first prompt")
    return step.set(overlay=None, focus="composer").do(GoToSession(""))


def _sessions(step: FaceStep, words: str) -> FaceStep:
    step = step.set(overlay=lists.sessions(step.view, step.state.now))
    return step.do(LoadList("sessions"))


def _models(step: FaceStep, words: str) -> FaceStep:
    picker = Picker("models", "models, for this session", query=Editor(words, len(words)), is_loading=True)
    return step.set(overlay=picker).do(LoadList("models"))


def _modes(step: FaceStep, words: str) -> FaceStep:
    wanted = words.strip().replace(" ", "_")
    found = next((mode for mode in looks.MODES if mode == wanted), None)
    return set_mode(step, found) if found else step.set(overlay=lists.modes(step.view))


def set_mode(step: FaceStep, mode: SessionMode) -> FaceStep:
    if not step.view.current:
        return step.set(new_mode=mode)
    return step.do(ChangeSession(step.view.current, mode=mode))


def _next_mode(step: FaceStep, words: str) -> FaceStep:
    modes = looks.MODES
    current = looks.mode(step.view) if step.view.current else step.state.new_mode
    return set_mode(step, modes[(modes.index(current) + 1) % len(modes)])


def _timeline(step: FaceStep, words: str) -> FaceStep:
    if not looks.prompts(step.view):
        return step.say("there is nothing to go back to in this session yet")
    return step.set(overlay=lists.timeline(step.view))


def _compact(step: FaceStep, words: str) -> FaceStep:
    if not step.view.current:
        return step.say("there is nothing to summarise yet")
    return step.do(Summarize(step.view.current, words))


def _rename(step: FaceStep, words: str) -> FaceStep:
    if not step.view.current:
        return step.say("a new session gets its title from the first prompt")
    if words:
        return step.do(ChangeSession(step.view.current, title=words))
    picker = lists.sessions(step.view, step.state.now)
    ids = [item.id for item in picker.items]
    at = ids.index(step.view.current) if step.view.current in ids else 0
    title = looks.title(step.view)
    return step.set(overlay=replace(picker, selected=at, renaming=Editor(title, len(title))))


def _delete(step: FaceStep, words: str) -> FaceStep:
    if not step.view.current:
        return step.say("there is no session to delete")
    picker = lists.sessions(step.view, step.state.now)
    ids = [item.id for item in picker.items]
    at = ids.index(step.view.current) if step.view.current in ids else 0
    return step.set(overlay=replace(picker, selected=at, deleting=step.view.current))


def _archive(step: FaceStep, words: str) -> FaceStep:
    if not step.view.current:
        return step.say("there is no session to put aside")
    return step.do(ChangeSession(step.view.current, archived=True), GoToSession(""))


def _export(step: FaceStep, words: str) -> FaceStep:
    if not step.view.current:
        return step.say("there is nothing to export yet")
    return step.do(ExportSession(step.view.current, looks.title(step.view)))


def _jobs(step: FaceStep, words: str) -> FaceStep:
    return step.set(overlay=Picker("jobs", "jobs", is_loading=True)).do(LoadList("jobs"))


def _changes(step: FaceStep, words: str) -> FaceStep:
    if not step.view.current:
        return step.say("there is no session yet, and nothing has changed")
    return step.do(LoadChanges(step.view.current))


def _todos(step: FaceStep, words: str) -> FaceStep:
    if not looks.todos(step.view):
        return step.say("the agent has no list of things to do in this session")
    return step.set(shows_todos=not step.state.shows_todos)


def _search(step: FaceStep, words: str) -> FaceStep:
    known = step.state.search
    bar = replace(known, is_typing=True) if known else SearchBar()
    return step.set(search=bar, overlay=None, focus="transcript")


def _find_text(step: FaceStep, words: str) -> FaceStep:
    if not words.strip():
        return step.compose(step.state.composer.with_editor(Editor("/find ", 6))).set(focus="composer")
    return step.do(FindText(words.strip()))


def _history(step: FaceStep, words: str) -> FaceStep:
    if not step.state.history:
        return step.say("there are no earlier prompts yet")
    return step.set(overlay=lists.history(step.state, words))


def _theme(step: FaceStep, words: str) -> FaceStep:
    return step.do(Settle("theme", words.strip())) if words.strip() else step.set(overlay=lists.themes())


def _login(step: FaceStep, words: str) -> FaceStep:
    return step.do(LogIn(words.strip())) if words.strip() else step.set(overlay=lists.providers())


def _editor(step: FaceStep, words: str) -> FaceStep:
    return step.do(OpenEditor(step.state.composer.expanded()))


def _sidebar(step: FaceStep, words: str) -> FaceStep:
    return step.set(hides_sides=not step.state.hides_sides)


def _session_number(step: FaceStep, number: int) -> FaceStep:
    found = looks.listed(step.view)
    if number > len(found):
        return step.say(f"there is no session {number}")
    return step.set(overlay=None).do(GoToSession(found[number - 1][0].id))


def _quit(step: FaceStep, words: str) -> FaceStep:
    return step.do(Do("quit"))


def interrupt_or_quit(step: FaceStep) -> FaceStep:
    """Never loses a draft: it is put aside first, where ↑ finds it."""
    state = step.state
    if state.armed and state.armed.what == "quit" and state.now <= state.armed.until:
        return step.set(armed=None).do(Do("quit"))
    composer = state.composer
    if not composer.is_empty and not composer.editing:
        step = stash(step)
    elif state.overlay or state.search:
        return step.set(overlay=None, search=None)
    else:
        goes_on = " (what runs goes on)" if looks.is_busy(step.view) else ""
        step = step.say(f"{state.preferences.keys.shown('interrupt_or_quit')} again quits{goes_on}")
    return step.set(armed=Armed("quit", state.now + 2 * ARMED_S))


def stash(step: FaceStep) -> FaceStep:
    """Put the draft aside: it is the newest of the earlier prompts."""
    composer = step.state.composer
    text = composer.expanded()
    if not draft_of(composer).text.strip():
        return step.compose(composer.sent())
    return remember(step, text).compose(composer.sent()).say("draft put aside: ↑ brings it back")


def remember(step: FaceStep, text: str) -> FaceStep:
    """Keep a prompt in the history, once."""
    history = step.state.history
    if not text.strip() or (history and history[-1] == text):
        return step
    return step.set(history=(*history, text)[-HISTORY_SHOWN:]).do(SaveHistory(text))


_ACTIONS: dict[str, Action] = {
    "palette": _opens(lambda step: lists.palette(step.state)),
    "sessions": _sessions,
    "new_session": _new_session,
    "models": _models,
    "modes": _modes,
    "next_mode": _next_mode,
    "timeline": _timeline,
    "compact": _compact,
    "rename": _rename,
    "delete": _delete,
    "archive": _archive,
    "export": _export,
    "jobs": _jobs,
    "changes": _changes,
    "todos": _todos,
    "extensions": _does(LoadList("extensions")),
    "search": _search,
    "find": _search,
    "history": _history,
    "find_text": _find_text,
    "themes": _theme,
    "login": _login,
    "editor": _editor,
    "sidebar": _sidebar,
    "quit": _quit,
    "queue": lambda step, words: queueing.enter(step),
    "take_back": lambda step, words: queueing.take_back(step),
    "help": lambda step, words: step.set(overlay=help_page(step.state.preferences.keys)),
    "mouse": _does(Settle("mouse", "")),
    "redraw": _does(Do("redraw")),
    "suspend": _does(Do("suspend")),
    "attach": _does(ReadClipboard()),
}
