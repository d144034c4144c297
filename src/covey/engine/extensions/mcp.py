"""The MCP servers of a workspace: which there are, what they add to the tools, and their end.

Reading the configuration starts nothing that anybody waits for. A server whose entry changed is another one; the old
one ends in the background.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from covey.config.approvals import ExtensionEntry, JudgedEntry, mcp_entry
from covey.config.expand import expand
from covey.config.key_variables import PROVIDERS_KEYS
from covey.config.load import PROJECT_FILE, config_dir
from covey.config.schema import McpSettings
from covey.engine.extensions.kind import ExtensionParts
from covey.engine.extensions.mcp_definitions import model_names
from covey.engine.extensions.mcp_server import McpServer
from covey.engine.extensions.mcp_skill_tool import skill_tool
from covey.engine.extensions.mcp_tools import OWN, look_tool, resource_tool, server_tool
from covey.machine.names import TOKEN_VARIABLE
from covey.protocol.extensions import ExtensionView
from covey.tools.base import Tool
from covey.tools.process_use import used_by
from covey.tools.threads import in_thread

SERVERS_LIMIT = 20
"""Servers of one workspace. More processes than this help nobody."""
BROUGHT = Path("an editor")
"""In the place of the file that names a server: a client has brought it along."""
MEMORY_LIMIT_MB = 4_096
"""Of one server with all its processes: twice of what `covey status` marks."""
WEIGHED_EACH_S = 10.0
TOOLS_TOLD = 40
WINDOW_SHARE = 0.05
"""Above so many tools, or such a share of the context window, only names are told, and definitions when asked for."""
CHARS_PER_TOKEN = 4
REVEALED_SESSIONS = 1_000
"""Sessions of which it is remembered which definitions they have looked at."""


class McpHost:
    """All MCP servers of one workspace, by name."""

    def __init__(self, parts: ExtensionParts) -> None:
        self._parts = parts
        self._servers: dict[str, McpServer] = {}
        self._passed: dict[str, dict[str, McpSettings]] = {}
        """By session: servers that a client has brought along for it."""
        self._reloading = asyncio.Lock()
        self._left_out: list[ExtensionView] = []
        self._endings: set[asyncio.Task[None]] = set()
        self._tools: dict[str, Tool[Any]] | None = None
        self._revealed: dict[str, list[str]] = {}
        self._weighing: asyncio.Task[None] | None = None
        self._look = look_tool(self.tools, self._reveal)
        self._resources = resource_tool(lambda: self._servers)

    # ── which there are ──

    async def pass_along(self, session_id: str, servers: Mapping[str, McpSettings]) -> None:
        """These are all that clients bring for the session; they are the user's own, as what brings them is."""
        if self._passed.pop(session_id, {}) == servers == {}:
            return
        if servers:
            self._passed[session_id] = dict(servers)
        await self.reload()

    async def reload(self) -> None:
        async with self._reloading:
            await self._reload()

    async def _reload(self) -> None:
        wanted = self._wanted()
        judged = {each.entry.name: each for each in await self._parts.judge([entry for entry, _ in wanted.values()])}
        for name in [name for name in self._servers if name not in wanted]:
            self._end(self._servers.pop(name))
        for name, (_, settings) in wanted.items():
            known = self._servers.get(name)
            if known and known.settings == settings and known.judged.digest == judged[name].digest:
                if known.judged.standing != judged[name].standing:
                    known.judge_again(judged[name])
                known.logged_in()  # perhaps somebody has: the next who needs it finds out
                continue
            if known:
                self._end(known)
            await self._open(judged[name], settings)
        if self._servers and self._weighing is None:
            self._weighing = asyncio.get_running_loop().create_task(self._weigh())
        order = sorted(self._servers)
        self._servers = {name: self._servers[name] for name in order}
        self._tools = None

    async def _open(self, judged: JudgedEntry, settings: McpSettings) -> None:
        server = McpServer(self._parts, judged, settings, self._changed)
        self._servers[server.name] = server
        await server.load()

    def _wanted(self) -> dict[str, tuple[ExtensionEntry, McpSettings]]:
        """The user's own, the project's and what clients have brought, each under names that those before it have not.

        Those that are switched off are not there.
        """
        config, own_file = self._parts.config(), config_dir(self._parts.shared.environ) / "config.toml"
        found: dict[str, tuple[ExtensionEntry, McpSettings]] = {}
        for name, settings in config.mcp.items():
            if settings.enabled:
                found[name] = mcp_entry(name, settings, own_file, is_users_own=True), settings
        source = self._parts.root / PROJECT_FILE
        for name, settings in config.of_project.mcp.items():
            if settings.enabled and name not in config.mcp:
                found[name] = mcp_entry(name, settings, source, is_users_own=False), self._filled_in(settings)
        for passed in self._passed.values():
            for name, settings in passed.items():
                found.setdefault(name, (mcp_entry(name, settings, BROUGHT, is_users_own=True), settings))
        kept = dict(list(found.items())[:SERVERS_LIMIT])
        why = f"there are more than {SERVERS_LIMIT} MCP servers: switch some off with `enabled = false`"
        self._left_out = [
            ExtensionView(kind="mcp", name=name, state="failed", why=why, source=str(entry.source))
            for name, (entry, _) in found.items()
            if name not in kept
        ]
        return kept

    def _filled_in(self, settings: McpSettings) -> McpSettings:
        """A project's entry with its variables: never a provider's key or the token, whatever it names."""
        hidden = PROVIDERS_KEYS | {TOKEN_VARIABLE, *self._parts.config().key_variables}
        environ = {name: value for name, value in self._parts.environ().items() if name not in hidden}
        filled: McpSettings = msgspec.convert(expand(msgspec.to_builtins(settings), environ, []), McpSettings)
        return filled

    def find(self, name: str) -> McpServer | None:
        return self._servers.get(name)

    @property
    def servers(self) -> Mapping[str, McpServer]:
        return self._servers

    def views(self) -> list[ExtensionView]:
        return [*(server.view() for server in self._servers.values()), *self._left_out]

    def pids(self) -> Mapping[str, int]:
        return {name: pid for name, server in self._servers.items() if (pid := server.pid)}

    def _end(self, server: McpServer) -> None:
        task = asyncio.get_running_loop().create_task(server.close())
        self._endings.add(task)
        task.add_done_callback(self._endings.discard)

    async def _weigh(self) -> None:
        """End what takes more memory than any server should. Where the system does not say how much, nothing is."""
        while True:
            await asyncio.sleep(WEIGHED_EACH_S)
            if pids := self.pids():
                used = await in_thread(lambda: used_by(pids.values()))
                for name, pid in pids.items():
                    if used.get(pid, (0.0, 0.0))[0] > MEMORY_LIMIT_MB and (server := self._servers.get(name)):
                        server.broke(f"it used more than {MEMORY_LIMIT_MB} MB of memory, and was ended")

    async def close(self) -> None:
        if self._weighing:
            self._weighing.cancel()
        for server in self._servers.values():
            self._end(server)
        while self._endings:
            await asyncio.wait(set(self._endings))

    # ── what they add ──

    def _changed(self) -> None:
        self._tools = None

    def tools(self) -> Mapping[str, Tool[Any]]:
        """All of them, by what the model calls them, sorted by server and name; with our own at the end."""
        if self._tools is None:
            self._tools = self._made()
        return self._tools

    def _made(self) -> dict[str, Tool[Any]]:
        tools: dict[str, Tool[Any]] = {}
        for server in self._servers.values():
            names = model_names(server.name, server.offered)
            tools |= {names[tool.name]: server_tool(server, tool, names[tool.name]) for tool in server.offered.values()}
        if any(server.catalogue.pins.resources for server in self._servers.values()):
            tools[self._resources.name] = self._resources
        if any(server.skills for server in self._servers.values()):
            tools["mcp_skill"] = skill_tool(self._servers)
        if tools.keys() - OWN:
            tools[self._look.name] = self._named(tools)
        return tools

    def _named(self, tools: Mapping[str, Tool[Any]]) -> Tool[Any]:
        """The tool that shows definitions, with the names of all that there are."""
        names = ", ".join(name for name in tools if name not in OWN)
        return replace(
            self._look, description=lambda: f"{look_tool(self.tools, self._reveal).description()}\nThere are: {names}."
        )

    def untold(self, session_id: str, window: int, tools: Mapping[str, Tool[Any]]) -> set[str]:
        """Which of these the model is not told of: if they are too many, all that it has not looked at."""
        ours = [name for name in tools if name in self.tools()]
        those = [name for name in ours if name not in OWN]
        size = sum(len(tools[name].description()) + len(str(tools[name].schema)) for name in those)
        too_many = len(those) > TOOLS_TOLD or (window and size / CHARS_PER_TOKEN > WINDOW_SHARE * window)
        if not too_many:
            return {self._look.name}
        return set(those) - set(self._revealed.get(session_id, ()))

    def _reveal(self, session_id: str, names: Sequence[str]) -> None:
        shown = self._revealed.pop(session_id, [])
        self._revealed[session_id] = list(dict.fromkeys((*shown, *names)))
        if len(self._revealed) > REVEALED_SESSIONS:
            del self._revealed[next(iter(self._revealed))]
