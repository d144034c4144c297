"""Records what one client of a real server sees and does, and feeds a view with it.

The shell of the view is here: it carries out each command over HTTP, at once, and feeds the answer back.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from typing import Any, assert_never

import msgspec

from covey.client.view.as_json import view_as_json
from covey.client.view.commands import (
    LoadAsks,
    LoadMessages,
    LoadRuns,
    LoadSessions,
    LoadWorkspace,
    Reconnect,
    SendCancel,
    SendPrompt,
    ShowSession,
    ViewCommand,
)
from covey.client.view.inputs import (
    AsksLoaded,
    CancelAnswered,
    CancelAsked,
    Connected,
    Connecting,
    Disconnected,
    MessagesLoaded,
    PromptAccepted,
    PromptGiven,
    PromptRefused,
    Received,
    RunsLoaded,
    SessionOpened,
    SessionsLoaded,
    ViewInput,
    WorkspaceLoaded,
)
from covey.client.view.view import View
from covey.protocol.events import Event, decode_event
from covey.protocol.requests import PostPrompt
from covey.protocol.runs import RunComplete
from tests.support.fake_model import FakeModel
from tests.support.server import Pending, Server, Workspace
from tests.support.stream import Seen, Stream
from tests.vectors.vector import Vector, encode_input

EVERY_SESSION = "/sessions?children=1&archived=1"
OPEN_STATES = ("accepted", "queued", "active", "folded")


class Recording:
    """One client's story. `other` is a second client of the same workspace."""

    def __init__(self, server: Server, model: FakeModel) -> None:
        self.server = server
        self.model = model
        self.view = View()
        self.inputs: list[ViewInput] = []
        self.commands: list[tuple[int, dict[str, Any]]] = []
        self.ended: set[str] = set()
        """Runs whose terminal event has been fed."""
        self.loses_answers = False
        """Whether answers to what this client sends are lost on their way."""
        self.waits_for_store = False
        """Whether the store is blocked, so that nothing that is sent gets an answer yet."""
        self.workspace = server.workspace(client_name="Ada", client_kind="tui")
        self.other = self.join("Bo 🦊", "web")
        self._stream: Stream | None = None
        self._fed = 0
        self._clock = 0.0
        self._others: list[Stream] = []
        self._pending: list[tuple[ViewCommand, Pending]] = []

    def join(self, name: str, kind: str) -> Workspace:
        return self.server.workspace(client_name=name, client_kind=kind)

    def now(self) -> float:
        self._clock += 1
        return self._clock

    # ── feeding ──

    def feed(self, fed: ViewInput) -> None:
        index = len(self.inputs)
        self.inputs.append(fed)
        if isinstance(fed, Received) and isinstance(fed.event.payload, RunComplete):
            self.ended.add(fed.event.payload.run_id)
        commands = self.view.apply(fed).commands
        self.commands += [(index, msgspec.to_builtins(command)) for command in commands]
        for command in commands:
            self._carry_out(command)

    def feed_next(self) -> None:
        """Wait for one more event, and feed it."""
        assert self._stream
        self._stream.wait_for(lambda seen: len(seen) > self._fed)
        self.feed_seen(self._stream.events[self._fed])
        self._fed += 1

    def feed_seen(self, seen: Seen) -> None:
        wire = {"type": seen.type, "payload": {"type": seen.change, "payload": seen.payload}}
        event = decode_event(json.dumps(wire))
        assert event, wire
        self.feed(Received(event, seen.id))

    def feed_event(self, event: Event) -> None:
        """An event that the server did not send."""
        self.feed(Received(event))

    def until(self, condition: Callable[[View], object]) -> None:
        while not condition(self.view):
            self.feed_next()

    def until_ended(self, *run_ids: str) -> None:
        self.until(lambda _: self.ended.issuperset(run_ids))

    def until_state(self, run_id: str, state: str) -> None:
        def reached(view: View) -> bool:
            record = view.find_run(run_id)
            return record is not None and record.run.state == state

        self.until(reached)

    def until_text(self, length: int = 1) -> None:
        """Until so much of an answer has been streamed to this client."""
        self.until(
            lambda view: any(m.role == "assistant" and len(m.text) >= length for m in view.conversation.messages)
        )

    def catch_up(self) -> None:
        """Feed all that the server has published by now: a change of our own making is its last word."""
        mark = uuid.uuid4().hex
        probe = self.other.session(mark)
        self.until(lambda view: any(session.title == mark for session, _ in view.sessions))
        self.other.request("DELETE", f"/sessions/{probe}").ok()
        self.until(lambda view: all(session.title != mark for session, _ in view.sessions))

    # ── the connection ──

    def connect(self, last_event_id: str | None = None) -> None:
        if self._stream is None and not self.inputs:
            self.feed(Connecting(self.now()))
        known = self.view.link.last_event_id if last_event_id is None else last_event_id
        self._stream, self._fed = self.workspace.stream(last_event_id=known), 0
        self.feed(Connected(self.now()))

    def disconnect(self, why: str = "the connection broke") -> None:
        assert self._stream
        self._stream.close()
        self.feed(Disconnected(self.now(), why))

    def restart_server(self, *, kill: bool) -> None:
        """Both clients come back to the same workspace."""
        assert self._stream
        if kill:
            self.server.kill()
        else:
            assert self.server.stop() == 0
        self._stream.wait_end()
        self.disconnect("the server is gone")
        self.server.start()
        for client in (self.workspace, self.other):
            body = {"path": str(self.server.project), "client_id": client.client_id, "client_name": "Ada"}
            client.id = self.server.request("POST", "/v1/workspaces", body).ok()["id"]

    # ── what the user does ──

    def session(self, title: str = "") -> str:
        """A new session, shown at once."""
        session_id = self.workspace.session(title)
        self.open(session_id)
        return session_id

    def open(self, session_id: str) -> None:
        self.feed(SessionOpened(session_id))

    def prompt(self, prompt: str, run_id: str, session_id: str = "", **fields: Any) -> None:
        values = {"session_id": session_id or self.view.current, "prompt": prompt, "run_id": run_id, **fields}
        self.feed(PromptGiven(msgspec.convert(values, PostPrompt), self.now()))

    def cancel(self, run_id: str = "") -> None:
        self.feed(CancelAsked(self.view.current, run_id, self.now()))

    def also_close(self, stream: Stream) -> None:
        """A stream of somebody else, which is open until all has been recorded."""
        self._others.append(stream)

    def close(self) -> None:
        self.workspace.close()
        self.other.close()
        for stream in self._others:
            stream.close()

    # ── carrying out ──

    def _carry_out(self, command: ViewCommand) -> None:
        match command:
            case LoadSessions(load):
                self._answer(SessionsLoaded, load=load, sessions=self.workspace.get(EVERY_SESSION))
            case LoadRuns(load, session_id):
                self._answer(RunsLoaded, load=load, runs=self._runs(session_id))
            case LoadMessages(load, session_id):
                found = self.workspace.request("GET", f"/sessions/{session_id}/messages")
                self._answer(MessagesLoaded, load=load, messages=found.body if found.status == 200 else [])
            case LoadAsks(load):
                asks = {
                    "permissions": self.workspace.get("/permissions"),
                    "questions": self.workspace.get("/questions"),
                }
                self._answer(AsksLoaded, load=load, **asks)
            case LoadWorkspace(load):
                self._answer(WorkspaceLoaded, load=load, workspace=self.workspace.get(""))
            case SendPrompt() | SendCancel():
                self._send(command)
            case ShowSession(session_id):
                path = f"/current-session?client_id={self.workspace.client_id}"
                self.workspace.request("POST", path, {"session_id": session_id})
            case Reconnect():
                self.disconnect("text is missing")
                self.connect()
            case _:
                assert_never(command)

    def _answer(self, kind: type[Any], **fields: Any) -> None:
        self.feed(msgspec.convert(fields | {"input": kind.__struct_config__.tag}, kind))

    def _runs(self, session_id: str) -> list[Any]:
        if session_id:
            answer = self.workspace.request("GET", f"/runs?session_id={session_id}&limit=200")
            return list(answer.body) if answer.status == 200 else []
        found = {run["run_id"]: run for state in OPEN_STATES for run in self.workspace.get(f"/runs?state={state}")}
        return list((found | {run["run_id"]: run for run in self.workspace.get("/runs?limit=200")}).values())

    def _send(self, command: SendPrompt | SendCancel) -> None:
        """While the store is blocked an answer is waited for later; see `answer_pending`."""
        if isinstance(command, SendPrompt) and command.run_id not in self.view.outbox.prompts:
            return  # it has become known meanwhile that the server has it
        pending = self._begin(command)
        if self.waits_for_store:
            self._pending.append((command, pending))
        else:
            self._take_answer(command, pending)

    def _begin(self, command: SendPrompt | SendCancel) -> Pending:
        if isinstance(command, SendCancel):
            run, session = f"/runs/{command.run_id}/cancel", f"/agent/sessions/{command.session_id}/cancel"
            if self.waits_for_store:
                return self.workspace.begin_cancel(command.session_id)
            query = f"?client_id={self.workspace.client_id}"
            return self.workspace.begin("POST", (run if command.run_id else session) + query)
        prompt = msgspec.to_builtins(self.view.outbox.prompts[command.run_id].prompt)
        if self.waits_for_store:
            return self.workspace.begin_prompt(**prompt)
        return self.workspace.begin("POST", f"/agent?client_id={self.workspace.client_id}", prompt)

    def answer_pending(self) -> None:
        self.waits_for_store = False
        for command, pending in self._pending:
            self._take_answer(command, pending)
        self._pending.clear()

    def _take_answer(self, command: ViewCommand, pending: Pending) -> None:
        answer = pending.answer()
        if self.loses_answers:
            return
        match command:
            case SendPrompt(run_id) if answer.status != 202:
                self.feed(PromptRefused(run_id, answer.body["message"], answer.body["code"]))
            case SendPrompt():
                self._answer(PromptAccepted, receipt=answer.body)
            case SendCancel(session_id, run_id):
                self._answer(CancelAnswered, session_id=session_id, run_id=run_id, receipt=answer.ok())

    # ── the end ──

    def vector(self, name: str, about: str) -> Vector:
        inputs = [encode_input(fed) for fed in self.inputs]
        return Vector(name=name, about=about, inputs=inputs, commands=self.commands, expected=self.state())

    def state(self) -> dict[str, Any]:
        state: dict[str, Any] = json.loads(msgspec.json.encode(view_as_json(self.view)))
        return state

    def check(self) -> None:
        """What the view has in the end is what the server says."""
        state, workspace = self.state(), self.workspace
        assert state["loading"] == [] and state["link"]["gap"] == "", state["link"]
        asked = [ask["request"] for ask in state["asks"]]
        assert sorted(asked, key=str) == sorted(workspace.get("/permissions") + workspace.get("/questions"), key=str)
        for session in (sessions := workspace.get(EVERY_SESSION)):
            shown = next(each for each in state["sessions"] if each["id"] == session["id"])
            for field in ("title", "parent_session_id", "summary_message_id", "cost", "created_at", "is_busy"):
                assert shown[field] == session[field], (field, shown, session)
            for field in ("forked_from", "model", "mode", "archived_at"):
                assert shown[field] == session.get(field), (field, shown, session)
            if not session["is_busy"]:  # messages of a turn that goes on have events of their own
                assert shown["message_count"] == session["message_count"], (shown, session)
        assert len(state["sessions"]) == len(sessions)
        if current := state["current"]:
            assert state["messages"] == workspace.messages(current)
            runs = {run["run_id"]: run for run in workspace.get(f"/runs?session_id={current}")}
            shown_runs = {each["run"]["run_id"]: each["run"] for each in state["runs"]}
            assert _without_moment(shown_runs) == _without_moment(runs)
            assert [runs[run_id]["prompt"] for run_id in state["queue"]] == workspace.queued(current)
            session = workspace.get(f"/sessions/{current}")
            assert state["todos"] == (session.get("todos") or [])
            assert state["meters"]["prompt_tokens"] == session["prompt_tokens"]


def _without_moment(runs: dict[str, Any]) -> dict[str, Any]:
    """Without what changes all the time, and has no event of its own."""
    return {run_id: {k: v for k, v in run.items() if k != "last_progress_at"} for run_id, run in runs.items()}
