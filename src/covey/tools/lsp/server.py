"""One running language server: it is told which texts there are, and asked about them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, assert_never

from covey.tools.lsp.client_side import answer_of, initialize_params, registered_methods
from covey.tools.lsp.complaints import Complaint, read_complaints
from covey.tools.lsp.connection import (
    CONTENT_MODIFIED,
    SERVER_CANCELLED,
    LspConnection,
    Pipes,
    RequestRefused,
    ServerGone,
)
from covey.tools.lsp.documents import Document, Documents
from covey.tools.lsp.positions import Encoding, LineIndex, Position

START_S = 30.0
"""Until it has answered `initialize`. The slowest that was seen took nine seconds."""
REQUEST_S = 30.0
"""For a question about a whole project, which a server may have to read first."""
SETTLE_S = 0.3
"""How long what a server says without a version must stay as it is, to count for the newest text."""
GOODBYE_S = 2.0
"""For an orderly end. Its processes are ended after it anyway."""
_PULLS = "textDocument/diagnostic"
_ASKED_AGAIN = 5
"""How often a server may prefer to be asked again."""


class LanguageServer:
    """A server that has been started. Use `start` first, and `goodbye` last; whoever made the pipes ends them."""

    def __init__(
        self,
        pipes: Pipes,
        root: Path,
        *,
        options: Mapping[str, Any] | None = None,
        settings: Mapping[str, Any] | None = None,
        settle_s: float = SETTLE_S,
    ) -> None:
        self._root = root
        self._options, self._settings = options or {}, settings or {}
        self._settle_s = settle_s
        self._connection = LspConnection(pipes, self._asked, self._notified)
        self.documents = Documents(self._connection.notify)
        self._capabilities: Mapping[str, Any] = {}
        self._registered: set[str] = set()
        self._news = asyncio.Event()
        """Set whenever the server says something that somebody may wait for."""
        self._waiting = 0
        self.encoding: Encoding = "utf-16"

    async def serve(self) -> str:
        """Read what it says, until it ends; gives why."""
        try:
            return await self._connection.serve()
        finally:
            self._tell()

    async def start(self) -> None:
        """Introduce each other. Raises ServerGone, RequestRefused, TimeoutError."""
        params = initialize_params(self._root, os.getpid(), self._options)
        result = await self._connection.request("initialize", params, START_S)
        capabilities = result.get("capabilities") if isinstance(result, dict) else None
        self._capabilities = capabilities if isinstance(capabilities, dict) else {}
        if (encoding := self._capabilities.get("positionEncoding")) in ("utf-8", "utf-16", "utf-32"):
            self.encoding = encoding
        self._connection.notify("initialized", {})
        if self._settings:
            self._connection.notify("workspace/didChangeConfiguration", {"settings": dict(self._settings)})

    async def goodbye(self) -> None:
        """Ask it to end by itself, for a moment."""
        try:
            await self._connection.request("shutdown", None, GOODBYE_S)
        except (ServerGone, RequestRefused, TimeoutError):
            return
        self._connection.notify("exit", None)

    def can(self, capability: str) -> bool:
        return bool(self._capabilities.get(capability))

    @property
    def is_asked(self) -> bool:
        """Somebody waits for what it says."""
        return self._waiting > 0 or self._connection.is_asked

    # ── diagnostics ──

    async def complaints(self, path: Path, text: str) -> list[Complaint]:
        """What is wrong with this very text of the file. Waits until it is known; raises ServerGone."""
        document = self.documents.sync(path, text)
        version = document.version
        while document.version == version:
            if self.pulls:
                return await self._pulled(document)
            freshness = document.pushed.freshness
            match freshness:
                case "fresh":
                    return document.pushed.complaints
                case "settling":
                    if await self._has_settled(document, version):
                        document.pushed.settled()
                        return document.pushed.complaints
                case "stale":
                    await self._until_news()
                case _:
                    assert_never(freshness)
        return await self.complaints(path, document.text)  # somebody changed it meanwhile

    @property
    def pulls(self) -> bool:
        """It is asked for diagnostics. Many servers say so only some time after they have started."""
        return self.can("diagnosticProvider") or _PULLS in self._registered

    async def _pulled(self, document: Document) -> list[Complaint]:
        version = document.version
        for _ in range(_ASKED_AGAIN):
            try:
                given = await self._connection.request(_PULLS, {"textDocument": {"uri": document.uri}}, REQUEST_S)
            except RequestRefused as refused:
                if refused.code not in (CONTENT_MODIFIED, SERVER_CANCELLED):
                    raise
            else:
                found = read_complaints(given.get("items") if isinstance(given, dict) else None)
                if document.version == version:
                    document.pulled = found
                return found
        raise TimeoutError

    async def _has_settled(self, document: Document, version: int) -> bool:
        """Without a version, what it said last counts once it has said nothing else of the file for a while."""
        said = document.pushed.times
        with suppress(TimeoutError):
            async with asyncio.timeout(self._settle_s):
                while document.pushed.times == said:
                    await self._until_news()
        return document.pushed.times == said and document.version == version

    async def _until_news(self) -> None:
        self._news.clear()
        self._waiting += 1
        try:
            if not self._connection.why_gone:
                await self._news.wait()
        finally:
            self._waiting -= 1
        if why := self._connection.why_gone:
            raise ServerGone(why)

    # ── questions ──

    async def ask_at(self, method: str, path: Path, text: str, position: Position, **further: Any) -> Any:
        """A question about a place in this very text of a file."""
        document = self.documents.sync(path, text)
        params = {"textDocument": {"uri": document.uri}, "position": position.as_json(), **further}
        return await self._connection.request(method, params, REQUEST_S)

    async def ask(self, method: str, params: dict[str, Any]) -> Any:
        return await self._connection.request(method, params, REQUEST_S)

    def index(self, text: str) -> LineIndex:
        return LineIndex(text, self.encoding)

    def files_changed(self, changes: Mapping[Path, int]) -> None:
        """Files on disk were created (1), changed (2) or deleted (3) by somebody else."""
        listed = [{"uri": path.as_uri(), "type": kind} for path, kind in changes.items()]
        self._connection.notify("workspace/didChangeWatchedFiles", {"changes": listed})
        self.documents.doubt()

    # ── what it says by itself ──

    def _asked(self, method: str, params: Any) -> Any:
        if method == "client/registerCapability":
            self._registered.update(registered_methods(params, "registrations"))
            self._tell()
        elif method == "client/unregisterCapability":
            self._registered.difference_update(registered_methods(params, "unregisterations"))
        return answer_of(method, params, self._root, self._settings)

    def _notified(self, method: str, params: Any) -> None:
        if method != "textDocument/publishDiagnostics" or not isinstance(params, dict):
            return
        if document := self.documents.at(str(params.get("uri"))):
            document.pushed.pushed(params.get("version"), read_complaints(params.get("diagnostics")))
            self._tell()

    def _tell(self) -> None:
        self._news.set()
