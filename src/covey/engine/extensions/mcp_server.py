"""One MCP server of a workspace: started when it is needed, shared by all sessions, ended with all its processes.

What may follow what is decided by `lifecycle/extensions.py`; here it is carried out. Its tools are those of its pins,
as far as the server still offers them unchanged.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar, assert_never

import msgspec

from covey.config.approvals import JudgedEntry, checked
from covey.config.schema import McpSettings
from covey.engine.extensions.elicitation import answered
from covey.engine.extensions.kind import ExtensionParts
from covey.engine.extensions.mcp_catalogue import LIST_S, Catalogue
from covey.engine.extensions.mcp_definitions import cleaned
from covey.engine.extensions.mcp_pins import PinnedPrompt
from covey.engine.extensions.mcp_skills import PinnedSkill
from covey.engine.extensions.mcp_ways import open_way
from covey.lifecycle.extensions import Decision, ExtensionLife
from covey.protocol.errors import BadRequest
from covey.protocol.extensions import ExtensionView, McpEvent, McpEventType, OfferedTool, v1_state
from covey.sandbox.confinement import Confinement
from covey.tools.base import ToolContext, ToolFailed
from covey.tools.mcp.client import Listed, McpClient
from covey.tools.mcp.words import LoginNeeded, McpError

log = logging.getLogger(__name__)
T = TypeVar("T")

IDLE_S = 900.0
"""A server that nobody has called for so long is ended; the next call starts it."""
BURST_S = 0.05
"""Changes of lists that come together are looked at once."""


@dataclass(slots=True)
class _Running:
    """A server that was started."""

    client: McpClient
    calls: list[ToolContext] = field(default_factory=list)
    """Those under way: whoever is asked something, is asked for the newest of them."""
    relisting: asyncio.Task[None] | None = None
    watching: asyncio.Task[None] | None = None


class McpServer:
    """One entry, and what became of it."""

    def __init__(
        self, parts: ExtensionParts, judged: JudgedEntry, settings: McpSettings, changed: Callable[[], None]
    ) -> None:
        self.name = judged.entry.name
        self.judged = judged
        self.settings = settings
        self.catalogue = Catalogue(parts, judged, settings, lambda: self._announce("tools_list_changed"))
        self._parts = parts
        self._changed = changed
        self._life = ExtensionLife()
        self._starting: asyncio.Task[None] | None = None
        self._running: _Running | None = None
        self._endings: set[asyncio.Task[None]] = set()
        self._idle: asyncio.TimerHandle | None = None
        self._changed_lists: set[Listed] = set()
        """What the server said has changed since it was last asked for its lists."""
        self._asked_for_entry = ""
        self._log = ""

    async def load(self) -> None:
        """Take up what is known of it: whether it may be used, and its pins. Starts nothing that is waited for."""
        await self.catalogue.load()
        if wrong := checked(self.judged.entry):
            self._apply(self._life.unapproved(f"its entry is wrong: {wrong}"))
            return
        self._judge(self.judged)
        wants_tools = not self.catalogue.is_known or self.settings.start == "early"
        if self._life.is_approved and wants_tools:
            self.want()

    def _judge(self, judged: JudgedEntry) -> None:
        """Whether what would be executed is approved; if not, it is asked about."""
        self.judged = judged
        if judged.is_approved:
            self._parts.desk.withdraw(self._asked_for_entry)
            self._apply(self._life.approved())
            return
        self._apply(self._life.unapproved("nobody has approved it as it is now"))
        self._asked_for_entry = self._parts.ask_about(judged, self._entry_approved)

    def judge_again(self, judged: JudgedEntry) -> None:
        """The configuration was read again: it may have been approved, or be no longer."""
        self._judge(judged)
        if self._life.is_approved and not self.catalogue.is_known:
            self.want()

    def _entry_approved(self) -> None:
        self._apply(self._life.approved())
        self.want()

    @property
    def offered(self) -> dict[str, OfferedTool]:
        """The tools that the model may have: none, while the entry itself is not approved."""
        return self.catalogue.offered if self._life.is_approved else {}

    @property
    def skills(self) -> tuple[PinnedSkill, ...]:
        return self.catalogue.skills if self._life.is_approved else ()

    @property
    def prompts(self) -> tuple[PinnedPrompt, ...]:
        """The same for what people can ask for."""
        return self.catalogue.pins.prompts if self._life.is_approved else ()

    @property
    def pid(self) -> int | None:
        child = getattr(self._running and self._running.client.transport, "child", None)
        return child.pid if child and self._life.has_process else None

    def view(self) -> ExtensionView:
        state, why = self._life.state, self._life.why
        catalogue = self.catalogue
        if state in ("ready", "off", "resting") and catalogue.withheld and not (catalogue.offered or catalogue.skills):
            state, why = "needs_approval", "nobody has approved its tools as they are now"
        return ExtensionView(
            kind="mcp",
            name=self.name,
            state=state,
            why=why or None,
            source=str(self.judged.entry.source),
            tools=tuple(self.offered),
            withheld=catalogue.withheld,
            prompts=len(self.prompts),
            resources=catalogue.pins.resources,
            left_out=tuple(catalogue.left_out),
            log=self.log() or None,
        )

    def log(self) -> str:
        """The end of what its process wrote to stderr."""
        child = getattr(self._running and self._running.client.transport, "child", None)
        return child.errors if child else self._log

    # ── life ──

    def _apply(self, ruling: tuple[ExtensionLife, Decision]) -> None:
        before, (self._life, decision) = self._life, ruling
        match decision:
            case Decision.START:
                self._starting = asyncio.get_running_loop().create_task(self._start())
            case Decision.STOP:
                self._stop()
            case Decision.NOTHING:
                pass
            case _:
                assert_never(decision)
        if (before.state, before.why) != (self._life.state, self._life.why):
            self._announce("state_changed")

    def want(self) -> None:
        """Somebody needs it: start it, if that may be. Nobody waits here."""
        self._apply(self._life.wanted(asyncio.get_running_loop().time()))

    def broke(self, bound: str) -> None:
        """It broke a bound that somebody else watches over: it is ended."""
        self._apply(self._life.failed(bound))

    def logged_in(self) -> None:
        self._apply(self._life.logged_in())

    async def close(self) -> None:
        """End it for good, and wait until nothing of it is left."""
        self._apply(self._life.closed())
        self._parts.desk.withdraw(self._asked_for_entry)
        self.catalogue.close()
        await self._ended()

    async def _ended(self) -> None:
        while self._endings:
            await asyncio.wait(set(self._endings))

    def _stop(self) -> None:
        """End what runs of it, in the background: a start under way ends its own."""
        starting, self._starting = self._starting, None
        running, self._running = self._running, None
        if self._idle:
            self._idle.cancel()
        if starting and not starting.done() and starting is not asyncio.current_task():
            starting.cancel()
            self._keep(starting)
        if running:
            self._keep(asyncio.get_running_loop().create_task(self._end(running)))

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._endings.add(task)
        task.add_done_callback(self._endings.discard)

    async def _end(self, running: _Running) -> None:
        for task in (running.relisting, running.watching):
            if task:
                task.cancel()
        await self._closed(running.client)

    async def _closed(self, client: McpClient | None) -> None:
        if client:
            await client.close()
            if child := getattr(client.transport, "child", None):
                self._log = child.errors

    async def _start(self) -> None:
        """Start it and learn what it offers. Says how that went to the life; a cancel ends all of it."""
        client: McpClient | None = None
        try:
            [judged] = await self._parts.judge([self.judged.entry])
            if not judged.is_approved:
                self._judge(judged)
                return
            confinement = await self._parts.confine() if self.settings.sandbox else Confinement()
            way = open_way(self._parts, self.name, self.settings, confinement)
            client = McpClient(way, self._asked, self._list_changed, self.catalogue.pins.era)
            await client.open(self.settings.start_timeout_s)
            await self.catalogue.learn(client)
        except Exception as error:  # whatever it is: else it would be starting for ever
            if not isinstance(error, McpError | OSError | ValueError | BadRequest):
                log.exception("the MCP server %s could not be started", self.name)
            await self._closed(client)
            self._failed(error)
        except BaseException:
            await self._closed(client)
            raise
        else:
            self._run(client)

    def _run(self, client: McpClient) -> None:
        running = self._running = _Running(client)
        running.watching = asyncio.get_running_loop().create_task(self._watch(running))
        self._apply(self._life.started())
        if self._running is not running or self._life.state != "ready":  # it was stopped in this very moment
            self._keep(asyncio.get_running_loop().create_task(self._end(running)))
            return
        self._rest_later()
        self._look_again(running)

    async def _watch(self, running: _Running) -> None:
        """Notice that it has ended by itself."""
        why = await asyncio.shield(running.client.ended)
        if self._running is running:
            self._failed(why)

    def _failed(self, why: Exception) -> None:
        if isinstance(why, LoginNeeded):
            self._apply(self._life.needs_login(f"{why}: covey mcp login {self.name}"))
        else:
            self._apply(self._life.failed(_why(why)))

    def _rest_later(self) -> None:
        if self._idle:
            self._idle.cancel()
        self._idle = asyncio.get_running_loop().call_later(IDLE_S, self._rest)

    def _rest(self) -> None:
        if self._running and self._running.calls:
            self._rest_later()
        else:
            self._apply(self._life.idle())

    # ── use ──

    async def ready(self) -> McpClient:
        """The running server; starts it if need be, and waits for that. A cancel ends the waiting, not the start."""
        self.want()
        if self._running:
            self._rest_later()
            return self._running.client
        starting = self._starting
        if starting and self._life.state == "starting":
            await asyncio.wait([starting])
        if self._running is None:
            now = asyncio.get_running_loop().time()
            why = self._life.refusal(now) or self._life.why or "it could not be started"
            raise ToolFailed(f"The MCP server {self.name} cannot be used: {why}")
        self._rest_later()
        return self._running.client

    async def call(
        self, tool: str, arguments: Mapping[str, Any], context: ToolContext, on_progress: Callable[[str], None]
    ) -> dict[str, Any]:
        """Have it run a tool. Raises ToolFailed."""
        client = await self.ready()

        def progressed(params: dict[str, Any]) -> None:
            total, message = params.get("total"), params.get("message")
            share = f"{params.get('progress')}/{total}" if total else str(params.get("progress"))
            on_progress(f"{share} {message or ''}".strip())

        settings = self.settings
        with self._asks_for(context):
            return await self._use(
                client.call(
                    tool,
                    arguments,
                    idle_s=settings.idle_timeout_s,
                    total_s=settings.call_timeout_s,
                    on_progress=progressed,
                )
            )

    async def read(self, uri: str, context: ToolContext | None = None) -> dict[str, Any]:
        """A resource. Raises ToolFailed."""
        client = await self.ready()
        with self._asks_for(context):
            return await self._use(client.request("resources/read", {"uri": uri}, idle_s=LIST_S))

    async def resources(self) -> list[dict[str, Any]]:
        client = await self.ready()
        return (await self._use(client.list("resources", LIST_S))).items

    async def prompt(self, name: str, arguments: Mapping[str, str]) -> dict[str, Any]:
        """A prompt with its arguments filled in. Raises ToolFailed."""
        client = await self.ready()
        return await self._use(client.request("prompts/get", {"name": name, "arguments": arguments}, idle_s=LIST_S))

    async def refresh(self) -> None:
        """Ask it for its lists again. Raises ToolFailed."""
        await self._use(self.catalogue.learn(await self.ready()))
        self._announce("tools_list_changed")

    async def _use(self, work: Awaitable[T]) -> T:
        try:
            return await work
        except LoginNeeded as error:
            self._failed(error)
            raise ToolFailed(f"The MCP server {self.name} needs a login: covey mcp login {self.name}") from None
        except McpError as error:
            raise ToolFailed(f"The MCP server {self.name} failed: {_why(error)}") from None

    @contextmanager
    def _asks_for(self, context: ToolContext | None) -> Iterator[None]:
        calls = self._running.calls if self._running else []
        if context:
            calls.append(context)
        try:
            yield
        finally:
            if context:
                calls.remove(context)
            self._rest_later()

    # ── what the server asks and tells ──

    async def _asked(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        calls = self._running.calls if self._running else []
        return await answered(self.name, self._parts.root, calls, method, params)

    def _list_changed(self, what: Listed) -> None:
        self._changed_lists.add(what)
        if self._running:
            self._look_again(self._running)

    def _look_again(self, running: _Running) -> None:
        if self._changed_lists and (running.relisting is None or running.relisting.done()):
            running.relisting = asyncio.get_running_loop().create_task(self._relist(running))

    async def _relist(self, running: _Running) -> None:
        while self._changed_lists:
            await asyncio.sleep(BURST_S)
            self._changed_lists.clear()
            try:
                await self.catalogue.learn(running.client)
            except McpError as error:
                log.warning("the MCP server %s said that its lists changed, and gave none: %s", self.name, error)
            else:
                self._announce("tools_list_changed")

    def _announce(self, what: McpEventType) -> None:
        self._changed()
        view = msgspec.structs.replace(self.view(), log=None)
        event = McpEvent(
            type=what,
            name=self.name,
            state=v1_state(view.state),
            error=view.why if view.state == "failed" else None,
            tool_count=len(view.tools),
            prompt_count=view.prompts,
            resource_count=view.resources,
            extension=view,
        )
        self._parts.announce(event)


def _why(error: BaseException) -> str:
    """For people. It may be a server's words: bounded, and on few lines."""
    return cleaned(str(error))[:2_000] or type(error).__name__
