"""Who may write about a workspace: all that the engine knows of other servers that share its store."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from covey.protocol.errors import Unavailable
from covey.store.base import WorkspaceRow
from covey.store.everywhere import ReadsEverywhere


class OwnedElsewhere(Unavailable):
    """Another node owns the workspace, or is about to: whoever asks has to look again where it is."""

    code = "workspace_moved"

    def __init__(self, workspace_id: str, why: str = "another node has it") -> None:
        super().__init__(f"the workspace {workspace_id} is not here: {why}; try again at once", retry_after=1.0)


class Ownership(Protocol):
    """Claims workspaces before they are opened. A claim comes with a fence, which goes with every change."""

    @property
    def is_shared(self) -> bool:
        """Whether there may be other nodes: then rows come and go in the store without us."""
        ...

    @property
    def everywhere(self) -> ReadsEverywhere | None:
        """What is asked about all workspaces at once, where they are not all known here."""
        ...

    @property
    def node(self) -> str:
        """The name of this node, '' for one server: processes are marked with it."""
        ...

    async def claim(self, workspace_id: str) -> int:
        """Become the owner, and get the fence. Raises OwnedElsewhere."""
        ...

    async def release(self, workspace_id: str, fence: int) -> None:
        """Nobody is the owner any more, unless somebody else is by now."""
        ...

    async def row(self, workspace_id: str) -> WorkspaceRow | None:
        """A workspace in the store of which this server does not know yet."""
        ...

    async def row_at(self, path: str, epoch: int) -> WorkspaceRow | None:
        """The workspace of a directory, made if there is none; None: the caller makes it."""
        ...

    async def kept(self, workspace_id: str) -> bytes:
        """What was kept of a workspace for its next owner: `engine.keeping.Kept` as JSON."""
        ...

    async def keep(self, workspace_id: str, fence: int, value: bytes) -> None:
        """Keep that. Raises OwnedElsewhere if it is not owned under this fence any more."""
        ...

    async def keep_result(self, workspace_id: str, session_id: str, name: str, content: bytes) -> None:
        """Keep a tool's result that is too long for the model, for the next owner."""
        ...

    async def result(self, workspace_id: str, session_id: str, name: str) -> bytes | None:
        """One that was kept."""
        ...


class SoleOwner:
    """One server with a store of its own: there is nobody to fence off, and nothing happens behind its back."""

    is_shared = False
    everywhere = None
    node = ""

    async def claim(self, workspace_id: str) -> int:
        return 0

    async def release(self, workspace_id: str, fence: int) -> None:
        pass

    async def row(self, workspace_id: str) -> WorkspaceRow | None:
        return None

    async def row_at(self, path: str, epoch: int) -> WorkspaceRow | None:
        return None

    async def kept(self, workspace_id: str) -> bytes:
        return b"{}"

    async def keep(self, workspace_id: str, fence: int, value: bytes) -> None:
        pass

    async def keep_result(self, workspace_id: str, session_id: str, name: str, content: bytes) -> None:
        pass

    async def result(self, workspace_id: str, session_id: str, name: str) -> bytes | None:
        return None


def node_home(data_dir: Path) -> Path:
    """The file that says what a node's data directory is known by. One server's own has none."""
    return data_dir / "node"
