"""The queue: prompts that wait, chosen, moved, edited and dropped. Pure; the order itself is the server's."""

from __future__ import annotations

from covey.tui.face import looks
from covey.tui.face.composer import shown_text
from covey.tui.face.effects import DropQueued, DropUnsent, EditQueued
from covey.tui.face.step import FaceStep


def ids(step: FaceStep) -> list[str]:
    """Queued runs in their order, then what could not be sent."""
    unsent = [i for i, sent in step.view.outbox.prompts.items() if sent.prompt.session_id == step.view.current]
    return [run.run_id for run in looks.queue(step.view)] + unsent


def enter(step: FaceStep) -> FaceStep:
    found = ids(step)
    if not found:
        return step.say("nothing waits in this session")
    return step.set(focus="queue", queued=found[0])


def look(step: FaceStep) -> FaceStep:
    """What was chosen may be gone."""
    if step.state.focus != "queue":
        return step
    found = ids(step)
    if not found:
        return step.set(focus="composer", queued="")
    return step if step.state.queued in found else step.set(queued=found[0])


def key(step: FaceStep, intent: str) -> FaceStep | None:
    found, chosen = ids(step), step.state.queued
    if chosen not in found:
        return None
    at = found.index(chosen)
    match intent:
        case "queue_up" | "queue_down":
            return step.set(queued=found[max(0, min(at + (1 if intent == "queue_down" else -1), len(found) - 1))])
        case "queue_earlier" if at > 0:
            return _edit(step, before=found[at - 1])
        case "queue_later" if at + 1 < len(found):
            return _edit(step, after=found[at + 1])
        case "queue_now":
            return _edit(step, first=True)
        case "queue_park":
            run = next((run for run in looks.queue(step.view) if run.run_id == chosen), None)
            return _edit(step, park=not run.parked_by) if run else step
        case "queue_edit":
            return edit(step, chosen)
        case "queue_drop":
            return drop(step, chosen)
        case "leave":
            return step.set(focus="composer", queued="")
    return None


def _edit(step: FaceStep, **change: object) -> FaceStep:
    return step.do(EditQueued(step.view.current, step.state.queued, change))


def edit(step: FaceStep, run_id: str) -> FaceStep:
    """Park it, so that its turn does not come meanwhile; what was refused or not sent comes back as it is."""
    if sent := step.view.outbox.prompts.get(run_id):
        if not step.state.composer.is_empty:
            return step.say("there is a draft: send it or put it aside first")
        composer = step.state.composer.with_editor(shown_text(sent.prompt.prompt))
        return step.compose(composer).set(focus="composer").do(DropUnsent(run_id))
    if step.state.composer.editing:
        return step.say("one prompt at a time: send this one first, or leave it with esc")
    return step.do(EditQueued(step.view.current, run_id, {"park": True}, "edit"))


def take_back(step: FaceStep) -> FaceStep:
    """The last prompt that waits, to be edited."""
    queued = looks.queue(step.view)
    return edit(step, queued[-1].run_id) if queued else step.say("nothing waits in this session")


def drop(step: FaceStep, run_id: str) -> FaceStep:
    if run_id in step.view.outbox.prompts:
        return step.do(DropUnsent(run_id))
    return step.do(DropQueued(step.view.current, run_id))


def leave_edit(step: FaceStep) -> FaceStep:
    """Leave the prompt as it was, and let it go on."""
    composer = step.state.composer
    change = EditQueued(step.view.current, composer.editing, {"unpark": True})
    return step.compose(composer.edited()).do(change).say("left as it was; it waits again")
