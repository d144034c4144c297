"""All extensions of a workspace: opened and closed by it, one host for each kind.

Opening starts nothing. A new kind is one more host here; it gets what it needs from `ExtensionParts`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from covey.config.schema import ConfigError
from covey.engine.extensions.hook_host import HookHost
from covey.engine.extensions.kind import ExtensionHost
from covey.engine.extensions.lsp import LspHost
from covey.engine.extensions.mcp import McpHost
from covey.engine.extensions.mcp_prompts import McpPrompts
from covey.protocol.extensions import ExtensionView
from covey.tools.base import Tool
from covey.tools.process_use import used_by
from covey.tools.threads import in_thread

log = logging.getLogger(__name__)


class Extensions:
    """What the workspace and its commands know of extensions."""

    def __init__(self, mcp: McpHost, languages: LspHost, hooks: HookHost) -> None:
        self.mcp, self.languages, self.hooks = mcp, languages, hooks
        self._hosts: Sequence[ExtensionHost] = (mcp, languages, hooks)
        self.prompts = McpPrompts(mcp)

    def untold(self, session_id: str, window: int, tools: Mapping[str, Tool[Any]]) -> set[str]:
        """Which of these tools the model is not told of, because there are too many."""
        return self.mcp.untold(session_id, window, tools)

    def tools(self) -> dict[str, Tool[Any]]:
        """What they add to the tools of every run, in a steady order."""
        return {name: tool for host in self._hosts for name, tool in host.tools().items()}

    def views(self) -> list[ExtensionView]:
        return [view for host in self._hosts for view in host.views()]

    async def measured(self) -> list[ExtensionView]:
        """Each of them with what its processes use."""
        pids: dict[tuple[str, str], int] = {}
        for host in self._hosts:
            kinds = {view.name: view.kind for view in host.views()}
            pids |= {(kinds[name], name): pid for name, pid in host.pids().items() if name in kinds}
        used = await in_thread(lambda: used_by(pids.values())) if pids else {}
        return [_with_use(view, pids.get((view.kind, view.name)), used) for view in self.views()]

    async def reload(self) -> None:
        """The configuration was read again. A mistake of one kind is not the others' concern."""
        for host in self._hosts:
            try:
                await host.reload()
            except ConfigError as error:
                log.warning("extensions cannot be read: %s", error)

    async def close(self) -> None:
        """End everything, side by side."""
        await asyncio.gather(*(host.close() for host in self._hosts))


def _with_use(view: ExtensionView, pid: int | None, used: Mapping[int, tuple[float, float]]) -> ExtensionView:
    if pid is None or pid not in used:
        return view
    memory_mb, cpu_s = used[pid]
    return msgspec.structs.replace(view, pid=pid, memory_mb=round(memory_mb, 1), cpu_s=round(cpu_s, 2))
