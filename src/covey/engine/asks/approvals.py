"""The desk where it is asked whether an extension may be used. No run waits for the answer; the first one counts.

A request outlives the client that saw it: whoever attaches later gets it too. What was refused is not asked again for
as long as the workspace is open; if what is asked about changes, it is another request.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from covey.protocol.events import created
from covey.protocol.extensions import ApprovalNotification, ApprovalRequest
from covey.protocol.who import NOBODY, Who
from covey.store.journal import WorkspaceJournal

OnApproved = Callable[[ApprovalRequest], Awaitable[None]]
"""Remembers the approval, and makes use of it. Raises if it cannot be remembered: then it is still asked."""


class ApprovalDesk:
    """What waits for an approval in one workspace."""

    def __init__(self, journal: WorkspaceJournal) -> None:
        self._journal = journal
        self._open: dict[str, tuple[ApprovalRequest, OnApproved]] = {}
        self._refused: set[str] = set()

    @property
    def pending(self) -> list[ApprovalRequest]:
        return [request for request, _ in self._open.values()]

    def ask(self, request: ApprovalRequest, on_approved: OnApproved) -> None:
        """Ask about this, unless it is asked about already, or was refused."""
        if request.id in self._open or request.id in self._refused:
            return
        self._open[request.id] = (request, on_approved)
        self._journal.write((), (created(request),))

    def withdraw(self, request_id: str) -> None:
        """It is not asked any more: what it is about is gone, or was approved elsewhere."""
        if self._open.pop(request_id, None):
            self._journal.write((), (created(ApprovalNotification(approval_id=request_id)),))

    async def answer(self, request_id: str, *, approve: bool, who: Who = NOBODY) -> bool:
        """False: somebody else was first. Raises what `OnApproved` raises, and then it is still asked."""
        found = self._open.pop(request_id, None)
        if found is None:
            return False
        request, on_approved = found
        if approve:
            try:
                await on_approved(request)
            except BaseException:
                self._open[request_id] = found
                raise
        else:
            self._refused.add(request_id)
        notification = ApprovalNotification(
            approval_id=request_id, approved=approve, refused=not approve, answered_by=who.label
        )
        self._journal.write((), (created(notification),))
        return True
