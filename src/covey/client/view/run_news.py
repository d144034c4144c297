"""What is new about one run since the view of its session was last looked at. Pure, and an event costs what it brings.

For faces that only ever append, such as a pipe: each text and each call comes here exactly once, whatever the stream
does in between. Text that was given out cannot be taken back. If a message turns out other than it was streamed (a
retry began it anew), it is given whole when it is finished. If it is only shorter (a server that was killed had not
stored its end), there is nothing to add.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from covey.client.transcript import TranscriptChange
from covey.client.view.view import View
from covey.protocol.endings import answer_end
from covey.protocol.events import AgentEvent
from covey.protocol.messages import FinishReason, Message, ReasoningPart, ToolCall, ToolResult
from covey.protocol.runs import Run, RunComplete


@dataclass(frozen=True, slots=True)
class RunMoved:
    """The run is in another state than before."""

    run: Run


@dataclass(frozen=True, slots=True)
class AnswerGrew:
    message_id: str
    text: str
    is_anew: bool = False
    """What was given of this message does not hold: this is all of it."""


@dataclass(frozen=True, slots=True)
class ThoughtGrew:
    message_id: str
    text: str


@dataclass(frozen=True, slots=True)
class AnswerCut:
    """An answer has ended before its model had said everything, or has failed."""

    reason: FinishReason


@dataclass(frozen=True, slots=True)
class CallBegun:
    """The model has asked for it. It may still have to wait for a permission, or for the calls before it."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class CallEnded:
    call: ToolCall
    result: ToolResult


@dataclass(frozen=True, slots=True)
class SummaryWritten:
    """The conversation goes on from a summary, which is no answer to anybody."""

    message: Message


@dataclass(frozen=True, slots=True)
class RetryAnnounced:
    retry: AgentEvent


@dataclass(frozen=True, slots=True)
class RunWarned:
    """Something that whoever reads the answer should know."""

    warning: AgentEvent


@dataclass(frozen=True, slots=True)
class PromptJoined:
    """Somebody has said something to the run, which its model reads from now on."""

    run: Run
    """What they have posted, which is folded into this one."""
    text: str


RunNewsItem = (
    RunMoved
    | AnswerGrew
    | ThoughtGrew
    | AnswerCut
    | CallBegun
    | CallEnded
    | SummaryWritten
    | RetryAnnounced
    | RunWarned
    | PromptJoined
)


