"""The language servers of a workspace: started by the first question, shared by its sessions, at rest when idle.

They run project code more often than one would think (two of ten did so as soon as a file was opened): in a directory
that is not trusted none is started, whoever configured it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from covey.config.approvals import JudgedEntry, lsp_entry
from covey.config.load import PROJECT_FILE, config_dir, is_trusted
from covey.config.schema import LspSettings
from covey.engine.extensions.kind import ExtensionParts
from covey.engine.extensions.lsp_slot import LspSlot
from covey.machine.programs import find_program
from covey.protocol.extensions import ExtensionView
from covey.tools.base import Tool, ToolFailed
from covey.tools.files import FileReads, read_for_change
from covey.tools.lsp.complaints import Complaint
from covey.tools.lsp.connection import RequestRefused, ServerGone
from covey.tools.lsp.entries import ServerEntry, entries_of
from covey.tools.lsp.looking_tools import looking_tools
from covey.tools.lsp.rename_tool import rename_tool
from covey.tools.lsp.server import LanguageServer
from covey.tools.threads import in_thread

AFTER_EDIT_S = 3.0
"""How long the result of an edit waits for what is wrong with it. It comes without, if it takes longer."""
NOT_TRUSTED = "this directory is not trusted, and language servers run code of the project: `covey trust` it first"


class LspHost:
    """All language servers of one workspace, as `ExtensionHost` and as `LanguageService`."""

    def __init__(self, parts: ExtensionParts, reads: FileReads, *, after_edit_s: float = AFTER_EDIT_S) -> None:
        self._parts = parts
        self._after_edit_s = after_edit_s
        self._slots: dict[str, LspSlot] = {}
        offered = [*looking_tools(self), rename_tool(self, reads)]
        self._offered: dict[str, Tool[Any]] = {tool.name: tool for tool in offered}
        self._is_trusted = False

    # ── as an extension host ──

    async def reload(self) -> None:
        self._is_trusted, entries, judged = await self._read()
        for name in [name for name in self._slots if self._slots[name].entry != entries.get(name)]:
            await self._slots.pop(name).close()
        for name, entry in entries.items():
            slot = self._slots.setdefault(name, LspSlot(self._parts, entry))
            known = judged.get(name)
            slot.approve(known)
            if known is not None and not known.is_approved:
                self._parts.ask_about(known, slot.approve)

    async def _read(self) -> tuple[bool, dict[str, ServerEntry], dict[str, JudgedEntry]]:
        """Whether the directory is trusted, which servers there can be, and how those of the project stand."""
        parts, config = self._parts, self._parts.config()
        if config.tools.language_servers == "off":
            return False, {}, {}
        path = parts.environ().get("PATH", "")
        own, of_project = config.lsp, {n: s for n, s in config.of_project.lsp.items() if n not in config.lsp}
        disabled = frozenset(name for name, settings in own.items() if not settings.enabled)
        configured = [_entry(name, settings) for name, settings in {**of_project, **own}.items() if settings.enabled]
        trusted, entries = await in_thread(
            lambda: (
                is_trusted(parts.root, parts.shared.environ),
                entries_of(
                    configured,
                    disabled,
                    lambda program: find_program(program, path, parts.root),
                    known=config.tools.language_servers == "auto",
                ),
            )
        )
        source = config_dir(parts.shared.environ) / "config.toml"
        named = [lsp_entry(name, s, source, is_users_own=True) for name, s in own.items() if s.enabled]
        file = parts.root / PROJECT_FILE
        named += [lsp_entry(name, s, file, is_users_own=False) for name, s in of_project.items() if s.enabled]
        judged = {each.entry.name: each for each in await parts.judge(named)}
        return trusted, {entry.name: entry for entry in entries}, judged

    def views(self) -> list[ExtensionView]:
        """Those that somebody has configured, and of the others those that were needed."""
        shown = [slot for slot in self._slots.values() if slot.is_configured or slot.was_needed]
        return [slot.view(why="" if self._is_trusted else NOT_TRUSTED) for slot in shown]

    def tools(self) -> Mapping[str, Tool[Any]]:
        """Those that some server can answer. Others would only cost, and lead to an error."""
        usable = [slot.entry for slot in self._usable(None)]
        if all(entry.only_complains for entry in usable):
            return {name: tool for name, tool in self._offered.items() if usable and name == "diagnostics"}
        return self._offered

    def pids(self) -> Mapping[str, int]:
        return {name: slot.pid for name, slot in self._slots.items() if slot.pid is not None}

    async def close(self) -> None:
        await asyncio.gather(*(slot.close() for slot in self._slots.values()))

    # ── what clients may ask ──

    def known(self, name: str) -> dict[str, list[Complaint]] | None:
        """What a server has found wrong with files as they are, by URI; None: there is none of this name."""
        slot = self._slots.get(name)
        if slot is None:
            return None
        return slot.running.server.documents.complaints if slot.running else {}

    async def start(self, path: Path) -> None:
        """Have the servers for such a file run. One that cannot says so by its state."""
        await asyncio.gather(*(slot.wanted() for slot in self._usable(path)), return_exceptions=True)

    async def rest(self) -> None:
        """End those that nobody waits for."""
        await asyncio.gather(*(slot.rest() for slot in self._slots.values()))

    # ── as a language service ──

    async def server_for(self, path: Path, capability: str) -> LanguageServer:
        reasons = []
        for slot in self._usable(path):
            try:
                server = await slot.wanted()
            except ToolFailed as error:
                reasons.append(str(error))
                continue
            if server.can(capability):
                await self._catch_up(server)
                return server
            reasons.append(f"{slot.entry.name} cannot do that")
        if not reasons:
            reasons = [f"no language server is for files like {path.name}" if self._is_trusted else NOT_TRUSTED]
        raise ToolFailed(f"No language server can answer: {'; '.join(reasons)}. Use grep and view.")

    async def any_server(self, capability: str) -> list[LanguageServer]:
        """Those that run already; if none does, all are started."""
        slots = [slot for slot in self._slots.values() if slot.running] or list(self._usable(None))
        started = await asyncio.gather(*(slot.wanted() for slot in slots), return_exceptions=True)
        servers = [found for found in started if isinstance(found, LanguageServer) and found.can(capability)]
        if not servers:
            raise ToolFailed("No language server can answer that. Use grep, or name a file.")
        for server in servers:
            await self._catch_up(server)
        return servers

    async def complaints(self, path: Path) -> list[Complaint] | None:
        """Of all servers for such a file, side by side. What is not known in time is left out."""
        slots = list(self._usable(path))
        text = await _text(path) if slots else None
        if text is None:
            return None
        asked = [asyncio.ensure_future(self._complaints(slot, path, text)) for slot in slots]
        try:
            await asyncio.wait(asked, timeout=self._after_edit_s)
        finally:
            for each in asked:
                each.cancel()
        known = [each.result() for each in asked if each.done() and not each.cancelled()]
        answered = [complaints for complaints in known if complaints is not None]
        return [complaint for complaints in answered for complaint in complaints] if answered else None

    def files_changed(self, paths: Iterable[Path]) -> None:
        """Tools or commands have changed these: every server that runs learns of it before its next question."""
        changes = {path: 2 if path.exists() else 3 for path in paths}
        for slot in self._slots.values():
            if changes and slot.running:
                slot.running.server.files_changed(changes)

    def _usable(self, path: Path | None) -> Iterable[LspSlot]:
        """Those that may be used for a file, or at all."""
        fitting = [slot for slot in self._slots.values() if path is None or slot.entry.is_for(path)]
        return [slot for slot in fitting if self._is_trusted and slot.is_approved]

    async def _complaints(self, slot: LspSlot, path: Path, text: str) -> list[Complaint] | None:
        with suppress(ToolFailed, ServerGone, RequestRefused, TimeoutError):
            server = await slot.wanted()
            await self._catch_up(server)
            return await server.complaints(path, text)
        return None

    async def _catch_up(self, server: LanguageServer) -> None:
        """Files that it has open, and that are others on disk by now, are sent to it again."""
        for path in server.documents.paths:
            text = await _text(path)
            if text is None:
                server.documents.close(path)
            else:
                server.documents.sync(path, text)


def _entry(name: str, settings: LspSettings) -> ServerEntry:
    return ServerEntry(
        name,
        (settings.command or name, *settings.args),
        frozenset(suffix.lower() if suffix.startswith(".") else f".{suffix.lower()}" for suffix in settings.suffixes),
        env=settings.env,
        options=settings.options,
        settings=settings.settings,
    )


async def _text(path: Path) -> str | None:
    try:
        content, _ = await in_thread(lambda: read_for_change(path, path.name))
    except ToolFailed:
        return None
    return content.decode("utf-8", "replace")
