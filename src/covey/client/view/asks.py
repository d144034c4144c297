"""What waits for a person's answer, and what became of the last ones."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import assert_never

from covey.client.view.records import AskOutcome, AskRequest, ClosedAsk, OpenAsk
from covey.protocol.events import PermissionNotification, QuestionBatchNotification
from covey.protocol.extensions import ApprovalNotification

CLOSED_KEPT = 32
"""Enough to say who answered what the user was looking at."""

AskNotification = PermissionNotification | QuestionBatchNotification | ApprovalNotification


class AskList:
    """By id, in the order in which they were asked."""

    def __init__(self) -> None:
        self.open: dict[str, OpenAsk] = {}
        self.closed: dict[str, ClosedAsk] = {}
        """The last ones that were closed, the newest at the end."""

    def request(self, request: AskRequest) -> None:
        """Sent again after each connection, if it is still open: then no answer that was given before has counted."""
        if ask := self.open.get(request.id):
            ask.request, ask.is_being_answered = request, False
        else:
            self.closed.pop(request.id, None)
            self.open[request.id] = OpenAsk(request)

    def notified(self, notification: AskNotification) -> str:
        """Somebody answered, or nobody can any more. Gives the id of the ask."""
        ask_id: str
        outcome: AskOutcome
        match notification:
            case PermissionNotification() if not notification.is_answer:
                return ""  # it only says that somebody is asked
            case PermissionNotification(permission_id=found, granted=granted):
                ask_id, outcome = found or "", "allowed" if granted else "denied"
            case QuestionBatchNotification(batch_id=ask_id, answered=answered):
                outcome = "answered" if answered else "not_answered"
            case ApprovalNotification(approval_id=ask_id, approved=approved, refused=refused):
                outcome = "allowed" if approved else "denied" if refused else "closed"
            case _:
                assert_never(notification)
        self._close(ask_id, outcome, notification.answered_by)
        return ask_id

    def close_where(self, is_over: Callable[[OpenAsk], bool]) -> None:
        """Nobody can answer these any more. What is open is little: looking at all of it costs nothing."""
        for ask_id in [ask_id for ask_id, ask in self.open.items() if is_over(ask)]:
            self._close(ask_id, "closed", None)

    def load(self, requests: Iterable[AskRequest], newer: Collection[str]) -> None:
        """These are all that are open, but for those that events have reported since."""
        found = {request.id: request for request in requests if request.id not in newer}
        for ask_id in [ask_id for ask_id in self.open if ask_id not in found and ask_id not in newer]:
            self._close(ask_id, "closed", None)
        for request in found.values():
            self.request(request)

    def answering(self, ask_id: str, is_being_answered: bool) -> None:
        if ask := self.open.get(ask_id):
            ask.is_being_answered = is_being_answered

    def waits_in(self, session_id: str) -> bool:
        return any(ask.session_id == session_id for ask in self.open.values())

    def _close(self, ask_id: str, outcome: AskOutcome, by: str | None) -> None:
        """An answer of the server may overtake the event that says how it was closed."""
        known = self.open.pop(ask_id, None) or self.closed.get(ask_id)
        if known is None or (isinstance(known, ClosedAsk) and known.outcome != "closed"):
            return
        self.closed[ask_id] = ClosedAsk(known.request, outcome, by)
        if len(self.closed) > CLOSED_KEPT:
            del self.closed[next(iter(self.closed))]
