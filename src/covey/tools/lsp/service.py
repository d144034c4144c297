"""What tools need of a workspace's language servers. `LanguageServers` is the real thing; tests have their own."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from covey.tools.lsp.complaints import Complaint
from covey.tools.lsp.server import LanguageServer


class LanguageService(Protocol):
    async def server_for(self, path: Path, capability: str) -> LanguageServer:
        """A server that is ready, and that can do this with such a file. Raises ToolFailed, with what helps."""
        ...

    async def any_server(self, capability: str) -> list[LanguageServer]:
        """All servers that are ready and can do this, for questions about the whole project."""
        ...

    async def complaints(self, path: Path) -> list[Complaint] | None:
        """What is wrong with a file as it is on disk now; None if no server is for it, or none knows in time."""
        ...
