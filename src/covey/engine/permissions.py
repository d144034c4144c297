"""The desk where tool calls ask and people answer. Whether to ask at all is decided by `lifecycle.permissions`.

The first answer wins. A request outlives the client that saw it: whoever attaches later is told of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Literal

from covey.engine.recorder import confirmed
from covey.lifecycle.permissions import Rules, Verdict, Wish, decide
from covey.protocol.events import ConfigChanged, PermissionNotification, PermissionRequest, created, updated
from covey.store.journal import WorkspaceJournal

Action = Literal["allow", "allow_session", "deny"]


class PermissionDesk:
    """The pending requests of one workspace, and what was granted for each session."""

    def __init__(self, journal: WorkspaceJournal, workspace_id: str, rules: Rules, *, skip: bool) -> None:
        self._journal = journal
        self._workspace_id = workspace_id
        self._pending: dict[str, tuple[PermissionRequest, asyncio.Future[Action]]] = {}
        self._granted: dict[str, set[tuple[str, str, str]]] = {}
        self.rules = rules
        self.skip = skip

    @property
    def pending(self) -> Iterable[PermissionRequest]:
        return [request for request, _ in self._pending.values()]

    def decide(self, wish: Wish, session_id: str) -> Verdict:
        return decide(wish, self.rules, frozenset(self._granted.get(session_id, ())), skip=self.skip)

    async def ask(self, request: PermissionRequest, wish: Wish) -> bool:
        """Wait until somebody answers. If the call is cancelled meanwhile, the request is closed for everybody."""
        answer: asyncio.Future[Action] = asyncio.get_running_loop().create_future()
        self._pending[request.id] = (request, answer)
        action: Action = "deny"
        try:
            self._journal.write((), (created(request),))
            action = await answer
        finally:
            self._pending.pop(request.id, None)
            self._notify(request, granted=action != "deny")
        if action == "allow_session":
            self._granted.setdefault(request.session_id, set()).add(wish.grant)
        return action != "deny"

    def answer(self, request_id: str, action: Action) -> bool:
        """False: somebody else was first, or the request is closed."""
        _, answer = self._pending.get(request_id, (None, None))
        if answer is None or answer.done():
            return False
        answer.set_result(action)
        return True

    def forget(self, session_id: str) -> None:
        """The session is gone, and with it what was granted for it."""
        self._granted.pop(session_id, None)

    async def set_skip(self, skip: bool) -> None:
        """Approve everything from now on, or stop doing so. What waits for an answer is approved too."""
        self.skip = skip
        if skip:
            for request_id in list(self._pending):
                self.answer(request_id, "allow")
        change = ConfigChanged(workspace_id=self._workspace_id, skip_permissions=skip)
        await confirmed(self._journal.write((), (updated(change),)))

    def _notify(self, request: PermissionRequest, *, granted: bool) -> None:
        notification = PermissionNotification(
            tool_call_id=request.tool_call_id,
            granted=granted,
            denied=not granted,
            session_id=request.session_id,
            run_id=request.run_id,
            permission_id=request.id,
        )
        self._journal.write((), (created(notification),))
