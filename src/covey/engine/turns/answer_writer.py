"""One answer while it grows: what is published at once, what waits a moment, and when it is saved.

Growth is published as a delta, which costs what it is long. A part that begins is published with the whole message,
which costs what the message is long: done for each part, the costs of an answer would grow with the square of its
parts. So whole messages are sent at once only while they are cheap beside the answer itself, and else together, after a
moment.
"""

from __future__ import annotations

import asyncio

from covey.engine.recorder import Batch, Recorder
from covey.engine.world import World
from covey.lifecycle.reply import ModelFact, Reply
from covey.protocol.events import MessageDelta
from covey.store.base import AppendText

CHECKPOINT_S = 0.25
"""How much of a streamed text a crash may cost."""
WHOLE_FREE = 64 * 1024
"""Characters of whole messages that every answer may cost: an ordinary one, with some calls, never waits."""
WHOLE_SHARE = 3
"""And so many for each character of the answer: the bytes written and sent then grow with the answer."""
WHOLE_PER_S = 1024 * 1024
"""Beyond that, a part that has begun waits, the longer the longer the message is: no more than this a second."""


class AnswerWriter:
    """Writes and tells one answer in progress. Its last state, finished, is written by whoever finishes it."""

    def __init__(self, reply: Reply, recorder: Recorder, world: World) -> None:
        self._reply = reply
        self._recorder = recorder
        self._world = world
        self._known_parts = 0
        """The parts that clients know: these grow by deltas. Those behind them wait for the next whole message."""
        self._spent = 0
        """Characters of all whole messages so far."""
        self._checkpoint: asyncio.TimerHandle | None = None
        self._delayed: asyncio.TimerHandle | None = None

    def take(self, fact: ModelFact) -> None:
        """Add one fact to the answer, and tell of it."""
        change = self._reply.take(fact, self._world.now_s())
        if change is None:
            return
        delta = change if isinstance(change, MessageDelta) else None
        if delta and delta.part < self._known_parts:
            self._grow(delta)
        elif self._spent > WHOLE_FREE + WHOLE_SHARE * self._reply.size:
            self._tell_later()
        elif delta and delta.part == self._known_parts and delta.offset == 0 and delta.kind != "tool_input":
            self._count_whole()  # the feed sends it: words and thoughts begin without a change of the store
            self._grow(delta)
        else:
            self._tell()

    def written(self) -> None:
        """The whole answer is being written by somebody else."""
        self._reply.unsaved()
        self._count_whole()

    def take_back(self) -> None:
        """What was said so far is no part of the answer: everybody gets it empty, before it begins anew."""
        self._reply.take_back()
        self._spent = 0
        self._tell()

    def close(self) -> None:
        """Nothing more is written from here."""
        for timer in (self._checkpoint, self._delayed):
            if timer:
                timer.cancel()

    def _grow(self, delta: MessageDelta) -> None:
        self._recorder.grow(delta)
        if self._checkpoint is None:
            self._checkpoint = asyncio.get_running_loop().call_later(CHECKPOINT_S, self._save_growth)

    def _save_growth(self) -> None:
        self._checkpoint = None
        if pieces := self._reply.unsaved(self._known_parts):
            self._recorder.write(Batch([AppendText(self._reply.message_id, tuple(pieces))]), durable=False)

    def _tell_later(self) -> None:
        if self._delayed is None:
            delay = max(CHECKPOINT_S, self._reply.size / WHOLE_PER_S)
            self._delayed = asyncio.get_running_loop().call_later(delay, self._tell)

    def _tell(self) -> None:
        """Write the whole message as it is now, and send it to everybody."""
        self.written()
        batch = Batch()
        batch.update_message(self._reply.message(self._world.now_s()))
        self._recorder.write(batch, durable=False)

    def _count_whole(self) -> None:
        self._known_parts = self._reply.part_count
        self._spent += self._reply.size
        if self._delayed:
            self._delayed.cancel()
            self._delayed = None
