"""One session that the editor shows: follows it on the server, tells the editor, and carries out what its user does.

It owns a connection of its own, so that the server knows which sessions somebody looks at. Closing it leaves its runs
alone: they belong to the server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack

from msgspec import structs

from covey.acp.ask_desk import AskDesk
from covey.acp.content import Json
from covey.acp.endings import prompt_answer
from covey.acp.passed import why_not
from covey.acp.settings import commands_update, config_options, modes
from covey.acp.updates import SessionUpdates
from covey.client.client import Client
from covey.client.follower import Follower
from covey.client.prompt import terminal_of
from covey.client.view.inputs import ViewInput
from covey.client.view.view import Step, View
from covey.protocol.custom import CustomCommand
from covey.protocol.passed_servers import PassedServer
from covey.protocol.requests import PostPrompt, UpdateSession
from covey.protocol.runs import RunComplete
from covey.rpc.messages import INTERNAL_ERROR, INVALID_PARAMS, RpcError
from covey.rpc.peer import Peer

MOST_REPLAYED = 5000
"""Messages of an old session that an editor is given again, the newest ones: days of work, and still quickly drawn."""

SETTLE_S = 10.0
"""For runs that are cancelled to end: far longer than it takes."""


class OpenSession:
    """Made by `open`; to be closed by `close`."""

    def __init__(
        self, peer: Peer, stack: AsyncExitStack, client: Client, workspace_id: str, root: str, id: str
    ) -> None:
        self.id = id
        self.root = root
        self.client = client
        self.follower = Follower(client, workspace_id, session_id=id, on_step=self._step)
        self._peer = peer
        self._stack = stack
        self._prompts: dict[str, asyncio.Future[RunComplete]] = {}
        """By run: prompts of this editor that have no answer yet."""
        self._own: set[str] = set()
        self._adopted: set[str] = set()
        self._has_brought = False
        self._failure = ""
        """Why nothing can be told any more."""
        self._starting: set[asyncio.Event] = set()
        """Summaries that are no runs yet. Set: cancel it as soon as it is one."""
        self._being_cancelled: set[str | None] = set()
        self._updates: SessionUpdates | None = None
        self._desk: AskDesk | None = None
        self._commands: tuple[CustomCommand, ...] = ()
        self._pumping: asyncio.Task[None] | None = None

    # ── opening and closing ──

    async def enter(self, *, notices: bool, can_ask_questions: bool) -> None:
        """Connect, and have all that the editor has to know at first."""
        self._updates = SessionUpdates(self.follower.view, self.id, self.root, self._own, notices=notices)
        self._desk = AskDesk(
            self._peer,
            self.follower,
            self.id,
            can_ask_questions=can_ask_questions,
            being_cancelled=self._being_cancelled,
            is_prompting=lambda: bool(self._prompts),
            tell=self._updates.tell_question,
        )
        await self._stack.enter_async_context(self.follower)
        await self.follower.until(_is_loaded)
        self._commands = await self.client.commands(self.follower.workspace_id)

    def keep(self, stack: AsyncExitStack) -> None:
        """What has to be closed with it."""
        self._stack = stack

    async def close(self) -> None:
        """The editor looks no more; whatever runs goes on."""
        await self.stop_telling()
        if self._desk:
            self._desk.close()
        for ending in self._prompts.values():
            if not ending.done():
                ending.set_exception(RpcError(INTERNAL_ERROR, "the session was closed"))
        await self._stack.aclose()

    async def settled(self) -> None:
        """Wait until every prompt of the editor has its answer, if that does not take long."""
        if self._prompts:
            await asyncio.wait(set(self._prompts.values()), timeout=SETTLE_S)
            await asyncio.sleep(0)  # the answers are written before the one to whoever waits here

    async def stop_telling(self) -> None:
        """Until `begin_telling`: the editor opens the session anew."""
        if self._pumping:
            self._pumping.cancel()
            await asyncio.wait({self._pumping})
            self._pumping = None

    # ── what the editor is told ──

    @property
    def updates(self) -> SessionUpdates:
        assert self._updates
        return self._updates

    def state(self) -> Json:
        """What the answer to a request that opens a session says about it."""
        view = self.follower.view
        record = view.sessions.get(self.id)
        session = record.session if record else None
        return {"modes": modes(session), "configOptions": config_options(session, view.workspace)}

    async def replay(self) -> None:
        """Give the editor everything that there was."""
        view = self.follower.view
        while view.conversation.has_older and len(view.conversation.messages) < MOST_REPLAYED:
            self.follower.load_older()
            await self.follower.until(_begins_elsewhere(view.conversation.messages.first_id))
        self.updates.begin(replay=True)
        await self._tell_all()

    def skip_history(self) -> None:
        """The editor has it, or wants none."""
        self.updates.begin(replay=False)

    async def bring(self, servers: Sequence[PassedServer]) -> None:
        """MCP servers of the editor, for this session. When the editor goes they stay: its runs may still use them."""
        if servers or self._has_brought:
            passed = await self.client.pass_servers(self.follower.workspace_id, self.id, servers)
            self._has_brought = bool(servers)
            if why := why_not(passed):
                self.updates.tell(why)

    def adopt(self) -> None:
        """Runs that an earlier process of the same editor began have no prompt to answer, but can be cancelled."""
        record = self.follower.view.sessions.get(self.id)
        runs = record.open_runs if record else []
        self._adopted = {run.run_id for run in runs if run.posted_by and run.posted_by == self.client.name}

    def begin_telling(self) -> None:
        """From here on the editor is told whatever happens."""
        self._update(commands_update(self._commands))
        self._pumping = asyncio.create_task(self._pump())

    async def _pump(self) -> None:
        assert self._desk
        seen = -1
        try:
            while True:
                seen = await self.follower.changed(seen)
                await self._tell_all()
                self._desk.look()
                await self._tell_all()  # what the desk could not ask, it tells
                self._answer_prompts()
                await self._peer.drain()
        except Exception as error:  # the server refuses us, or cannot be understood: no waiting changes that
            self._failure = str(error)
            self._answer_prompts()

    async def _tell_all(self) -> None:
        while True:
            for update in self.updates.take():
                self._update(update)
            if not self.updates.is_pending:
                return
            await self._peer.drain()

    def _update(self, update: Json) -> None:
        self._peer.notify("session/update", {"sessionId": self.id, "update": update})

    def _step(self, fed: ViewInput, step: Step) -> None:
        if self._updates:
            self._updates.step(fed, step)

    # ── prompts ──

    async def prompt(self, prompt: PostPrompt, run_id: str) -> Json:
        """Post it, and wait for its end. What it does before it waits is done at once."""
        self.follower.post(structs.replace(prompt, run_id=run_id, session_id=self.id))
        return await self._ending(run_id)

    async def summarize(self, focus: str) -> Json:
        is_cancelled = asyncio.Event()
        self._starting.add(is_cancelled)
        try:
            receipt = await self.client.summarize(self.follower.workspace_id, self.id, focus=focus)
        finally:
            self._starting.discard(is_cancelled)
        if is_cancelled.is_set():
            self._cancel(receipt.run_id)
        return await self._ending(receipt.run_id)

    async def _ending(self, run_id: str) -> Json:
        self._own.add(run_id)
        ending = self._prompts[run_id] = asyncio.get_running_loop().create_future()
        try:
            await self._tell_all()
            self._answer_prompts()  # it may have ended already: nothing else would tell
            terminal = await ending
        finally:
            del self._prompts[run_id]
            self._being_cancelled.discard(run_id)
        return prompt_answer(terminal, self.follower.view.conversation.messages.get(terminal.message_id))

    def cancel(self, run_id: str = "") -> None:
        """What this editor's prompts made, and nothing else: one of them, or all."""
        for own in [run_id] if run_id in self._prompts else [] if run_id else list(self._prompts):
            self._cancel(own)
        if not run_id:
            for adopted in self._adopted & self.follower.view.sessions.open_run_ids():
                self._cancel(adopted)
            for is_cancelled in self._starting:
                is_cancelled.set()

    def _cancel(self, run_id: str) -> None:
        self._being_cancelled.add(run_id)
        self.follower.cancel(self.id, run_id)

    def _answer_prompts(self) -> None:
        """Those whose run has ended: the editor has been told all of it by now."""
        view = self.follower.view
        for run_id, ending in self._prompts.items():
            if ending.done():
                continue
            sent = view.outbox.prompts.get(run_id)
            if sent and sent.state == "refused":
                self.follower.drop(run_id)
                ending.set_exception(RpcError(INVALID_PARAMS, sent.error))
            elif terminal := _terminal(view, run_id):
                ending.set_result(terminal)
            elif self._failure:
                ending.set_exception(RpcError(INTERNAL_ERROR, self._failure))
            elif view.current != self.id:  # it was deleted, which cancels its runs
                ending.set_result(RunComplete(session_id=self.id, run_id=run_id, message_id="", cancelled=True))

    # ── settings ──

    async def change(self, change: UpdateSession) -> None:
        """Change the session, and wait until that is seen here."""
        session = await self.client.update_session(self.follower.workspace_id, self.id, change)
        wanted = (session.mode, session.model)

        def is_seen(view: View) -> bool:
            record = view.sessions.get(self.id)
            return not (record and record.session) or (record.session.mode, record.session.model) == wanted

        await self.follower.until(is_seen)


def _begins_elsewhere(message_id: str) -> Callable[[View], bool]:
    """Whether the first message that is known is another one by now."""
    return lambda view: view.conversation.messages.first_id != message_id


def _is_loaded(view: View) -> bool:
    return view.link.state == "connected" and view.workspace is not None and not any(view.loads)


def _terminal(view: View, run_id: str) -> RunComplete | None:
    """How a run of the shown session ended, once everything before its end is known too."""
    terminal = view.conversation.terminals.get(run_id)
    if terminal and not view.link.gap:
        return terminal
    record = view.find_run(run_id)
    if record is None or not record.run.ended or not _is_loaded(view):
        return None
    host = view.find_run(record.run.folded_into) if record.run.folded_into else None
    return terminal_of(record.run, host.run if host else None)
