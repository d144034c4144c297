"""What the face learns from its shell: answers to what it asked for, and that the view has changed. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from covey.lines.plain_text import one_line
from covey.lines.widths import cut
from covey.lines.words import called, counted
from covey.protocol.requests import UndoReceipt
from covey.protocol.runs import RunComplete
from covey.tui.face import acting, answering, lists, queueing, searching
from covey.tui.face.composer import Composer, Draft, draft_of, from_draft, shown_text
from covey.tui.face.effects import Notify, SaveDraft
from covey.tui.face.facts import (
    BackLoaded,
    CancelDone,
    ChangesLoaded,
    CommandsLoaded,
    DraftFound,
    Edited,
    EditTooLate,
    ExtensionsLoaded,
    Fact,
    FileRead,
    FilesFound,
    FoundFurtherUp,
    HistoryLoaded,
    JobLoaded,
    JobsLoaded,
    Looked,
    ModelsLoaded,
    QueuedChanged,
    RunEnded,
    Said,
    SearchFound,
    SessionsPaged,
    TextFound,
    Undone,
    UndoPreviewed,
    Unsendable,
)
from covey.tui.face.pages import changes_page, extensions_page, job_page, undo_page
from covey.tui.face.state import Item, Picker
from covey.tui.face.step import FaceStep

ASKS = {"permission": "asks for a permission", "question": "has a question", "approval": "wants to use an extension"}

DROPPED_COLUMNS = 40
"""Of a prompt that somebody dropped: enough to know it by."""


def learn(step: FaceStep, fact: Fact) -> FaceStep:
    match fact:
        case Looked():
            return _looked(step)
        case Said(text, kind):
            return step.say(text, kind)
        case RunEnded(terminal):
            return _run_ended(step, terminal)
        case CancelDone(covered):
            return _cancelled(step, covered)
        case FilesFound() | FileRead() | Edited() | DraftFound() | QueuedChanged() | EditTooLate() | Unsendable():
            return _composed(step, fact)
        case (
            ModelsLoaded()
            | JobsLoaded()
            | ExtensionsLoaded()
            | TextFound()
            | ChangesLoaded()
            | JobLoaded()
            | SessionsPaged()
            | UndoPreviewed()
            | Undone()
        ):
            return _listed(step, fact)
        case CommandsLoaded(commands):
            return step.set(commands=commands)
        case HistoryLoaded(prompts):
            return step.set(history=prompts)
        case SearchFound(number, total):
            return searching.found(step, number, total)
        case FoundFurtherUp() | BackLoaded():
            return searching.learn(step, fact)
        case _:
            assert_never(fact)


def _looked(step: FaceStep) -> FaceStep:
    step = _follow_session(step)
    step = _announce_asks(step)
    step = searching.arrive(queueing.look(answering.look(step)))
    overlay = step.state.overlay
    if isinstance(overlay, Picker) and overlay.kind == "sessions":
        step = step.set(overlay=lists.refreshed(overlay, step.view, step.state.now))
    return step


def _follow_session(step: FaceStep) -> FaceStep:
    """The view shows another session: so does the composer. What was written before a new one existed goes along."""
    state, current = step.state, step.view.current
    if state.session_id == current:
        return step
    composers = dict(state.composers)
    if state.unsent and not state.session_id and not state.composer.is_empty:
        composers[current] = composers.pop("")
        step = step.do(SaveDraft("", Draft("", {})), SaveDraft(current, draft_of(composers[current])))
    was_unsent = bool(state.unsent) and not state.session_id
    return step.set(
        session_id=current,
        composers=composers,
        unsent="" if was_unsent or current else state.unsent,
        focus="composer",
        ask=replace(state.ask, ask_id=""),
        queued="",
        search=None,
        shows_todos=False,
    )


def _announce_asks(step: FaceStep) -> FaceStep:
    """Each new ask once: to whoever does not look at this window, or at its session."""
    state, view = step.state, step.view
    new = [ask for ask_id, ask in view.asks.open.items() if ask_id not in state.seen_asks]
    if not new and len(state.seen_asks) == len(view.asks.open):
        return step
    step = step.set(seen_asks=tuple(view.asks.open))
    if not new:
        return step
    what = ASKS[new[-1].kind]
    found = view.sessions.get(new[-1].session_id)
    title = found.session.title if found and found.session else ""
    if not state.is_focused and state.preferences.notifies:
        return step.do(Notify(f"Covey {what}", one_line(title)))
    if new[-1].session_id not in (view.current, ""):
        return step.say(f"{one_line(title) or 'another session'} {what}: {state.preferences.keys.shown('sessions')}")
    return step


def _run_ended(step: FaceStep, terminal: RunComplete) -> FaceStep:
    found = step.view.sessions.get(terminal.session_id)
    known = found.session if found else None
    is_work_for_another = known is not None and known.parent_session_id
    if terminal.folded_into or is_work_for_another:
        return step
    if dropped := _dropped(step, terminal):
        return step.say(dropped)
    title = one_line(known.title) if known else ""
    words = {"completed": "is done", "failed": "failed", "cancelled": "was cancelled", "interrupted": "was cut off"}
    if not step.state.is_focused and step.state.preferences.notifies:
        return step.do(
            Notify(f"Covey: {title or 'a session'} {words[terminal.outcome]}", one_line(terminal.text or ""))
        )
    if terminal.session_id != step.view.current:
        return step.say(f"{title or 'another session'} {words[terminal.outcome]}")
    return step


def _dropped(step: FaceStep, terminal: RunComplete) -> str:
    """Who took which prompt out of the queue of this session; '': nobody did. Nothing else is left of it."""
    found = step.view.find_run(terminal.run_id) if terminal.cancelled else None
    if found is None or found.run.cancelled_by not in ("queue_remove", "queue_clear"):
        return ""
    by = called(found.run.cancelled_by_client, step.state.me) or "somebody"
    return f"{by} dropped “{cut(one_line(found.run.prompt), DROPPED_COLUMNS)}” from the queue"


def _cancelled(step: FaceStep, covered: int | None) -> FaceStep:
    if covered is None:
        return step.say("the cancel did not reach the server; try again", "error")
    if not covered:
        return step.say("there was nothing to cancel")
    return step.say(f"cancelled {counted(covered, 'run')}")


# ── the composer ──

Composed = FilesFound | FileRead | Edited | DraftFound | QueuedChanged | EditTooLate | Unsendable


def _composed(step: FaceStep, fact: Composed) -> FaceStep:
    composer = step.state.composer
    match fact:
        case FilesFound(query, files):
            found = composer.completion
            if found is None or found.kind != "file" or found.query != query:
                return step
            return step.compose(replace(composer, completion=replace(found, items=files, selected=0)))
        case FileRead(token, as_typed):
            if token is not None:
                return step.compose(composer.add_token(token))
            return step.compose(composer.pasted(as_typed)) if as_typed else step
        case Edited(text):
            return step.compose(composer.with_editor(composer.editor.changed(text, len(text))))
        case DraftFound(session_id, text, tokens):
            return _draft_found(step, session_id, Draft(text, dict(tokens)))
        case QueuedChanged(run_id, then, text):
            if then == "edit":
                return step.compose(composer.edit_queued(run_id, text)).set(focus="composer", queued="")
            is_this = then == "edited" and composer.editing == run_id
            return step.compose(composer.edited()).say("changed; it waits again") if is_this else step
        case EditTooLate(run_id, why):
            return _too_late(step, run_id, why)
        case Unsendable(text, why, new_model, new_mode):
            step = step.set(unsent="", new_model=new_model, new_mode=new_mode)
            if composer.is_empty:
                step = step.compose(composer.with_editor(shown_text(text)))
            return step.say(why, "error")
        case _:
            assert_never(fact)


def _draft_found(step: FaceStep, session_id: str, draft: Draft) -> FaceStep:
    """What was kept on disk, unless something was written already."""
    known = step.state.composers.get(session_id)
    if known is not None and not known.is_empty:
        return step
    composers = {**step.state.composers, session_id: from_draft(draft)}
    return step.set(composers=composers).do(SaveDraft(session_id, draft))


def _too_late(step: FaceStep, run_id: str, why: str) -> FaceStep:
    """What was written is not lost: it is the draft now, or put aside beside one."""
    composer = step.state.composer
    if composer.editing != run_id:
        return step.say(f"too late: {why}", "warning")
    text, before = composer.expanded(), composer.edited()
    if before.is_empty:
        kept: Composer = before.with_editor(shown_text(text))
        return step.compose(kept).say("too late: it has begun. Your text is a draft now", "warning")
    step = acting.remember(step, text).compose(before)
    return step.say("too late: it has begun. Your text is put aside: ↑ finds it", "warning")


# ── lists and pages ──

Listed = (
    TextFound
    | ModelsLoaded
    | JobsLoaded
    | ExtensionsLoaded
    | ChangesLoaded
    | JobLoaded
    | SessionsPaged
    | UndoPreviewed
    | Undone
)


def _listed(step: FaceStep, fact: Listed) -> FaceStep:
    overlay, now = step.state.overlay, step.state.now
    match fact:
        case ModelsLoaded(providers):
            if isinstance(overlay, Picker) and overlay.kind == "models":
                found = lists.models(step.view, providers)
                at = next((n for n, item in enumerate(found.items) if item.is_current), 0)
                selected = 0 if overlay.query.text else at
                return step.set(overlay=replace(found, query=overlay.query, selected=selected))
        case JobsLoaded(jobs):
            if isinstance(overlay, Picker) and overlay.kind == "jobs":
                return step.set(overlay=replace(lists.jobs(jobs, now), query=overlay.query))
        case ExtensionsLoaded(extensions):
            return step.set(overlay=extensions_page(extensions))
        case ChangesLoaded(changes):
            return step.set(overlay=changes_page(changes, _root(step)))
        case TextFound(words, hits):
            if not hits:
                return step.say(f"“{words}” was said in no session")
            return step.set(overlay=lists.hits(words, hits, now))
        case JobLoaded(job):
            return step.set(overlay=job_page(job))
        case SessionsPaged(sessions):
            if isinstance(overlay, Picker) and overlay.kind == "sessions":
                known = {item.id for item in overlay.items}
                older = [
                    Item(s.id, one_line(s.title) or "untitled", lists.ago(now - s.updated_at), "older", s.id)
                    for s in sessions
                    if s.id not in known
                ]
                return step.set(overlay=replace(overlay, items=(*overlay.items, *older), is_whole=not sessions))
        case UndoPreviewed(run_id, receipt):
            return step.set(overlay=undo_page(run_id, receipt, _root(step)))
        case Undone(receipt):
            return _undone(step, receipt)
        case _:
            assert_never(fact)
    return step


def _root(step: FaceStep) -> str:
    return step.view.workspace.path if step.view.workspace else ""


def _undone(step: FaceStep, receipt: UndoReceipt) -> FaceStep:
    """The first prompt that was taken back is offered again."""
    said = f"took back {counted(len(receipt.undone), 'turn')}, {counted(len(receipt.restored), 'file')} restored"
    if receipt.undone and step.state.composer.is_empty:
        step = step.compose(step.state.composer.with_editor(shown_text(receipt.undone[0].prompt)))
    return step.say(said)
