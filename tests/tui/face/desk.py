"""Somebody at a terminal with the face, and no server: keys in, frames out, and a view that is fed by hand."""

from __future__ import annotations

from typing import Any

from covey.client.view.inputs import Connected, SessionOpened
from covey.protocol.events import PermissionNotification, PermissionRequest, QuestionBatchRequest, QuestionItem, created
from covey.protocol.messages import Message, Session, Text, TextPart
from covey.protocol.runs import Run, RunComplete
from covey.tui.face.effects import Effect
from covey.tui.face.face import Face
from covey.tui.face.facts import FaceInput, Looked
from covey.tui.face.state import FaceState
from covey.tui.inputs import Key, Paste, Resize

SID = "s1"


class Desk:
    def __init__(self, width: int = 100, height: int = 30, *, session: str = SID) -> None:
        self.now = 1000.0
        self.face = Face(FaceState(width=width, height=height), client_id="me", me="ann")
        self.effects: list[Effect] = []
        self.view.apply(Connected(self.now))
        if session:
            self.event(a_session(session))
            self.view.apply(SessionOpened(session))
        self.look()

    @property
    def view(self) -> Any:
        return self.face.view

    @property
    def state(self) -> FaceState:
        return self.face.state

    @property
    def draft(self) -> str:
        return self.state.composer.text

    def feed(self, fed: FaceInput) -> list[Effect]:
        found = self.face.feed(fed, self.now)
        self.effects += found
        return list(found)

    def look(self) -> None:
        self.feed(Looked())

    def event(self, payload: Any) -> None:
        self.view.event(created(payload), "1.1")

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.look()

    def keys(self, *names: str, every: float = 0.0) -> list[Effect]:
        """Keys by their names; a single character types itself."""
        found: list[Effect] = []
        for name in names:
            found += self.feed(Key(name, name if len(name) == 1 else " " if name == "space" else ""))
            self.now += every
        return found

    def write(self, text: str, every: float = 0.0) -> None:
        self.keys(*("space" if char == " " else char for char in text), every=every)

    def feed_command(self, name: str) -> list[Effect]:
        """A slash command."""
        self.write(f"/{name} ")
        return self.keys("enter")

    def paste(self, text: str) -> list[Effect]:
        return self.feed(Paste(text))

    def resize(self, width: int, height: int) -> None:
        self.feed(Resize(width, height))

    @property
    def screen(self) -> list[str]:
        return [row.text for row in self.face.frame(self.now).rows]

    @property
    def text(self) -> str:
        return "\n".join(self.screen)

    def did(self, kind: type[Effect]) -> list[Any]:
        return [effect for effect in self.effects if isinstance(effect, kind)]


def a_session(session_id: str = SID, title: str = "fix the test", updated_at: int = 1000, **more: Any) -> Session:
    given = {"prompt_tokens": 0, "completion_tokens": 0, "summary_message_id": "", "cost": 0.0, "message_count": 0}
    return Session(
        id=session_id,
        parent_session_id="",
        title=title,
        created_at=900,
        updated_at=updated_at,
        is_busy=False,
        attached_clients=0,
        **{**given, **more},
    )


def a_run(run_id: str = "r1", state: str = "active", seq: int = 1, prompt: str = "do it", **more: Any) -> Run:
    return Run(
        run_id=run_id,
        session_id=more.pop("session_id", SID),
        seq=seq,
        state=state,  # type: ignore[arg-type]
        mode=more.pop("mode", "own_turn"),
        prompt=prompt,
        accepted_at=990.0,
        **more,
    )


def a_prompt(message_id: str = "m1", run_id: str = "r1", text: str = "do it") -> Message:
    return Message(
        id=message_id,
        role="user",
        session_id=SID,
        parts=(TextPart(data=Text(text=text)),),
        model="",
        provider="",
        created_at=990,
        updated_at=990,
        run_id=run_id,
    )


def a_permission(ask_id: str = "p1", command: str = "rm -rf build", **more: Any) -> PermissionRequest:
    return PermissionRequest(
        id=ask_id,
        session_id=more.pop("session_id", SID),
        tool_call_id="c1",
        tool_name="bash",
        description="run it",
        action="execute",
        params={"command": command},
        path="/home/ann/feed",
        run_id="r1",
        **more,
    )


def an_answer(ask_id: str = "p1", by: str = "kim", *, granted: bool = True) -> PermissionNotification:
    return PermissionNotification(
        tool_call_id="c1", granted=granted, denied=not granted, permission_id=ask_id, answered_by=by, session_id=SID
    )


def a_batch(*questions: QuestionItem, ask_id: str = "q1") -> QuestionBatchRequest:
    return QuestionBatchRequest(id=ask_id, session_id=SID, tool_call_id="c1", questions=questions, run_id="r1")


def an_end(run_id: str = "r1", **more: Any) -> RunComplete:
    return RunComplete(session_id=more.pop("session_id", SID), run_id=run_id, message_id="m2", **more)
