"""What waits for a person's answer, and what became of the last ones."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from covey.client.view.records import AskOutcome, ClosedAsk, OpenAsk
from covey.protocol.events import (
    PermissionNotification,
    PermissionRequest,
    QuestionBatchNotification,
    QuestionBatchRequest,
)

CLOSED_KEPT = 32
"""Enough to say who answered what the user was looking at."""

AskRequest = PermissionRequest | QuestionBatchRequest


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

    def notified(self, notification: PermissionNotification | QuestionBatchNotification) -> str:
        """Somebody answered, or nobody can any more. Gives the id of the ask."""
        outcome: AskOutcome
        if isinstance(notification, PermissionNotification) and not notification.is_answer:
            return ""  # it only says that somebody is asked
        if isinstance(notification, PermissionNotification):
            ask_id, outcome = notification.permission_id or "", "allowed" if notification.granted else "denied"
        else:
            ask_id, outcome = notification.batch_id, "answered" if notification.answered else "not_answered"
        self._close(ask_id, outcome, notification.answered_by)
        return ask_id

    def close_where(self, is_over: Callable[[AskRequest], bool]) -> None:
        """Nobody can answer these any more. What is open is little: looking at all of it costs nothing."""
        for ask_id in [ask_id for ask_id, ask in self.open.items() if is_over(ask.request)]:
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
        return any(ask.request.session_id == session_id for ask in self.open.values())

    def _close(self, ask_id: str, outcome: AskOutcome, by: str | None) -> None:
        """An answer of the server may overtake the event that says how it was closed."""
        known = self.open.pop(ask_id, None) or self.closed.get(ask_id)
        if known is None or (isinstance(known, ClosedAsk) and known.outcome != "closed"):
            return
        self.closed[ask_id] = ClosedAsk(known.request, outcome, by)
        if len(self.closed) > CLOSED_KEPT:
            del self.closed[next(iter(self.closed))]
