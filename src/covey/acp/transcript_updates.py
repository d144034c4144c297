"""The messages of a session → updates for an editor that only ever appends: each text and each call once. Pure.

What changed is only noted when it happens (`changed`), and becomes updates when the editor takes some (`take`). So an
editor that reads slowly gets few large pieces instead of many small ones, and nothing piles up for it but what the view
has anyway. Text that was given cannot be taken back: an answer that was begun anew is given whole when it is finished.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Container, Iterator
from typing import assert_never

from covey.acp import calls
from covey.acp.content import Json, fenced, image_block, text_block
from covey.client.transcript import Transcript, TranscriptChange
from covey.lines.plain_text import one_line
from covey.protocol.custom import COMMAND_TYPE
from covey.protocol.endings import answer_end
from covey.protocol.messages import (
    BinaryPart,
    Message,
    ReasoningPart,
    ShellCommandPart,
    TextPart,
    ToolCall,
)
from covey.protocol.printed import as_printed

SUMMARISED = "The conversation until here was replaced by a summary."

Growth = list[tuple[str, str]]
"""Kind and text of what was added to a message."""


class _Given:
    """What the editor has of an answer that is not finished."""

    __slots__ = ("is_other", "text", "thought")

    def __init__(self) -> None:
        self.text: list[str] = []
        self.thought = 0
        """Characters."""
        self.is_other = False
        """It has become something else than what was given of it."""


class TranscriptUpdates:
    """For one session. `own`: the runs whose prompts the editor shows already, as it sent them."""

    def __init__(self, own: Container[str], root: str) -> None:
        self._own = own
        self._root = root
        self._pending: OrderedDict[str, Growth | None] = OrderedDict()
        """By message, as they changed: what it grew by, or None if all of it has to be looked at."""
        self._given: dict[str, _Given] = {}
        self._done: set[str] = set()
        """Messages of which nothing is missing."""
        self._replayed: set[str] = set()
        """Messages that are given although the editor may have sent them."""
        self._calls: dict[str, bool] = {}
        """Calls that the editor knows and that have no result; true: with what they were asked for."""

    @property
    def is_pending(self) -> bool:
        return bool(self._pending)

    def replay(self, messages: Transcript) -> None:
        """All that there is has to be given, whatever the editor had before."""
        self._given.clear()
        self._done.clear()
        self._calls.clear()
        self._pending = OrderedDict((message.id, None) for message in messages)
        self._replayed = set(self._pending)

    def skip(self, messages: Transcript) -> None:
        """The editor has all that there is until now."""
        for message in messages:
            for _ in self._message(message):
                pass
        self._calls.clear()
        self._pending.clear()

    def changed(self, change: TranscriptChange, messages: Transcript) -> None:
        """The last input of the view did this to its messages."""
        match change.kind:
            case "grew":
                growth = self._pending.setdefault(change.message_id, [])
                if growth is not None:
                    growth.append((change.text_kind, change.text))
            case "whole":
                self._look_at(change.message_id)
            case "reset":
                for message in messages:
                    self._look_at(message.id)
            case "removed":
                self._pending.pop(change.message_id, None)
            case "hole":
                pass
            case _:
                assert_never(change.kind)

    def take(self, messages: Transcript, limit: int) -> Iterator[Json]:
        """What the editor has to be told, of at most so many messages."""
        for _ in range(min(limit, len(self._pending))):
            message_id, growth = self._pending.popitem(last=False)
            if growth is not None and message_id in self._given:
                yield from self._grown(message_id, growth)
            elif message := messages.get(message_id):
                yield from self._message(message)

    def knows(self, call_id: str) -> bool:
        return call_id in self._calls

    # ── inside ──

    def _look_at(self, message_id: str) -> None:
        if message_id not in self._done:
            self._pending[message_id] = None

    def _grown(self, message_id: str, growth: Growth) -> Iterator[Json]:
        given = self._given[message_id]
        thought = "".join(text for kind, text in growth if kind == "reasoning")
        if thought:
            given.thought += len(thought)
            yield _chunk("agent_thought_chunk", text_block(thought), message_id)
        text = "".join(text for kind, text in growth if kind == "text")
        if text and not given.is_other:
            given.text.append(text)
            yield _chunk("agent_message_chunk", text_block(text), message_id)

    def _message(self, message: Message) -> Iterator[Json]:
        if message.id in self._done:
            return
        match message.role:
            case "user":
                self._done.add(message.id)
                if message.id in self._replayed or message.run_id not in self._own:
                    yield from _user(message)
            case "assistant":
                yield from self._answer(message)
            case "tool":
                self._done.add(message.id)
                yield from self._results(message)
            case "system":
                self._done.add(message.id)
            case _:
                assert_never(message.role)

    def _answer(self, message: Message) -> Iterator[Json]:
        if message.finish:
            self._done.add(message.id)
        if message.is_summary_message:
            if message.finish and answer_end(message.finish) is None:  # what failed or was stopped is none
                yield _chunk("agent_message_chunk", text_block(SUMMARISED), message.id)
            return
        given = self._given.setdefault(message.id, _Given())
        yield from _thoughts(message, given)
        yield from _text(message, given)
        for call in message.tool_calls:
            yield from self._call(call)
        if message.finish:
            del self._given[message.id]

    def _call(self, call: ToolCall) -> Iterator[Json]:
        is_known, is_whole = call.id in self._calls, self._calls.get(call.id, False)
        if is_whole or (is_known and not call.finished):
            return
        self._calls[call.id] = call.finished
        fields = calls.asked_for(call, self._root) if call.finished else calls.begun(call)
        yield {"sessionUpdate": "tool_call_update" if is_known else "tool_call", **fields}

    def _results(self, message: Message) -> Iterator[Json]:
        for result in message.tool_results:
            fields = calls.ended(result, self._root)
            if self._calls.pop(result.tool_call_id, None) is None:
                # Its call was made before the editor came.
                unknown = ToolCall(id=result.tool_call_id, name=result.name, input="", finished=False)
                yield {"sessionUpdate": "tool_call", **calls.begun(unknown), **fields}
            else:
                yield {"sessionUpdate": "tool_call_update", **fields}


def _thoughts(message: Message, given: _Given) -> Iterator[Json]:
    thought = "".join(part.data.thinking for part in message.parts if isinstance(part, ReasoningPart))
    if fresh := thought[given.thought :]:
        given.thought = len(thought)
        yield _chunk("agent_thought_chunk", text_block(fresh), message.id)


def _text(message: Message, given: _Given) -> Iterator[Json]:
    text, before = message.text, "".join(given.text)
    if text.startswith(before):
        given.text, given.is_other = [text], False
        if fresh := text[len(before) :]:
            yield _chunk("agent_message_chunk", text_block(fresh), message.id)
    elif not message.finish:
        given.is_other = True
    elif not before.startswith(text):
        yield _chunk("agent_message_chunk", text_block(text), f"{message.id}/again")


def _user(message: Message) -> Iterator[Json]:
    for part in message.parts:
        match part:
            case TextPart(data=data) if data.text:
                yield _chunk("user_message_chunk", text_block(data.text), message.id)
            case BinaryPart(data=data) if data.MIMEType.startswith("image/"):
                yield _chunk("user_message_chunk", image_block(data.Data, data.MIMEType), message.id)
            case BinaryPart(data=data) if data.MIMEType != COMMAND_TYPE:
                yield _chunk("user_message_chunk", text_block(f"\n[{one_line(data.Path)}]"), message.id)
            case ShellCommandPart(data=data):
                text = fenced(f"$ {data.command}\n{as_printed(data.output)}")
                yield _chunk("user_message_chunk", text_block(text), message.id)


def _chunk(kind: str, block: Json, message_id: str) -> Json:
    return {"sessionUpdate": kind, "content": block, "messageId": message_id}
