"""From the view state to items: what one message says, with the results of its calls. Looks at no other message."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import assert_never

from covey.client.view.records import RunRecord, SentPrompt
from covey.client.view.view import View
from covey.lines.calls import runs_beside_others
from covey.lines.notes import ending_note, retry_note
from covey.lines.pictures import PictureSource
from covey.lines.plain_text import one_line
from covey.lines.words import called
from covey.protocol.endings import answer_end
from covey.protocol.extensions import ApprovalRequest
from covey.protocol.messages import (
    BinaryPart,
    Finish,
    FinishPart,
    ImageUrlPart,
    Message,
    Part,
    ReasoningPart,
    ShellCommandPart,
    TextPart,
    ToolCall,
    ToolCallPart,
    ToolResult,
    ToolResultPart,
)
from covey.tui.transcript.items import (
    AnswerItem,
    CallItem,
    CallState,
    Item,
    NoteItem,
    PromptItem,
    SendingState,
    ShellItem,
    SummaryItem,
    ThoughtItem,
)

TAIL_ROWS = 5
"""Of what a running command prints."""


@dataclass(frozen=True, slots=True)
class MessageEntry:
    """A message, and the messages after it that hold the results of its calls."""

    message: Message
    results: tuple[Message, ...] = ()


class CallClock:
    """How long calls run, as seen from here: nobody says when a call begins. Knows only those that run."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}
        self._took: dict[str, float] = {}

    def running(self, call_id: str, now: float) -> int:
        return int(now - self._since.setdefault(call_id, now))

    def waits(self, call_id: str) -> None:
        """It has not begun, or a person is asked about it: that is not its time."""
        self._since.pop(call_id, None)

    def ended(self, call_id: str, now: float) -> float | None:
        begun = self._since.pop(call_id, None)
        if begun is not None:
            self._took[call_id] = round(now - begun, 1)
            if len(self._took) > TIMES_KEPT:
                del self._took[next(iter(self._took))]
        return self._took.get(call_id)


TIMES_KEPT = 500
"""Calls that have ended, of which one may still want to see how long they took."""


