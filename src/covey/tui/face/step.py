"""One step of the face: a state and what it wants done, passed from hand to hand."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from covey.client.view.view import View
from covey.tui.face.composer import Composer, draft_of
from covey.tui.face.effects import AllowEdits, AnswerBatch, AnswerPermission, DecideApproval, Effect, SaveDraft
from covey.tui.face.state import TOAST_S, FaceState, Toast


@dataclass(frozen=True, slots=True)
class FaceStep:
    state: FaceState
    view: View
    """To be read: only the follower changes it."""
    effects: tuple[Effect, ...] = ()

    def set(self, **changes: Any) -> FaceStep:
        return replace(self, state=replace(self.state, **changes))

    def do(self, *effects: Effect) -> FaceStep:
        return replace(self, effects=(*self.effects, *effects))

    def say(self, text: str, kind: Literal["note", "warning", "error"] = "note") -> FaceStep:
        """Longer sentences stay longer."""
        return self.set(toast=Toast(text, kind, self.state.now + max(TOAST_S, len(text) / 15)))

    def answer(self, answer: AnswerPermission | AllowEdits | AnswerBatch | DecideApproval) -> FaceStep:
        """It is on its way; the ask goes when the server says so."""
        return self.set(ask=replace(self.state.ask, is_sent=True)).do(answer)

    def compose(self, composer: Composer) -> FaceStep:
        """With another composer, whose draft is kept if it is another one."""
        before = self.state.composer
        if composer is before:
            return self
        state = self.state
        step = self.set(composers={**state.composers, state.session_id: composer})
        draft = draft_of(composer)
        return step if draft == draft_of(before) else step.do(SaveDraft(state.session_id, draft))
