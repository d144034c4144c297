"""The files of a workspace, for people: finding one by a few letters, and reading it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from covey.engine.agent import Agent
from covey.permissions.rules import path_hit
from covey.permissions.safe_paths import is_secret
from covey.protocol.errors import BadRequest, Forbidden, NotFound
from covey.protocol.files import FileContent, FoundFile, FoundFiles
from covey.tools.base import ToolFailed
from covey.tools.files import open_regular, printable
from covey.tools.processes import LocalProcesses
from covey.tools.threads import in_thread

if TYPE_CHECKING:
    from covey.tools.file_index import FileIndex

CONTENT_BYTES = 1024 * 1024
"""What one answer holds of a file: more than anybody reads at once."""


class WorkspaceFiles:
    """What may be viewed without asking, and nothing else: the rules are those of the tool `view`."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._index: FileIndex | None = None

    async def find(self, query: str, limit: int) -> FoundFiles:
        """The files that fit best, without those that ignore files leave out."""
        from covey.tools.file_index import LIMIT, FileIndex  # many workspaces never need it

        if self._index is None:
            root = self._agent.root
            self._index = FileIndex(root, LocalProcesses(root), self._agent.tag, self._denied)
        found = await self._index.search(query, limit or LIMIT)
        files = tuple(FoundFile(path=match.path, places=match.places) for match in found.matches)
        return FoundFiles(files=files, is_partial=not found.is_complete)

    async def content(self, path: str) -> FileContent:
        """A text file inside the workspace. Raises Forbidden for one that `view` would have to ask about."""
        if not path or "\0" in path:
            raise BadRequest("path is missing")
        return await in_thread(lambda: self._read(path))

    async def aclose(self) -> None:
        if self._index:
            await self._index.aclose()

    def _denied(self) -> list[str]:
        return [rule for rule in self._agent.config.permissions.deny if rule.startswith("view")]

    def _read(self, path: str) -> FileContent:
        root = self._agent.root
        try:
            resolved = (root / path).resolve()
        except (OSError, RuntimeError, ValueError) as error:
            raise BadRequest(f"the path {path!r} leads nowhere: {error}") from None
        if not resolved.is_relative_to(root):
            raise Forbidden(f"{path!r} is outside of the workspace", "outside_workspace")
        name = printable(str(resolved.relative_to(root)))
        self._check_open_to_view(resolved, name)
        try:
            with open_regular(resolved, name) as (file, stamp):
                data = file.read(CONTENT_BYTES + 1)
        except ToolFailed as refused:
            raise NotFound(str(refused), "file_not_found") from None
        if b"\0" in data[:8192]:
            raise BadRequest(f"{name} is binary ({stamp.size} bytes): only text is sent", "binary_file")
        text = data[:CONTENT_BYTES].decode("utf-8", "replace")
        return FileContent(path=name, text=text, size=stamp.size, is_cut=len(data) > CONTENT_BYTES)

    def _check_open_to_view(self, path: Path, name: str) -> None:
        if rule := path_hit(self._denied(), "view", str(path), str(self._agent.root)):
            raise Forbidden(f"the rule {rule} forbids to view {name}", "denied_by_rule")
        if any(is_secret(part) for part in Path(name).parts):
            raise Forbidden(f"{name} usually holds a secret: open it in an editor", "secret_file")
