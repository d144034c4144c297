"""The view: events, answers and intents in; all that a face shows, and commands to its shell, out. Pure.

One owner feeds it, in the order in which things happened, and reads from it in between. An event costs what it brings:
a delta its own length, whatever else its own entry in a table. Nothing here grows with what has happened before but the
messages, and the ended runs, of the one session that is shown.
"""

from __future__ import annotations

from typing import NamedTuple, assert_never

from covey.client.transcript import TranscriptChange
from covey.client.view.asks import AskList
from covey.client.view.commands import (
    LoadAsks,
    LoadMessages,
    LoadRuns,
    LoadSessions,
    LoadWorkspace,
    Reconnect,
    ShowSession,
    ViewCommand,
)
from covey.client.view.conversation import ShownConversation
from covey.client.view.inputs import (
    AnswerFailed,
    AnswerGiven,
    AsksLoaded,
    CancelAnswered,
    CancelAsked,
    CancelFailed,
    Connected,
    Connecting,
    Disconnected,
    LoadAnswer,
    MessagesLoaded,
    OlderWanted,
    PromptAccepted,
    PromptDropped,
    PromptGiven,
    PromptRefused,
    Received,
    RunsLoaded,
    SendAnswer,
    SessionOpened,
    SessionsLoaded,
    UserIntent,
    ViewInput,
    WorkspaceLoaded,
)
from covey.client.view.loads import Loads
from covey.client.view.outbox import Outbox
from covey.client.view.records import Link, PresentClient, RunRecord
from covey.client.view.session_list import SessionList
from covey.protocol.events import (
    AgentEvent,
    ConfigChanged,
    Event,
    File,
    Gap,
    MessageDelta,
    Payload,
    PermissionNotification,
    PermissionRequest,
    Presence,
    QuestionBatchNotification,
    QuestionBatchRequest,
    ToolOutputDelta,
)
from covey.protocol.extensions import ApprovalNotification, ApprovalRequest, LspEvent, McpEvent, SkillsEvent
from covey.protocol.messages import Message, Session
from covey.protocol.requests import WorkspaceView
from covey.protocol.runs import Run, RunComplete


class Step(NamedTuple):
    """What an input led to."""

    commands: list[ViewCommand]
    change: TranscriptChange | None = None
    """What it did to the messages of the session that is shown."""


NOTHING = Step([])


