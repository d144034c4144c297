"""Follows a workspace for a face: feeds a `View` with all that happens, and carries out what it asks for.

    async with Follower(client, workspace.id, session_id=session.id) as follower:
        seen = follower.revision
        while True:
            draw(follower.view)
            seen = await follower.changed(seen)

Intents return at once: what becomes of them is in the view. A prompt that is given while the connection is lost is in
the outbox, and is posted when it is back; by its run id it becomes one run, however often it had to be sent.
The connection is made again for ever; only what no waiting will change is raised, where the face waits: a token that is
refused, or answers that cannot be read.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import Self, assert_never

from msgspec import structs

from covey.client.client import SILENCE_S, Client
from covey.client.errands import Errands
from covey.client.errors import BadAnswer, ServerUnreachable
from covey.client.event_stream import FIRST_DELAY_S, EventStream
from covey.client.outgoing import Outgoing
from covey.client.prompt import new_run_id
from covey.client.view.commands import (
    LoadAsks,
    LoadCommand,
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
    AnswerFailed,
    AnswerGiven,
    CancelAsked,
    Connected,
    Connecting,
    Disconnected,
    OlderWanted,
    PromptDropped,
    PromptGiven,
    Received,
    SessionOpened,
    ViewInput,
)
from covey.client.view.view import Step, View
from covey.client.view_loads import load
from covey.protocol.errors import ApiError
from covey.protocol.requests import PermissionAction, PostPrompt, QuestionResponse, UpdateSession

LONGEST_DELAY_S = 2.0
"""Between attempts to load while the stream is there: the server answers, and is only in trouble."""

OnStep = Callable[[ViewInput, Step], None]
"""Sees each input when the view has taken it in, in order, for faces that only ever append."""


def _unseen(fed: ViewInput, step: Step) -> None:
    """The face only looks at the view."""


class Follower:
    """One view of one workspace, for one face. Use it in the event loop in which it was entered."""

    def __init__(
        self,
        client: Client,
        workspace_id: str,
        *,
        session_id: str = "",
        on_step: OnStep = _unseen,
        first_delay_s: float = FIRST_DELAY_S,
        silence_s: float = SILENCE_S,
    ) -> None:
        self.view = View(session_id)
        """To be read. Only this follower feeds it."""
        self.revision = 0
        """Rises with each input that the view has taken in."""
        self._client = client
        self._on_step = on_step
        self._first_delay_s = first_delay_s
        self._changed = asyncio.Event()
        self._failure: BaseException | None = None
        self._errands = Errands(self._fail)
        self._outgoing = Outgoing(self)
        self._to_show = session_id
        self._stream = EventStream(
            client,
            workspace_id,
            reloads=False,
            on_connection=self._connection,
            first_delay_s=first_delay_s,
            silence_s=silence_s,
        )

    async def __aenter__(self) -> Self:
        """Connects; raises if there is no server at all."""
        self.feed(Connecting(time.time()))
        try:
            await self._stream.__aenter__()
        except BaseException:
            await self._errands.close()
            raise
        self._reading = asyncio.create_task(self._read())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Whatever is under way is given up: what was not answered by then may or may not have been done."""
        self._reading.cancel()
        await asyncio.wait({self._reading})
        await self._errands.close()
        await self._stream.__aexit__(kind, error, trace)

    @property
    def workspace_id(self) -> str:
        """May change when the server had to open the workspace again."""
        return self._stream.workspace_id

    @property
    def client(self) -> Client:
        return self._client

    # ── waiting ──

    async def changed(self, seen: int) -> int:
        """Wait until the view is newer than revision `seen`, and give its revision. Many changes are one."""
        while self.revision == seen:
            if self._failure:
                raise self._failure
            self._changed.clear()
            await self._changed.wait()
        return self.revision

    async def until(self, condition: Callable[[View], object]) -> None:
        """Wait until something is true of the view. Looks again after each batch of changes."""
        while not condition(self.view):
            await self.changed(self.revision)

    def hurry(self) -> None:
        """Try to connect now, if it waits before its next attempt."""
        self._stream.hurry()

    # ── intents ──

    def open(self, session_id: str) -> None:
        """Show another session ('': none)."""
        self.feed(SessionOpened(session_id))

    def load_older(self) -> None:
        """Have the page of messages before the first one, if there is one."""
        self.feed(OlderWanted())

    def post(self, prompt: PostPrompt) -> str:
        """Post a prompt, to the session that is shown if it names none. Gives its run id."""
        run_id, session_id = prompt.run_id or new_run_id(), prompt.session_id or self.view.current
        self.feed(PromptGiven(structs.replace(prompt, run_id=run_id, session_id=session_id), time.time()))
        return run_id

    def drop(self, run_id: str) -> None:
        """Take back a prompt that was refused, or that waits for the connection."""
        self.feed(PromptDropped(run_id))

    def cancel(self, session_id: str = "", run_id: str = "") -> None:
        """Cancel one run, or all that is open in a session: the one that is shown if none is named."""
        self.feed(CancelAsked(session_id or self.view.current, run_id, time.time()))

    def answer_permission(self, ask_id: str, action: PermissionAction, reason: str = "", **further: bool) -> None:
        """With what else there is in `Grant`: `network=True`."""
        self._answer(
            ask_id, lambda: self._client.answer_permission(self.workspace_id, ask_id, action, reason, **further)
        )

    def allow_edits(self, ask_id: str, session_id: str) -> None:
        """Yes to an edit, and to all others in its session, which has the mode before its run asks about the next."""

        async def send() -> bool:
            await self._client.update_session(self.workspace_id, session_id, UpdateSession(mode="accept_edits"))
            return await self._client.answer_permission(self.workspace_id, ask_id, "allow")

        self._answer(ask_id, send)

    def answer_questions(self, ask_id: str, responses: Sequence[QuestionResponse]) -> None:
        """Without responses: the agent goes on without."""
        if responses:
            self._answer(ask_id, lambda: self._client.answer_questions(self.workspace_id, ask_id, responses))
        else:
            self._answer(ask_id, lambda: self._client.refuse_questions(self.workspace_id, ask_id))

    def answer_approval(self, ask_id: str, *, approve: bool) -> None:
        """Whether an extension may be used as it is now."""
        self._answer(ask_id, lambda: self._client.answer_approval(self.workspace_id, ask_id, approve=approve))

    # ── the parts of a shell ──

    def feed(self, fed: ViewInput) -> None:
        """Have the view take something in, and carry out what it asks for."""
        step = self.view.apply(fed)
        self._on_step(fed, step)
        self.revision += 1
        self._changed.set()
        for command in step.commands:
            self._carry_out(command)

    async def _read(self) -> None:
        try:
            while True:
                event_id, event = await self._stream.next()
                self.feed(Received(event, event_id))
        except Exception as error:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        self._failure = self._failure or error
        self._changed.set()

    def _connection(self, connected: bool, why: str) -> None:
        if connected:
            self.feed(Connected(time.time()))
        else:
            self._lost(why)

    def _lost(self, why: str) -> None:
        """What is under way is given up, as the view asks for it again when the stream is back."""
        self._errands.cancel_all()
        self._outgoing.clear()
        self.feed(Disconnected(time.time(), why))

    def _carry_out(self, command: ViewCommand) -> None:
        is_connected = self.view.link.state == "connected"
        match command:
            case LoadSessions() | LoadRuns() | LoadMessages() | LoadAsks() | LoadWorkspace():
                if is_connected:
                    self._errands.begin(_name(command), self._load(command))
            case SendPrompt() | SendCancel():
                self._outgoing.add(command, self._errands, is_connected=is_connected)
            case ShowSession(session_id):
                self._to_show = session_id
                if "show" not in self._errands:
                    self._errands.begin("show", self._show())
            case Reconnect():
                self._lost("text is missing")
                self._stream.reconnect()
            case _:
                assert_never(command)

    async def _load(self, command: LoadCommand) -> None:
        """Until there is an answer, or nobody waits for it any more."""
        delay_s = self._first_delay_s
        while command in list(self.view.loads):
            try:
                answer = await load(self._client, self.workspace_id, command, self.view.current)
            except BadAnswer:
                raise
            except (ServerUnreachable, ApiError):
                await asyncio.sleep(delay_s)
                delay_s = min(delay_s * 2, LONGEST_DELAY_S)
            else:
                self.feed(answer)
                return

    async def _show(self) -> None:
        """One after the other, so that the last one counts. It only says where somebody looks: it may fail."""
        shown: str | None = None
        while shown != self._to_show:
            shown = self._to_show
            try:
                await self._client.set_current_session(self.workspace_id, shown)
            except (ServerUnreachable, ApiError):
                return

    def _answer(self, ask_id: str, send: Callable[[], Awaitable[bool]]) -> None:
        """One at a time: a second answer is not sent while the first is on its way."""
        if ("answer", ask_id) in self._errands:
            return

        async def answering() -> None:
            try:
                await send()  # false: somebody else was faster, which an event says
            except (ServerUnreachable, ApiError):
                self.feed(AnswerFailed(ask_id))

        self.feed(AnswerGiven(ask_id))
        self._errands.begin(("answer", ask_id), answering())


def _name(command: LoadCommand) -> tuple[type[LoadCommand], str]:
    of_session = command.session_id if isinstance(command, LoadRuns | LoadMessages) else ""
    return type(command), of_session
