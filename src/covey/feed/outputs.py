"""What running calls have printed so far: its end, for whoever comes later or reads slowly.

The text is kept once, in bounded memory, however many clients have not read it yet: an entry of the log only says from
where to where it goes. A client that reads too late gets what is still here, and how much is missing before it.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec import structs

from covey.protocol.events import ToolOutputDelta
from covey.protocol.utf8 import next_character

TAIL_BYTES = 64 * 1024
"""Some hundreds of lines for each running call: more than anybody reads while they run past."""


class OutputTail:
    """The end of what one call has printed. Places in it are bytes, as in `ToolOutputDelta`."""

    __slots__ = ("_call", "_data", "_start")

    def __init__(self, session_id: str, run_id: str, message_id: str, tool_call_id: str) -> None:
        self._call = ToolOutputDelta(
            session_id=session_id, run_id=run_id, message_id=message_id, tool_call_id=tool_call_id, offset=0, delta=""
        )
        self._data = bytearray()
        self._start = 0

    @property
    def size(self) -> int:
        """The bytes that are kept."""
        return len(self._data)

    @property
    def session_id(self) -> str:
        return self._call.session_id

    @property
    def end(self) -> int:
        """How much was printed in all."""
        return self._start + len(self._data)

    def add(self, offset: int, data: bytes) -> None:
        """Whole characters, from `offset` on. What is missing before them will never come, and ends what was kept."""
        if offset != self.end:
            self._data.clear()
            self._start = offset
        self._data += data
        if len(self._data) > TAIL_BYTES:
            cut = next_character(self._data, len(self._data) - TAIL_BYTES)
            del self._data[:cut]
            self._start += cut

    def kept(self, known: int, end: int) -> int:
        """How many bytes between these two places are still here."""
        return max(0, end - max(known, self._start))

    def delta(self, known: int = 0, end: int | None = None) -> ToolOutputDelta:
        """For a client that knows all up to `known`: what follows, up to `end`, as far as it is still here."""
        end = self.end if end is None else end
        begin = end - self.kept(known, end)
        text = self._data[begin - self._start : end - self._start].decode()
        return structs.replace(self._call, offset=begin, delta=text, dropped=begin - known)


class Printed(NamedTuple):
    """A piece of what a call has printed, which may be gone when it is read."""

    tail: OutputTail
    known: int
    """Where the piece before it ends."""
    end: int

    @property
    def size(self) -> int:
        """What is still here of it."""
        return self.tail.kept(self.known, self.end)

    def delta_from(self, first: Printed) -> ToolOutputDelta:
        """All from an earlier piece of the same call up to this one."""
        return self.tail.delta(first.known, self.end)