class View:
    """All that a face shows of a workspace. Read its fields; change it by `apply` alone."""

    def __init__(self, session_id: str = "", *, loads: bool = True) -> None:
        self.link = Link()
        self.sessions = SessionList(session_id)
        self.conversation = ShownConversation(session_id)
        self.asks = AskList()
        self.outbox = Outbox()
        self.clients: dict[str, PresentClient] = {}
        """Who else is there: the stream says so on attach, and whenever it changes."""
        self.comings = 0
        """How often somebody came, went, or looked at another session."""
        self.workspace: WorkspaceView | None = None
        self.skips_permissions = False
        self.loads = Loads()
        self._does_load = loads
        """False: the stream brings the present state after a gap by itself, as events (`client/event_stream.py`)."""

    @property
    def current(self) -> str:
        """The session that is shown ('': none)."""
        return self.sessions.current

    def find_run(self, run_id: str) -> RunRecord | None:
        """A run of the session that is shown."""
        return self.sessions.find_run(self.current, run_id)

    def apply(self, fed: ViewInput) -> Step:
        """Take one input in."""
        match fed:
            case Received():
                return self._received(fed)
            case Connecting() | Connected() | Disconnected():
                return Step(self._connection(fed))
            case SessionsLoaded() | RunsLoaded() | MessagesLoaded() | AsksLoaded() | WorkspaceLoaded():
                return self._loaded(fed)
            case PromptAccepted() | PromptRefused() | CancelAnswered() | CancelFailed() | AnswerFailed():
                self._answered(fed)
                return NOTHING
            case SessionOpened() | OlderWanted() | PromptGiven() | PromptDropped() | CancelAsked() | AnswerGiven():
                return Step(self._intent(fed))
            case _:
                assert_never(fed)

    def event(self, event: Event, event_id: str = "") -> Step:
        return self.apply(Received(event, event_id))

    # ── the connection ──

    def _connection(self, fact: Connecting | Connected | Disconnected) -> list[ViewCommand]:
        link = self.link
        match fact:
            case Connecting(at):
                link.state, link.since, link.why = "connecting", at, ""
            case Connected(at):
                link.state, link.since, link.why = "connected", at, ""
                return self._catch_up()
            case Disconnected(at, why):
                if link.state == "connected":
                    link.state, link.since = "lost", at
                link.why = why
                self.clients.clear()
                for ask in self.asks.open.values():
                    ask.is_being_answered = False  # if it got lost, the server asks again
            case _:
                assert_never(fact)
        return []

    def _catch_up(self) -> list[ViewCommand]:
        """The stream brings all that it can; the rest has to be asked for."""
        if self.link.last_event_id:
            commands: list[ViewCommand] = [*self.loads.again()]
            if self._does_load and not self.loads.find(LoadAsks):
                commands.append(self.loads.begin(LoadAsks(self.loads.number())))
        else:
            commands = self._load_all()
        if self.current:
            commands.append(ShowSession(self.current))
        return commands + self.outbox.connected()

    def _load_all(self) -> list[ViewCommand]:
        if not self._does_load:
            return []
        begin, number = self.loads.begin, self.loads.number
        commands: list[ViewCommand] = [
            begin(LoadWorkspace(number())),
            begin(LoadSessions(number())),
            begin(LoadRuns(number())),
            begin(LoadAsks(number())),
        ]
        return commands + self._load_session()

    def _load_session(self) -> list[ViewCommand]:
        if not self.current or not self._does_load:
            return []
        begin, number = self.loads.begin, self.loads.number
        return [begin(LoadMessages(number(), self.current)), begin(LoadRuns(number(), self.current))]

    # ── events ──

    def _received(self, received: Received) -> Step:
        if received.id:
            self.link.last_event_id = received.id
        event = received.event
        payload: Payload = event.payload
        match payload:
            case MessageDelta():
                return self._grown(payload, event)
            case ToolOutputDelta():
                self.conversation.printed(payload)
            case Message():
                self.loads.touch(LoadMessages, payload.id, payload.session_id)
                if received.id:  # else it may only be sent again, to a client that has come back
                    self._goes_on(payload.session_id, payload.run_id or "")
                return Step([], self.conversation.message(payload, event))
            case Session():
                self._session(payload, is_deleted=event.change == "deleted")
            case Run():
                self._run(payload)
            case RunComplete():
                self._ended(payload)
            case AgentEvent():
                self._agent_event(payload)
            case PermissionRequest() | QuestionBatchRequest() | ApprovalRequest():
                self.loads.touch(LoadAsks, payload.id)
                self.asks.request(payload)
            case PermissionNotification() | QuestionBatchNotification() | ApprovalNotification():
                self.loads.touch(LoadAsks, self.asks.notified(payload))
            case Presence():
                self._presence(payload)
            case ConfigChanged():
                return Step(self._config_changed(payload))
            case Gap():
                return self._gap(payload, event)
            case File() | McpEvent() | LspEvent() | SkillsEvent():
                pass  # what tool results show already; and a face that shows extensions asks for W/extensions
            case _:
                assert_never(payload)
        return NOTHING

    def _grown(self, delta: MessageDelta, event: Event) -> Step:
        self._goes_on(delta.session_id, delta.run_id)
        is_loading = self.loads.is_loading(delta.session_id)
        change = self.conversation.grow(delta, event, is_loading=is_loading)
        if change and change.kind == "hole":
            return Step([Reconnect()], change)
        if change and is_loading:
            self.loads.touch(LoadMessages, delta.message_id, delta.session_id)
        return Step([], change)

    def _goes_on(self, session_id: str, run_id: str) -> None:
        """The run says something, so it does not wait for another attempt any more."""
        if record := self.sessions.find_run(session_id, run_id):
            record.retry = None

    def _session(self, session: Session, *, is_deleted: bool) -> None:
        self.loads.touch(LoadSessions, session.id)
        if not is_deleted:
            self.sessions.put(session)
            return
        self.asks.close_where(lambda ask: ask.session_id == session.id)
        self.outbox.drop_session(session.id)
        self.sessions.remove(session.id)
        if session.id == self.current:
            self._show("")

    def _run(self, run: Run) -> None:
        self.loads.touch(LoadRuns, run.run_id, run.session_id)
        self.sessions.put_run(run)
        self.outbox.run_known(run)

    def _ended(self, terminal: RunComplete) -> None:
        self.asks.close_where(lambda ask: ask.run_id == terminal.run_id)
        self.conversation.run_ended(terminal)

    def _agent_event(self, event: AgentEvent) -> None:
        record = self.sessions.find_run(event.session_id, event.run_id)
        if record and event.type == "retry":
            record.retry = event
        elif record and event.type == "warning":
            record.warning = event
        elif record and event.type == "re_authenticate":
            record.key_refused = True

    def _presence(self, presence: Presence) -> None:
        who = presence.client_id
        self.comings += 1
        if presence.attached:
            self.clients[who] = PresentClient(who, presence.session_id, presence.name, presence.kind)
        else:
            self.clients.pop(who, None)

    def _config_changed(self, change: ConfigChanged) -> list[ViewCommand]:
        if change.skip_permissions is not None:
            self.loads.touch(LoadWorkspace, "skip_permissions")
            self.skips_permissions = change.skip_permissions
            return []
        return [self.loads.begin(LoadWorkspace(self.loads.number()))] if self._does_load else []

    def _gap(self, gap: Gap, event: Event) -> Step:
        """What is shown stays, until what has been loaded again takes its place."""
        self.link.last_event_id = gap.resume_from
        if not self._does_load:
            return Step([], self.conversation.clear(event))
        self.link.gap = gap.reason
        return Step(self._load_all())

    # ── answers ──

    def _loaded(self, answer: LoadAnswer) -> Step:
        change: TranscriptChange | None = None
        match answer:
            case SessionsLoaded(number, sessions):
                if load := self.loads.end(LoadSessions, number):
                    self._sessions_loaded(sessions, load.touched)
            case RunsLoaded(number, runs):
                self._runs_loaded(number, runs)
            case MessagesLoaded():
                change = self._messages_loaded(answer)
            case AsksLoaded(number, permissions, questions, approvals):
                if load := self.loads.end(LoadAsks, number):
                    self.asks.load((*permissions, *questions, *approvals), load.touched)
            case WorkspaceLoaded(number, workspace):
                if load := self.loads.end(LoadWorkspace, number):
                    self.workspace = workspace
                    if "skip_permissions" not in load.touched:
                        self.skips_permissions = workspace.yolo
            case _:
                assert_never(answer)
        if not any(self.loads):
            self.link.gap = ""
        return Step([Reconnect()] if change and change.kind == "hole" else [], change)

    def _sessions_loaded(self, sessions: tuple[Session, ...], newer: set[str]) -> None:
        shown = self.current
        self.sessions.load(sessions, newer)
        if self.current != shown:  # it was deleted, and nobody could say so
            self.loads.drop_session(shown)
            self.conversation.show("")

    def _runs_loaded(self, number: int, runs: tuple[Run, ...]) -> None:
        load = self.loads.end(LoadRuns, number)
        if load is None or not isinstance(load.command, LoadRuns):
            return
        if load.command.session_id:
            self.sessions.load_runs_of(load.command.session_id, runs, load.touched)
        else:
            self.sessions.load_open_runs(runs, load.touched)
        for run in runs:
            self.outbox.run_known(run)

    def _messages_loaded(self, answer: MessagesLoaded) -> TranscriptChange | None:
        load = self.loads.end(LoadMessages, answer.load)
        if load is None or not isinstance(load.command, LoadMessages) or load.command.session_id != self.current:
            return None
        put = self.conversation.load_older if load.command.before else self.conversation.load
        return put(answer.messages, load.touched, has_older=answer.has_older)

    def _answered(self, answer: SendAnswer) -> None:
        match answer:
            case PromptAccepted(receipt):
                self.outbox.accepted(receipt)
                if record := self.sessions.find_run(receipt.session_id, receipt.run_id):
                    self.outbox.run_known(record.run)
            case PromptRefused():
                self.outbox.refused(answer)
            case CancelAnswered():
                self.outbox.cancel_answered(answer, self.sessions.open_run_ids())
            case CancelFailed(session_id, run_id):
                self.outbox.cancels.pop((session_id, run_id), None)
            case AnswerFailed(ask_id):
                self.asks.answering(ask_id, False)
            case _:
                assert_never(answer)

    # ── what the user does ──

    def _intent(self, intent: UserIntent) -> list[ViewCommand]:
        match intent:
            case SessionOpened(session_id):
                return self._open(session_id)
            case OlderWanted():
                return self._load_older()
            case PromptGiven(prompt):
                is_run = self.sessions.find_run(prompt.session_id, prompt.run_id)
                return [] if is_run else self.outbox.give(intent)
            case PromptDropped(run_id):
                self.outbox.prompts.pop(run_id, None)
            case CancelAsked():
                return self.outbox.cancel(intent)
            case AnswerGiven(ask_id):
                self.asks.answering(ask_id, True)
            case _:
                assert_never(intent)
        return []

    def _open(self, session_id: str) -> list[ViewCommand]:
        if session_id == self.current:
            return []
        self._show(session_id)
        self.loads.touch(LoadSessions, session_id)  # it may be so new that an answer under way does not have it
        commands = [ShowSession(session_id), *self._load_session()]
        return commands if self.link.state == "connected" else []

    def _show(self, session_id: str) -> None:
        self.loads.drop_session(self.current)
        self.sessions.show(session_id)
        self.conversation.show(session_id)

    def _load_older(self) -> list[ViewCommand]:
        if not self.conversation.has_older or self.loads.find(LoadMessages, self.current):
            return []
        return [self.loads.begin(LoadMessages(self.loads.number(), self.current, self.conversation.messages.first_id))]
