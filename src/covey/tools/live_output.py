"""What a call prints, for people to see while it runs. What the model reads is its result, which is kept elsewhere.

However much is printed, it costs what it is long, a bounded memory, and a bounded number of pieces: where there is more
than anybody could follow, the end is shown, and what is left out before it is counted.
"""

from __future__ import annotations

import asyncio
import codecs
from typing import Protocol

from covey.protocol.utf8 import next_character

INTERVAL_S = 0.05
"""Between two pieces of one call: nobody sees twenty changes a second as separate ones."""
PIECE_BYTES = 32 * 1024
"""The most in one piece: some hundreds of lines. All that a result may hold of an output fits into one."""


class OutputSink(Protocol):
    """Where people see what a call prints while it runs."""

    def publish(self, offset: int, data: bytes) -> None:
        """`data`, whole characters in UTF-8, begins at this byte of all that was printed. What the last piece and this
        one leave out between them will never come."""
        ...

    def close(self) -> None:
        """Nothing more comes."""
        ...


class OpenSink(Protocol):
    """Gives a call the place where what it prints is seen; once for each call."""

    def __call__(self, *, outlives_call: bool = False) -> OutputSink:
        """Without `outlives_call` the sink takes nothing more when the call has ended."""
        ...


class NoSink:
    """Nobody looks."""

    def publish(self, offset: int, data: bytes) -> None:
        pass

    def close(self) -> None:
        pass


def no_sink(*, outlives_call: bool = False) -> OutputSink:
    """For calls that nobody can watch, as in tests."""
    return NoSink()


class LiveOutput:
    """Takes the bytes of an output as they come, and gives them to a sink as text, in not too many pieces.

    The first bytes are seen at once. To be used on the event loop alone.
    """

    def __init__(self, sink: OutputSink) -> None:
        self._sink = sink
        self._loop = asyncio.get_running_loop()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._pending = bytearray()
        """UTF-8, and always whole characters: whatever came as something else has been replaced."""
        self._offset = 0
        """Where the pending bytes begin in all that was printed."""
        self._pause: asyncio.TimerHandle | None = None
        self._closed = False

    def add(self, data: bytes) -> None:
        self._keep(self._decoder.decode(data))
        if self._pending and self._pause is None and not self._closed:
            self._publish()
            self._pause = self._loop.call_later(INTERVAL_S, self._go_on)

    def close(self) -> None:
        """Nothing more comes: what waits is given to the sink."""
        if self._closed:
            return
        self._closed = True
        if self._pause:
            self._pause.cancel()
        self._keep(self._decoder.decode(b"", final=True))
        if self._pending:
            self._publish()
        self._sink.close()

    def _keep(self, text: str) -> None:
        self._pending += text.encode()
        if len(self._pending) > PIECE_BYTES:
            cut = next_character(self._pending, len(self._pending) - PIECE_BYTES)
            del self._pending[:cut]
            self._offset += cut

    def _publish(self) -> None:
        self._sink.publish(self._offset, bytes(self._pending))
        self._offset += len(self._pending)
        self._pending.clear()

    def _go_on(self) -> None:
        self._pause = None
        self.add(b"")