@dataclass(frozen=True, slots=True)
class EntryReader:
    """Reads entries of the session that is shown. `me` is what the user here is called."""

    view: View
    clock: CallClock
    now: float
    is_open: Callable[[str], bool]
    """Whether the item with this key is open."""
    me: str = ""

    def items(self, entry: MessageEntry) -> list[Item]:
        message = entry.message
        match message.role:
            case "user":
                return list(self._said(message))
            case "assistant":
                is_summary = message.is_summary_message and answer_end(message.finish) is None
                return list(self._summary(message) if is_summary else self._answered(entry))
            case "tool":
                return [self._call(_unseen(result), result, message) for result in message.tool_results]
            case "system":
                return [NoteItem(message.id, one_line(message.text))] if message.text.strip() else []
            case _:
                assert_never(message.role)

    def after_all(self) -> list[Item]:
        """What comes after the last message: what to know of the newest turn, what people's own commands print, and
        prompts that no run is known of."""
        view = self.view
        record = view.sessions.get(view.current) if view.current else None
        runs = [each for each in record.runs.values() if each.run.started_at] if record else []
        newest = max(runs, key=lambda each: each.run.seq, default=None)
        sent = [sent for sent in view.outbox.prompts.values() if sent.prompt.session_id == view.current]
        passing = self._passing(newest) if newest else ()
        return [*passing, *self._printed(), *(self._outgoing(each) for each in sent)]

    def _printed(self) -> Iterator[Item]:
        """Of people's own commands, which have no message before they end: the last lines."""
        for output in self.view.conversation.outputs.values():
            if output.is_own_command:
                for number, text in enumerate(output.last_lines(TAIL_ROWS)):
                    yield NoteItem(f"printed {output.message_id} {number}", one_line(text), "!")

    def _passing(self, record: RunRecord) -> Iterator[Item]:
        """Of a run: what no message says."""
        if record.warning and record.warning.reason:
            yield NoteItem("warning", one_line(record.warning.reason), "!", "warning")
        if record.retry:
            yield NoteItem("retry", retry_note(record.retry, self.now), "↻", "warning", is_waiting=True)

    def _run(self, message: Message) -> RunRecord | None:
        return self.view.find_run(message.run_id) if message.run_id else None

    def _said(self, message: Message) -> Iterator[Item]:
        record = self._run(message)
        if record and record.run.effective_options.summarize:
            return  # our own words to the model; the summary shows itself
        files = tuple(_name(part) for part in message.parts if isinstance(part, BinaryPart | ImageUrlPart))
        if message.text or files:
            who = called(record.run.posted_by, self.me) if record else ""
            pictures = tuple(filter(None, map(_picture, message.parts)))
            yield PromptItem(message.id, message.text, who, message.created_at, files, pictures=pictures)
        for number, part in enumerate(message.parts):
            if isinstance(part, ShellCommandPart):
                yield ShellItem(f"{message.id}/{number}", part.data, message.created_at)

    def _outgoing(self, sent: SentPrompt) -> Item:
        is_waiting = sent.state == "sending" and self.view.link.state != "connected"
        state: SendingState = "refused" if sent.state == "refused" else "not_sent" if is_waiting else "sending"
        files = tuple(one_line(each.file_name) for each in sent.prompt.attachments or ())
        key = f"prompt {sent.prompt.run_id}"
        return PromptItem(key, sent.prompt.prompt, "you", sent.given_at, files, state, one_line(sent.error))

    def _summary(self, message: Message) -> Iterator[Item]:
        record = self._run(message)
        yield SummaryItem(message.id, message.text, message.finish is None and bool(record and not record.run.ended))

    def _answered(self, entry: MessageEntry) -> Iterator[Item]:
        message = entry.message
        record = self._run(message)
        last = len(message.parts) - 1 if record and not record.run.ended else -1
        results = {result.tool_call_id: result for each in entry.results for result in each.tool_results}
        is_first = True
        for number, part in enumerate(message.parts):
            key, is_growing = f"{message.id}/{number}", number == last
            match part:
                case TextPart() if part.data.text.strip():
                    yield AnswerItem(key, part.data.text, is_growing)
                case ReasoningPart() if part.data.thinking.strip():
                    seconds = _seconds(part.data.started_at, part.data.finished_at)
                    yield ThoughtItem(key, part.data.thinking, seconds, is_growing)
                case ToolCallPart():
                    result = results.get(part.data.id)
                    yield self._call(part.data, result, message, is_first=is_first)
                    is_first = is_first and result is not None
                case BinaryPart() | ImageUrlPart():
                    yield NoteItem(key, _name(part), "▣", picture=_picture(part))
                case FinishPart():
                    yield from self._ending(message, part.data)
                case ShellCommandPart():
                    yield ShellItem(key, part.data, message.created_at)
                case TextPart() | ReasoningPart() | ToolResultPart():
                    pass
                case _:
                    assert_never(part)

    def _call(self, call: ToolCall, result: ToolResult | None, message: Message, *, is_first: bool = True) -> CallItem:
        output = self.view.conversation.outputs.get(call.id)
        tail = tuple(output.last_lines(TAIL_ROWS)) if output else ()
        key = f"call {call.id}"
        if result:
            return CallItem(key, call, "ended", result, self.clock.ended(call.id, self.now), tail)
        state = self._state(call, message, is_first=is_first)
        seconds = self.clock.running(call.id, self.now) if state == "running" else None
        if state != "running":
            self.clock.waits(call.id)
        if output and self.is_open(key):
            return CallItem(key, call, state, None, seconds, printed=output.text)
        return CallItem(key, call, state, None, seconds, tail)

    def _state(self, call: ToolCall, message: Message, *, is_first: bool) -> CallState:
        record = self._run(message)
        if record is None or record.run.ended:
            return "left"
        if not call.finished:
            return "written"
        requests = (ask.request for ask in self.view.asks.open.values())
        if any(not isinstance(asked, ApprovalRequest) and asked.tool_call_id == call.id for asked in requests):
            return "asked"
        return "running" if is_first or runs_beside_others(call) else "waits"

    def _ending(self, message: Message, finish: Finish) -> Iterator[Item]:
        record = self._run(message)
        note = ending_note(
            finish, record.run if record else None, me=self.me, key_refused=bool(record and record.key_refused)
        )
        if note:
            mark, text, style = note
            yield NoteItem(f"{message.id}/end", text, mark, style)


def _seconds(begun: int | None, ended: int | None) -> int | None:
    return ended - begun if begun and ended else None


def _name(part: BinaryPart | ImageUrlPart) -> str:
    if isinstance(part, ImageUrlPart):
        return "image" if part.data.url.startswith("data:") else one_line(part.data.url)
    return one_line(part.data.Path) or one_line(part.data.MIMEType)


def _picture(part: Part) -> PictureSource | None:
    """What can be shown of a part, where a terminal can."""
    if isinstance(part, BinaryPart) and part.data.MIMEType.startswith("image/"):
        return PictureSource(_name(part), part.data.MIMEType, part.data.Data)
    if isinstance(part, ImageUrlPart) and part.data.url.startswith("data:image/"):
        kind, _, data = part.data.url.removeprefix("data:").partition(";base64,")
        return PictureSource("image", kind, data)
    return None


def _unseen(result: ToolResult) -> ToolCall:
    """The call of a result whose message is not known here."""
    return ToolCall(id=result.tool_call_id, name=result.name, input="", finished=True)
