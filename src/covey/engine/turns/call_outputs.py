"""What the calls of a turn print while they run, published as it comes.

It goes straight to the feed, past the journal: the answer with the call has been published before the call is run, and
nothing that is only shown may wait for a disk. When the turn has ended nothing more of its calls is published, whatever
an abandoned one still prints. A job is no part of the turn that started it: it is shown for as long as it runs.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Self

from covey.feed.feed import Feed
from covey.feed.outputs import OutputTail
from covey.protocol.printed import as_printed
from covey.protocol.runs import Run
from covey.tools.live_output import NoSink, OutputSink

KEPT_CHARACTERS = 4000
"""Of what a call had printed when it was cut off: enough to see what it was doing."""


class CallOutputs:
    """The outputs of one turn."""

    def __init__(self, run: Run, feed: Feed) -> None:
        self._run = run
        self._feed = feed
        self._open: set[CallOutput] = set()
        self._closed = False
        self.cut_off: dict[str, str] = {}
        """For each call that was cut off, the end of what it had printed."""

    def of_call(self, message_id: str, call_id: str) -> CallOutput:
        """That of one call of an answer; to be closed when the call has ended."""
        tail = OutputTail(self._run.session_id, self._run.run_id, message_id, call_id)
        output = CallOutput(self._feed, tail, self._open.discard, lambda text: self.cut_off.update({call_id: text}))
        self._open.add(output)
        if self._closed:  # the turn was abandoned, and goes on
            output.close()
        return output

    def close(self) -> None:
        """The turn has ended, perhaps without some of its calls."""
        self._closed = True
        for output in list(self._open):
            output.cut_off()


class CallOutput:
    """The output of one call: `open_sink` is what its tool is given."""

    def __init__(
        self,
        feed: Feed,
        tail: OutputTail,
        on_close: Callable[[CallOutput], None],
        on_cut_off: Callable[[str], None],
    ) -> None:
        self._feed = feed
        self._tail = tail
        self._on_close = on_close
        self._on_cut_off = on_cut_off
        self._sinks: list[FeedSink] = []
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind:
            self.cut_off()
        else:
            self.close()

    def cut_off(self) -> None:
        """The call has no result of its own: what it printed is kept for the one that it gets."""
        self.close()
        if text := as_printed(self._tail.delta().delta).strip()[-KEPT_CHARACTERS:]:
            self._on_cut_off(text)

    def open_sink(self, *, outlives_call: bool = False) -> OutputSink:
        if self._closed:
            return NoSink()
        sink = FeedSink(self._feed, self._tail)
        if not outlives_call:
            self._sinks.append(sink)
        return sink

    def close(self) -> None:
        self._closed = True
        self._on_close(self)
        for sink in self._sinks:
            sink.close()


class FeedSink:
    """Publishes what a call prints, until it is closed."""

    def __init__(self, feed: Feed, tail: OutputTail) -> None:
        self._feed = feed
        self._tail = tail
        self._begun = False
        self._closed = False

    def publish(self, offset: int, data: bytes) -> None:
        if self._closed:
            return
        if not self._begun:  # a call that prints nothing is not heard of
            self._begun = True
            self._feed.open_output(self._tail)
        self._feed.show_output(self._tail, offset, data)

    def close(self) -> None:
        self._closed = True
        self._feed.end_output(self._tail)