class RunNews:
    """Follows one run in the view of its session, which somebody else feeds.

    A prompt that is folded in is answered in the turn of its host: from then on the host is followed.
    """

    def __init__(self, view: View, run_id: str) -> None:
        self._view = view
        self._run_id = run_id
        self._speaker = run_id
        """The run whose messages are those of this one."""
        self._run: Run | None = None
        self._retry: AgentEvent | None = None
        self._warning: AgentEvent | None = None
        self._given: dict[str, list[str]] = {}
        """By message: the answer's text that was given out."""
        self._other: set[str] = set()
        """Messages that became other than what was given of them."""
        self._thought: dict[str, int] = {}
        """By message: how many characters of its thoughts were given out."""
        self._open: dict[str, ToolCall] = {}
        self._earlier: dict[str, ToolCall] = {}
        """Calls of messages from before anybody looked. Their results may be news, they are not."""
        self._seen: set[str] = set()
        """Calls that were reported, by id."""
        self._ended: set[str] = set()
        self._finished: set[str] = set()
        self.has_all = True
        """Its first messages are known, too, so that `steps` is all of them."""

    @property
    def steps(self) -> int:
        """How many answers of the model the run has so far."""
        return len(self._given)

    @property
    def open_calls(self) -> list[ToolCall]:
        """Calls without a result, in their order."""
        return list(self._open.values())

    def update(self, change: TranscriptChange | None) -> list[RunNewsItem]:
        """What the last input of the view brought; `change` is what it did to the messages."""
        return [*self._moved(), *(self._messages(change) if change else ())]

    def recall(self, messages: Iterable[Message], *, are_told: bool = False) -> list[RunNewsItem]:
        """Messages from before the view began: a result that comes later is known by its call. Gives what is open.

        `are_told`: whatever is finished in them is no news.
        """
        messages = list(messages)
        self._earlier |= {call.id: call for message in messages for call in message.tool_calls}
        ended = {result.tool_call_id for message in messages for result in message.tool_results}
        mine = [message for message in messages if message.run_id == self._run_id]
        self.has_all = not mine or any(message.role == "user" for message in mine)
        calls = [call for message in mine for call in message.tool_calls]
        self._open |= {call.id: call for call in calls if call.finished and call.id not in ended}
        self._seen |= set(self._open)
        if are_told:
            self._seen |= {call.id for call in calls if call.id in ended}
            self._ended |= ended
            told = [each for each in mine if each.role == "assistant" and each.finish]
            self._finished |= {each.id for each in told}
            self._given |= {each.id: [each.text] for each in told if not each.is_summary_message}
        return [CallBegun(call) for call in self._open.values()]

    def end(self, terminal: RunComplete) -> list[RunNewsItem]:
        """The run has ended: what is still missing of its answer."""
        if terminal.text is None:
            return []
        return list(self._whole(terminal.message_id, terminal.text, is_finished=True))

    def _moved(self) -> Iterator[RunNewsItem]:
        asked_for = self._view.find_run(self._run_id)
        if asked_for and asked_for.run.folded_into:
            self._speaker = asked_for.run.folded_into
        record = self._view.find_run(self._speaker)
        if record is None:
            return
        if self._run is None or record.run.state != self._run.state:
            self._run = record.run
            yield RunMoved(record.run)
        if record.warning and record.warning is not self._warning:
            self._warning = record.warning
            yield RunWarned(record.warning)
        if record.retry is not self._retry:
            self._retry = record.retry
            if record.retry:
                yield RetryAnnounced(record.retry)

    def _messages(self, change: TranscriptChange) -> Iterator[RunNewsItem]:
        known = self._view.conversation.messages
        if change.kind == "reset":  # they were loaded, also those whose events were missed
            for loaded in known:
                yield from self._message(loaded) if loaded.run_id == self._speaker else ()
            return
        begun = known.begun(change.message_id) if change.message_id else None
        if begun is None or begun.run_id != self._speaker:
            yield from self._joined(begun) if begun and begun.role == "user" else ()
            return
        is_known = change.message_id in self._given or begun.is_summary_message
        if change.kind == "grew" and is_known:
            yield from () if begun.is_summary_message else self._grew(change)
        elif change.kind in ("grew", "whole"):
            message = known.get(change.message_id)
            assert message
            yield from self._message(message)

    def _message(self, message: Message) -> Iterator[RunNewsItem]:
        yield from self._tool(message) if message.role == "tool" else self._assistant(message)

    def _joined(self, prompt: Message) -> Iterator[RunNewsItem]:
        """What others have said to the run. What is followed here has been typed by whoever follows it."""
        record = self._view.find_run(prompt.run_id or "")
        if record is None or record.run.folded_into != self._speaker or record.run.run_id == self._run_id:
            return
        if prompt.id not in self._finished:
            self._finished.add(prompt.id)
            yield PromptJoined(record.run, prompt.text)

    def _grew(self, change: TranscriptChange) -> Iterator[RunNewsItem]:
        if change.text_kind == "text" and change.message_id not in self._other:
            self._given.setdefault(change.message_id, []).append(change.text)
            yield AnswerGrew(change.message_id, change.text)
        elif change.text_kind == "reasoning":
            self._thought[change.message_id] = self._thought.get(change.message_id, 0) + len(change.text)
            yield ThoughtGrew(change.message_id, change.text)

    def _assistant(self, message: Message) -> Iterator[RunNewsItem]:
        is_newly_finished = message.finish is not None and message.id not in self._finished
        if message.finish:
            self._finished.add(message.id)
        if message.role != "assistant":
            return
        if message.is_summary_message:
            if is_newly_finished and answer_end(message.finish) is None:  # what failed or was stopped is none
                yield SummaryWritten(message)
            return
        if message.id not in self._given:  # the calls before it have ended, perhaps while nobody looked
            self._open = {call_id: call for call_id, call in self._open.items() if call_id not in self._earlier}
            self._given[message.id] = []
        yield from self._thoughts(message)
        yield from self._whole(message.id, message.text, is_finished=message.finish is not None)
        for call in message.tool_calls:
            if call.finished and call.id not in self._seen:
                self._seen.add(call.id)
                self._open[call.id] = call
                yield CallBegun(call)
        if message.finish and is_newly_finished and message.finish.reason not in ("end_turn", "tool_use"):
            yield AnswerCut(message.finish.reason)

    def _thoughts(self, message: Message) -> Iterator[RunNewsItem]:
        text = "".join(part.data.thinking for part in message.parts if isinstance(part, ReasoningPart))
        if fresh := text[self._thought.get(message.id, 0) :]:
            self._thought[message.id] = len(text)
            yield ThoughtGrew(message.id, fresh)

    def _whole(self, message_id: str, text: str, *, is_finished: bool) -> Iterator[RunNewsItem]:
        given = "".join(self._given.get(message_id, ()))
        if text.startswith(given):
            self._other.discard(message_id)
            if fresh := text[len(given) :]:
                self._given[message_id] = [text]
                yield AnswerGrew(message_id, fresh)
        elif not is_finished:
            self._other.add(message_id)
        else:
            self._other.discard(message_id)
            if not given.startswith(text):
                self._given[message_id] = [text]
                yield AnswerGrew(message_id, text, is_anew=True)

    def _tool(self, message: Message) -> Iterator[RunNewsItem]:
        for result in message.tool_results:
            if result.tool_call_id not in self._ended:
                self._ended.add(result.tool_call_id)
                yield CallEnded(self._open.pop(result.tool_call_id, self._unseen(result)), result)

    def _unseen(self, result: ToolResult) -> ToolCall:
        """The call of a watcher who came late, as far as it is known."""
        unknown = ToolCall(id=result.tool_call_id, name=result.name, input="", finished=True)
        return self._earlier.get(result.tool_call_id, unknown)
