"""The text that a run's answers bring, in pieces, each exactly once. Pure.

What was given out cannot be taken back. A message that turns out other than it was streamed, because its step was tried
again, is given again as a whole when it is finished; one that is only shorter needs nothing.
"""

from __future__ import annotations

from covey.client.transcript import TranscriptChange
from covey.protocol.events import Event, MessageDelta
from covey.protocol.messages import Message
from covey.protocol.runs import RunComplete


class AnswerText:
    """Of one run, from its first event on."""

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._given: dict[str, list[str]] = {}
        self._other: set[str] = set()
        """Messages that became other than what was given of them."""
        self._current = ""
        self._last = "\n"

    def take(self, event: Event, change: TranscriptChange | None) -> str:
        """What the event adds. A message begins on a line of its own."""
        match event.payload:
            case MessageDelta(kind="text", run_id=self._run_id, message_id=message_id):
                grew = change is not None and change.kind == "grew" and message_id not in self._other
                return self._give(message_id, change.text) if grew and change else ""
            case Message(role="assistant", run_id=self._run_id) as message if event.change != "deleted":
                return self._whole(message.id, message.text, finished=message.finish is not None)
            case RunComplete(run_id=self._run_id, text=str(text)) as terminal:
                return self._whole(terminal.message_id, text, finished=True)
        return ""

    def _whole(self, message_id: str, text: str, *, finished: bool) -> str:
        given = "".join(self._given.get(message_id, ()))
        if text.startswith(given):
            self._other.discard(message_id)
            return self._give(message_id, text[len(given) :])
        if not finished:
            self._other.add(message_id)
            return ""
        self._other.discard(message_id)
        if given.startswith(text):
            return ""
        self._given[message_id] = []
        self._current = ""
        return self._give(message_id, text)

    def _give(self, message_id: str, text: str) -> str:
        if not text:
            return ""
        begin = "\n" if message_id != self._current and self._last != "\n" else ""
        self._current, self._last = message_id, text[-1]
        self._given.setdefault(message_id, []).append(text)
        return begin + text
