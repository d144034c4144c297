"""The bytes of a streamed answer → lines → model facts: what all wire formats share. Pure: does no I/O.

Each format is an `SseAnswer` with an `_event` of its own. Text that arrives in one read becomes one fact, so a reader
that falls behind has less to do, not more.
"""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

import msgspec

from covey.lifecycle.reply import ModelFact, ReasoningDelta, Stopped, TextDelta, UsageReported
from covey.models.trouble import CUT_OFF, NOT_AN_API, TOO_DEEP, AnswerBroken, Trouble, error_text, reported, snippet
from covey.protocol.messages import FinishReason

MAX_LINE_BYTES = 16 * 1024 * 1024
"""A whole tool call can come on one line; a line without end must not fill the memory."""
MAX_ITEMS = 65_536
"""Calls, blocks and the like of one answer, of which a decoder remembers something: many more than an answer may have
parts (`lifecycle.reply`), and some MiB."""


class SseLines:
    """Bytes → whole lines, without their ends. A `\\r` before the end stays: JSON does not mind it."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def split(self, data: bytes) -> list[bytes]:
        """The lines that `data` completes; some may be empty. Raises AnswerBroken if one has no end."""
        if self._rest or not data.endswith(b"\n"):
            start = len(self._rest)
            self._rest += data
            end = self._rest.rfind(b"\n", start)
            if end < 0:
                if len(self._rest) > MAX_LINE_BYTES:
                    raise AnswerBroken(f"sent a line of more than {MAX_LINE_BYTES // 2**20} MiB")
                return []
            data = bytes(self._rest[:end])
            del self._rest[: end + 1]
        return data.split(b"\n")


class SseAnswer(ABC):
    """One answer, as far as it has come. A format fills in `_event`, `_reason` and `finished`."""

    def __init__(self, used_call_ids: Iterable[str] = ()) -> None:
        self.done = False
        """Nothing that follows can matter: call `end`."""
        self.finished = False
        """Everything but the usage and the end mark is here."""
        self._broken: AnswerBroken | None = None
        self._lines = SseLines()
        self._facts: list[ModelFact] = []
        self._kind: type[TextDelta] | type[ReasoningDelta] = TextDelta
        self._pieces: list[str] = []
        self._call_ids = set(used_call_ids)
        self._usage: UsageReported | None = None
        """The newest report that no fact has carried yet."""
        self._seen_events = False
        self._items = 0

    @abstractmethod
    def _event(self, data: bytes) -> None:
        """Take what follows `data:`, or a line of bare JSON. Sets `_seen_events` if it belongs to the format."""

    @abstractmethod
    def _reason(self) -> FinishReason:
        """Why the model stopped; asked once, at the end."""

    def feed(self, data: bytes) -> list[ModelFact]:
        """The facts that `data` completes. If it breaks the answer, `end` says so: words before the break count."""
        self._facts = []
        try:
            for line in self._lines.split(data):
                if line.startswith(b"data:"):
                    self._event(line[5:])
                elif line:
                    self._other_line(line)
        except AnswerBroken as broken:
            self._broken, self.done = broken, True
        except RecursionError:
            self._broken, self.done = AnswerBroken(TOO_DEEP), True
        self._flush()
        if self._usage is not None:
            self._facts.append(self._usage)
            self._usage = None
        return self._facts

    def end(self) -> list[ModelFact]:
        """The last facts, of which the very last one is `Stopped`; raises AnswerBroken if the answer has no end."""
        if self._broken:
            raise self._broken
        facts = self.feed(b"\n")
        if not self.finished:
            if not self._seen_events:
                raise self._broken or AnswerBroken("sent nothing that looks like the answer of a model's API")
            if self._broken or not self.done:
                raise AnswerBroken(CUT_OFF, Trouble.CUT)
        return [*facts, Stopped(self._reason())]

    def _other_line(self, line: bytes) -> None:
        """Comments and other fields mean nothing here. Errors sometimes come as bare JSON, or as a web page."""
        text = line.strip()
        if text.startswith(b"{"):
            self._event(text)
        elif text.startswith(b"error:"):
            self._strange(text[6:].strip())  # how llama.cpp said it until 2025
        elif text.startswith(b"<") and not self._seen_events:
            raise AnswerBroken(NOT_AN_API)

    def _strange(self, data: bytes) -> Any:
        """What is in an event that is none of the format: its JSON, if that is an object without an error."""
        try:
            value = msgspec.json.decode(data)
        except msgspec.DecodeError:
            raise AnswerBroken(f"sent garbage: {snippet(data)}") from None
        if error_text(value):
            raise reported(value)
        if not isinstance(value, dict):
            raise AnswerBroken(f"sent an event of an unknown form: {snippet(data)}")
        return value

    def _grow(self, kind: type[TextDelta] | type[ReasoningDelta], text: str) -> None:
        """Text that may go on in the next event: emitted with the others of its kind, at the end of the read."""
        if kind is not self._kind:
            self._flush()
            self._kind = kind
        self._pieces.append(text)

    def _emit(self, fact: ModelFact) -> None:
        """A fact of any other kind, after the text that came before it."""
        self._flush()
        self._facts.append(fact)

    def _flush(self) -> None:
        if self._pieces:
            self._facts.append(self._kind("".join(self._pieces)))
            self._pieces.clear()

    def _call_id(self, given: str | None) -> str:
        """Results find their calls by id, so one that is missing or used before is replaced."""
        self._count_item()
        if not given or given in self._call_ids:
            given = f"call_{secrets.token_hex(8)}"
        self._call_ids.add(given)
        return given

    def _count_item(self) -> None:
        """To be called before something is remembered until the answer ends."""
        self._items += 1
        if self._items > MAX_ITEMS:
            raise AnswerBroken(f"sent an answer of more than {MAX_ITEMS:,} pieces")
