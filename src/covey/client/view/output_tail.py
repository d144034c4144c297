"""The end of what a running tool call has printed, in bounded memory. Pure; places are bytes of UTF-8."""

from __future__ import annotations

from covey.protocol.events import ToolOutputDelta
from covey.protocol.utf8 import next_character

SHOWN_BYTES = 64 * 1024
"""For each running call: some hundreds of lines, and as much as the server keeps for whoever comes later."""
LOOKED_AT = 4096
"""Bytes at the end in which the last lines are looked for."""


class ShownOutput:
    """What is known of one call's output. A piece costs what it is long."""

    __slots__ = ("_data", "message_id", "run_id", "start", "tool_call_id")

    def __init__(self, delta: ToolOutputDelta) -> None:
        self.tool_call_id = delta.tool_call_id
        self.message_id = delta.message_id
        self.run_id = delta.run_id
        self.start = delta.offset
        """How many bytes of it are not shown, because they never came or are too long ago."""
        self._data = bytearray()

    @property
    def is_own_command(self) -> bool:
        """A person's own command prints this: it has no call, and goes by the id that its message will have."""
        return self.tool_call_id == self.message_id

    @property
    def end(self) -> int:
        """How many bytes were printed in all."""
        return self.start + len(self._data)

    @property
    def text(self) -> str:
        return self._data.decode("utf-8", "replace")

    def last_lines(self, count: int) -> list[str]:
        """The last lines with something on them. Looks only at the end, however much was printed."""
        from covey.protocol.printed import as_printed  # late: many runs print nothing

        end = as_printed(self._data[-LOOKED_AT:].decode("utf-8", "replace"))
        lines = [line.rstrip("\r") for line in end.split("\n") if line.strip()]
        return lines[-count:] if count else []

    def add(self, delta: ToolOutputDelta) -> None:
        """Bytes that are known are passed over. Where some are missing, what was known before them goes."""
        data = delta.delta.encode()
        if delta.offset > self.end:
            self._data.clear()
            self.start = delta.offset
        fresh = data[self.end - delta.offset :]
        self._data += fresh
        if len(self._data) > SHOWN_BYTES:
            cut = next_character(self._data, len(self._data) - SHOWN_BYTES)
            del self._data[:cut]
            self.start += cut
