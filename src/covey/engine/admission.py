"""Whether a workspace still takes what is asked of it."""

from __future__ import annotations

from covey.engine.ownership import OwnedElsewhere
from covey.protocol.errors import Conflict


class Admission:
    """Open, until the workspace closes; and this is the place to ask, until others own it."""

    def __init__(self, workspace_id: str) -> None:
        self._workspace_id = workspace_id
        self.closing = False
        self._moved = False

    def move(self) -> None:
        """Others own the workspace, or are about to: what is known here is not true any more."""
        self.closing = self._moved = True

    def check_here(self) -> None:
        """Raise OwnedElsewhere if others own the workspace."""
        if self._moved:
            raise OwnedElsewhere(self._workspace_id)

    def check_open(self) -> None:
        """Raise Conflict once the workspace is closing."""
        self.check_here()
        if self.closing:
            raise Conflict("the workspace is closing", "workspace_closing")
