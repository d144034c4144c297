"""Which calls of a turn's last answer have begun: in memory, and as far as it is needed after a crash, on disk.

A call that is written may have begun, unless it is known that it has not. That is noted of a call that somebody is
asked about, and of those behind it, in the row of its session; and it begins only when the note is gone from there.
What nobody is asked about costs nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence

from covey.engine.recorder import Batch, Recorder
from covey.engine.session_book import SessionBook
from covey.protocol.messages import Message, Session, ToolCall
from covey.protocol.runs import Run
from covey.store.base import PutSession


class Beginnings:
    """Those of one turn."""

    def __init__(self, run: Run, sessions: SessionBook, recorder: Recorder) -> None:
        self.begun: set[str] = set()
        """The ids of calls without a result whose tools were started: nobody has to be asked any more."""
        self._session_id = run.session_id
        self._sessions = sessions
        self._recorder = recorder
        self._answer_id = ""
        self._groups: Sequence[Sequence[ToolCall]] = ()

    def of_answer(self, answer_id: str, groups: Sequence[Sequence[ToolCall]]) -> Sequence[Sequence[ToolCall]]:
        """These calls come next: one group after the other."""
        self._answer_id, self._groups = answer_id, groups
        return groups

    def asked(self, call: ToolCall) -> None:
        """Somebody is asked about it: neither it nor what is behind its group has begun."""
        own = next(number for number, group in enumerate(self._groups) if any(each is call for each in group))
        behind = (each.id for group in self._groups[own + 1 :] for each in group)
        self._write([*self._noted(), (self._answer_id, call.id, *behind)])

    async def begins(self, call: ToolCall) -> None:
        """Returns when it may begin."""
        if self._is_noted(call):
            await self._write(self._noted_without(call))
        self.begun.add(call.id)

    def ended(self, call: ToolCall) -> None:
        """Its result is written next, in a change that writes the row of the session too."""
        self.begun.discard(call.id)
        if self._is_noted(call):
            self._sessions.change(self._session_id, asked=self._noted_without(call))

    def _noted(self) -> list[tuple[str, ...]]:
        """Of this answer: what a crash left of others has no meaning any more."""
        session = self._sessions.find(self._session_id)
        return [noted for noted in (session and session.asked) or () if noted[0] == self._answer_id]

    def _is_noted(self, call: ToolCall) -> bool:
        return any(noted[1] == call.id for noted in self._noted())

    def _noted_without(self, call: ToolCall) -> tuple[tuple[str, ...], ...] | None:
        return tuple(noted for noted in self._noted() if noted[1] != call.id) or None

    def _write(self, noted: Sequence[tuple[str, ...]] | None) -> asyncio.Future[None]:
        session = self._sessions.change(self._session_id, asked=tuple(noted) if noted else None)
        return self._recorder.write(Batch([PutSession(session)] if session else []))


def not_begun(answer: Message, session: Session | None) -> Collection[str]:
    """After a crash: the ids of the calls of a whole answer that certainly have not begun.

    Models may give several calls of an answer the same id: of those nothing is known.
    """
    ids = [call.id for call in answer.tool_calls]
    noted = (session and session.asked) or ()
    return tuple(one for answer_id, *calls in noted if answer_id == answer.id for one in calls if ids.count(one) == 1)
