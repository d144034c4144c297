"""Lists and pages over the conversation: what keys do in them, and what choosing an item means. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from covey.tui.face import acting, commands, composing, lists, looks
from covey.tui.face.composer import Composer, shown_text
from covey.tui.face.editing import keyed, one_line
from covey.tui.face.editor import Editor
from covey.tui.face.effects import (
    ChangeSession,
    DeleteSession,
    Fork,
    GoToSession,
    KillJob,
    LoadList,
    LogIn,
    ReadConfigAgain,
    Settle,
    ShowJob,
    Undo,
    UseEmbedded,
)
from covey.tui.face.room import page_rows_left
from covey.tui.face.sizes import body_columns, page_columns
from covey.tui.face.state import Item, Picker, TextPage
from covey.tui.face.step import FaceStep
from covey.tui.inputs import Key


def picker_key(step: FaceStep, picker: Picker, intent: str, pressed: Key) -> FaceStep | None:
    if picker.renaming is not None:
        return _rename_key(step, picker, picker.renaming, intent, pressed)
    rows = max(step.state.height - 8, 3)
    moves = {"pick_up": -1, "pick_down": 1, "pick_page_up": -rows, "pick_page_down": rows}
    if intent in moves:
        return _move(step, picker, moves[intent])
    item = lists.chosen(picker)
    match intent:
        case "pick":
            return _chosen(step, picker, item) if item else step
        case "pick_other":
            return _other(step, picker, item) if item else step
        case "pick_delete":
            return _delete(step, picker, item) if item else step
        case "pick_rename" if picker.kind == "sessions" and item:
            return step.set(overlay=replace(picker, renaming=Editor(item.text, len(item.text))))
    composer = step.state.composer
    query = keyed(picker.query if picker.filters else composer.editor, intent, pressed)
    if query is None:
        return None
    if not picker.filters:
        return step.compose(composer.with_editor(query))
    return step.set(overlay=replace(picker, query=query, selected=0, deleting=""))


def paste(step: FaceStep, picker: Picker, text: str) -> FaceStep:
    if picker.renaming is not None:
        return step.set(overlay=replace(picker, renaming=picker.renaming.insert(one_line(text))))
    if not picker.filters:
        return composing.paste(step, text)
    return step.set(overlay=replace(picker, query=picker.query.insert(one_line(text)), selected=0))


def _move(step: FaceStep, picker: Picker, by: int) -> FaceStep:
    count = len(lists.fitting(picker))
    at = picker.selected + by
    at = at % count if abs(by) == 1 and count else max(0, min(at, count - 1))
    step = step.set(overlay=replace(picker, selected=at, deleting=""))
    is_near_end = picker.kind == "sessions" and at + 20 >= count and not picker.is_whole
    return step.do(LoadList("sessions")) if is_near_end and by > 0 else step


def _rename_key(step: FaceStep, picker: Picker, name: Editor, intent: str, pressed: Key) -> FaceStep | None:
    item = lists.chosen(picker)
    if intent == "pick" and item:
        step = step.set(overlay=replace(picker, renaming=None))
        return step.do(ChangeSession(item.id, title=name.text.strip())) if name.text.strip() else step
    edited = keyed(name, intent, pressed)
    return step.set(overlay=replace(picker, renaming=edited)) if edited is not None else None


def escape(step: FaceStep, picker: Picker) -> FaceStep:
    if picker.renaming is not None:
        return step.set(overlay=replace(picker, renaming=None))
    return step.set(overlay=None)


def _chosen(step: FaceStep, picker: Picker, item: Item) -> FaceStep:
    closed = step.set(overlay=None)
    match picker.kind:
        case "palette":
            command = commands.BY_NAME.get(item.id)
            if command is None:
                return closed.compose(step.state.composer.with_editor(shown_text(f"/{item.id} ")))
            return acting.act(closed, command.intent) or closed
        case "sessions":
            return closed.set(focus="composer").do(GoToSession(item.id))
        case "hits":
            return closed.set(looked_for=item.found_by).do(GoToSession(item.id.partition(" ")[2]))
        case "models":
            if not step.view.current:
                return closed.set(new_model=item.id).say(f"the new session will use {item.text}")
            return closed.do(ChangeSession(step.view.current, model=item.id))
        case "timeline":
            return closed.do(Undo(step.view.current, item.id))
        case "jobs":
            return step.do(ShowJob(item.id))
        case "history":
            return closed.compose(_kept(step.state.composer, step.state.history, item.id)).set(focus="composer")
        case "themes":
            return closed.do(Settle("theme", item.id))
        case "modes":
            mode = next(mode for mode in looks.MODES if mode == item.id)
            return acting.set_mode(closed, mode)
        case "providers":
            return closed.do(LogIn(item.id))
        case "start":
            return _start(closed, item.id)
        case _:
            assert_never(picker.kind)


def _kept(composer: Composer, history: tuple[str, ...], text: str) -> Composer:
    """An earlier prompt in the place of the draft, which ↓ brings back."""
    at = history[::-1].index(text) if text in history else None
    draft = composer.draft if composer.history_at is not None else composer.editor
    return replace(composer, history_at=at, draft=draft, editor=shown_text(text), completion=None)


def _start(step: FaceStep, choice: str) -> FaceStep:
    if choice == "login":
        return step.set(overlay=lists.providers())
    if choice == "embedded":
        return step.do(UseEmbedded())
    if choice == "local":
        return step.do(ReadConfigAgain())
    return step.say("/login gives Covey a key whenever you like")


def _other(step: FaceStep, picker: Picker, item: Item) -> FaceStep:
    """Fork before the prompt: everything up to the message before it is copied."""
    if picker.kind != "timeline":
        return step
    messages = list(step.view.conversation.messages)
    at = next((n for n, message in enumerate(messages) if message.id == item.found_by), 0)
    if at == 0:
        return step.say("nothing is before the first prompt: ctrl+n begins a new session")
    return step.set(overlay=None).do(Fork(step.view.current, messages[at - 1].id, messages[at].text))


def _delete(step: FaceStep, picker: Picker, item: Item) -> FaceStep:
    """Only by the same key twice on the same item."""
    if picker.kind not in ("sessions", "jobs"):
        return step
    if picker.deleting != item.id:
        return step.set(overlay=replace(picker, deleting=item.id))
    step = step.set(overlay=replace(picker, deleting=""))
    return step.do(KillJob(item.id) if picker.kind == "jobs" else DeleteSession(item.id))


# ── pages ──


def page_key(step: FaceStep, page: TextPage, intent: str) -> FaceStep | None:
    rows = page_rows_left(step.state)
    text = page.text(page_columns(body_columns(step.state)))
    last = max(len(text.lines) - rows, 0)
    tops = {
        "page_line_up": page.top - 1,
        "page_line_down": page.top + 1,
        "page_page_up": page.top - rows,
        "page_page_down": page.top + rows,
        "page_top": 0,
        "page_end": last,
        "page_next_file": _beyond(text.files, page.top),
        "page_previous_file": _before(text.files, page.top),
        "page_next_hunk": _beyond(text.hunks, page.top),
        "page_previous_hunk": _before(text.hunks, page.top),
    }
    leads_nowhere = {"file": not text.files, "hunk": not text.hunks}.get(intent.rpartition("_")[2], False)
    if intent in tops and not leads_nowhere:
        return step.set(overlay=replace(page, top=max(0, min(tops[intent], last))))
    match intent:
        case "page_close":
            return step.set(overlay=None)
        case "page_confirm" if page.confirms == "undo":
            return step.set(overlay=None).do(Undo(step.view.current, page.subject, really=True))
        case "page_confirm" if page.confirms == "kill_job":
            return step.set(overlay=None).do(KillJob(page.subject))
    return None


def is_at_end(step: FaceStep, page: TextPage) -> bool:
    """The last row of the page is in sight."""
    lines = page.text(page_columns(body_columns(step.state))).lines
    return page.top + page_rows_left(step.state) >= len(lines)


def scroll_page(step: FaceStep, page: TextPage, by: int) -> FaceStep:
    lines = page.text(page_columns(body_columns(step.state))).lines
    last = max(len(lines) - page_rows_left(step.state), 0)
    return step.set(overlay=replace(page, top=max(0, min(page.top + by, last))))


def _beyond(rows: tuple[int, ...], top: int) -> int:
    return next((row for row in rows if row > top), top)


def _before(rows: tuple[int, ...], top: int) -> int:
    return next((row for row in reversed(rows) if row < top), 0)
