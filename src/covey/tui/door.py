"""What the terminal face is given by whoever starts it: how to reach a server, which session, and the user's wishes.

Nothing is imported for it before the first frame is drawn: each of these is called later.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from covey.client.client import Client
    from covey.protocol.requests import WorkspaceView
    from covey.tui.face.state import FacePreferences

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class FaceWishes:
    preferences: FacePreferences
    theme: str = ""
    """By its name; '': what the terminal says of itself."""
    mouse: bool = True


class Door(Protocol):
    def settings(self) -> FaceWishes:
        """Raises ValueError with a sentence for the user."""
        ...

    def connect(self, say: Say) -> AbstractAsyncContextManager[Client]:
        """A client of a server that answers."""
        ...

    def join(self, client: Client) -> Awaitable[WorkspaceView]:
        """The workspace to work on."""
        ...

    def choose(self, client: Client, workspace_id: str) -> Awaitable[str]:
        """The session to show first; '': a new one."""
        ...

    def command(self, *words: str) -> list[str]:
        """How to run a command of ours for the same server."""
        ...


@dataclass(frozen=True, slots=True)
class Farewell:
    """How it ended: what the user reads afterwards on the shell's screen."""

    exit_code: int = 0
    session_id: str = ""
    title: str = ""
    unsent: int = 0
    """Prompts that never reached the server: they are among the earlier prompts."""
