"""The mouse on what is docked around the conversation: what stands where, and what a click on it means. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from covey.client.view.view import View
from covey.tui.face import answering, composing, picking
from covey.tui.face.ask_lines import choice_at
from covey.tui.face.effects import GoToSession
from covey.tui.face.facts import Pointed
from covey.tui.face.layout import Regions
from covey.tui.face.list_lines import item_at, picker_height, suggestion_at
from covey.tui.face.panel_lines import queued_at, sessions_shown
from covey.tui.face.sizes import foot_rows, head_rows, left_columns, right_columns
from covey.tui.face.state import FaceState, Picker
from covey.tui.face.step import FaceStep
from covey.tui.inputs import Key


def target(state: FaceState, view: View, regions: Regions, row: int, column: int, *, client_id: str) -> Pointed | None:
    """What stands at this cell that can be clicked; None: nothing of these."""
    if column < left_columns(state):
        first = head_rows(state) + 1
        listed = sessions_shown(state, view, state.height - head_rows(state) - foot_rows(state), client_id)
        return Pointed("session", id=listed[row - first].id) if 0 <= row - first < len(listed) else None
    found = next(((part, row - rows.start) for part, rows in regions.parts.items() if row in rows), None)
    if found is None or not 0 <= column - regions.left < regions.columns:
        return None
    part, at = found
    number: int | None = None
    match part:
        case "picker":
            if isinstance(state.overlay, Picker):
                room = regions.composer.start - head_rows(state)
                number = item_at(state.overlay, regions.columns, picker_height(room), at)
            return Pointed("item", number) if number is not None else None
        case "ask":
            number = choice_at(state, view, at)
            return Pointed("choice", number) if number is not None else None
        case "suggestions":
            completion = state.composer.completion
            number = suggestion_at(completion, len(regions.parts[part]), at) if completion else None
            return Pointed("suggestion", number) if number is not None else None
        case "pinned":
            run_id = queued_at(state, view, at, has_right=bool(right_columns(state)))
            return Pointed("queued", id=run_id) if run_id else None
        case _:
            assert_never(part)


def point(step: FaceStep, pointed: Pointed) -> FaceStep:
    """A click. A press alone does nothing: a list would move under the mouse."""
    state = step.state
    match pointed.what:
        case "item":
            if not isinstance(state.overlay, Picker) or state.overlay.renaming is not None:
                return step
            picker = replace(state.overlay, selected=pointed.number, deleting="")
            return picking.picker_key(step.set(overlay=picker), picker, "pick", Key("")) or step
        case "choice":
            return answering.choose_by_mouse(step, pointed.number)
        case "suggestion":
            return composing.take_suggestion(step, pointed.number)
        case "session":
            return step.do(GoToSession(pointed.id))
        case "queued":
            return step.set(focus="queue", queued=pointed.id)
        case _:
            assert_never(pointed.what)
