"""A stretch of the log as the frames that one kind of client gets: fewer of them, for one that is behind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import structs

from covey.feed.entries import FeedEntry, delta_frame

MERGE_ABOVE = 512
"""A client this many entries behind gets the growth of each part as one delta."""


def delta_frames(entries: Iterable[FeedEntry]) -> Sequence[bytes]:
    """For clients that take deltas."""
    entries = [entry for entry in entries if entry.only != "whole"]
    return _frames(entries, merge_text=len(entries) > MERGE_ABOVE)


def whole_frames(entries: Iterable[FeedEntry]) -> Sequence[bytes]:
    """Without deltas: a whole message that a later one in the same stretch replaces need not be sent."""
    entries = [entry for entry in entries if entry.delta is None and entry.only != "deltas"]
    last = {entry.message_id: entry for entry in entries if entry.message_id}
    entries = [entry for entry in entries if entry.only == "all" or last[entry.message_id] is entry]
    return _frames(entries, merge_text=False)


def _frames(entries: list[FeedEntry], *, merge_text: bool) -> Sequence[bytes]:
    if merge_text or any(entry.printed for entry in entries):
        return list(_merged(entries, merge_text=merge_text))
    return [entry.frame for entry in entries]


def _merged(entries: Iterable[FeedEntry], *, merge_text: bool) -> Iterator[bytes]:
    """The same in fewer events: between two others, what one call has printed is one event, and so is, if `merge_text`,
    the growth of each part."""
    growth: dict[object, list[FeedEntry]] = {}

    def flush() -> Iterator[bytes]:
        yield from map(_as_one, growth.values())
        growth.clear()

    for entry in entries:
        if entry.printed:
            growth.setdefault(entry.printed.tail, []).append(entry)
        elif merge_text and entry.delta:
            growth.setdefault((entry.delta.message_id, entry.delta.part), []).append(entry)
        else:
            yield from flush()
            yield entry.frame
    yield from flush()


def _as_one(entries: Sequence[FeedEntry]) -> bytes:
    """The frame for entries that continue each other."""
    first, last = entries[0], entries[-1]
    if first.printed and last.printed:
        return delta_frame(last.printed.delta_from(first.printed))
    deltas = [entry.delta for entry in entries if entry.delta]
    return delta_frame(structs.replace(deltas[0], delta="".join(delta.delta for delta in deltas)))
