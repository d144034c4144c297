"""The messages of the session that is shown, what its running calls print, and messages in progress elsewhere."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from covey.client.transcript import Transcript, TranscriptChange
from covey.client.view.output_tail import ShownOutput
from covey.protocol.events import Event, MessageDelta, ToolOutputDelta, updated
from covey.protocol.messages import Message
from covey.protocol.runs import RunComplete

OUTPUTS_SHOWN = 32
"""Outputs of calls and jobs. No event says that a job has ended, so the ones that printed first go."""
HELD_DELTAS = 4096
"""Growth that is kept for messages which are being loaded. If there is more, the stream is opened again instead."""


class ShownConversation:
    """What is known of messages. Of other sessions only those in progress are kept.

    Without them, a session that is opened in the middle of an answer would have a hole where its load ends.
    """

    def __init__(self, session_id: str = "") -> None:
        self.session_id = session_id
        self.messages = Transcript()
        self.has_older = False
        """There are messages before the first of these."""
        self.outputs: dict[str, ShownOutput] = {}
        """By tool call, until it has a result; what a job prints after that, from there on."""
        self.terminals: dict[str, RunComplete] = {}
        """The terminal events of its runs that have come, by run."""
        self._elsewhere = Transcript()
        self._held: list[MessageDelta] = []

    def show(self, session_id: str) -> None:
        """Another session: of the one before, what is in progress stays known."""
        unfinished = [message.id for message in self.messages if message.role == "assistant" and not message.finish]
        for message_id in unfinished:
            if growing := self.messages.pop(message_id):
                self._elsewhere.add(message_id, growing)
        self.session_id = session_id
        self.messages = Transcript()
        self._elsewhere.move(session_id, self.messages)
        self.has_older = False
        self.outputs.clear()
        self.terminals.clear()
        self._held.clear()

    def message(self, message: Message, event: Event) -> TranscriptChange | None:
        if message.session_id == self.session_id:
            self.outputs.pop(message.id, None)  # a person's own command, which has ended
            for result in message.tool_results:
                self.outputs.pop(result.tool_call_id, None)
            return self.messages.apply(event)
        if event.change == "deleted" or message.role != "assistant" or message.finish:
            self._elsewhere.pop(message.id)
        else:
            self._elsewhere.put(message)
        return None

    def grow(self, delta: MessageDelta, event: Event, *, is_loading: bool) -> TranscriptChange | None:
        """A hole is reported only where nothing is on its way that could fill it."""
        if delta.session_id != self.session_id:
            change = self._elsewhere.apply(event)
            if change and change.kind == "hole":
                self._elsewhere.pop(delta.message_id)
            return None
        change = self.messages.apply(event)
        if change and change.kind == "hole" and is_loading:
            if len(self._held) < HELD_DELTAS:
                self._held.append(delta)
            return None
        return change

    def load(self, messages: Iterable[Message], newer: Collection[str], *, has_older: bool) -> TranscriptChange:
        """All of the session, or its last ones. What grew meanwhile and did not fit is added now."""
        self.messages.load(messages, newer)
        self.has_older = has_older
        held, self._held = self._held, []
        changes = [self.messages.apply(updated(delta)) for delta in held]
        return next((change for change in changes if change and change.kind == "hole"), TranscriptChange("reset"))

    def load_older(self, messages: Iterable[Message], newer: Collection[str], *, has_older: bool) -> TranscriptChange:
        self.messages.prepend(messages, newer)
        self.has_older = has_older
        return TranscriptChange("reset")

    def clear(self, event: Event) -> TranscriptChange | None:
        """A gap, after which the stream itself brings everything again."""
        self._elsewhere.apply(event)
        self.outputs.clear()
        return self.messages.apply(event)

    def printed(self, delta: ToolOutputDelta) -> None:
        if delta.session_id == self.session_id:
            output = self.outputs.get(delta.tool_call_id)
            if output is None:
                output = self.outputs[delta.tool_call_id] = ShownOutput(delta)
            output.add(delta)
            if len(self.outputs) > OUTPUTS_SHOWN:
                del self.outputs[next(iter(self.outputs))]

    def run_ended(self, terminal: RunComplete) -> None:
        """Nothing of it is printed any more. What prints is little: looking at all of it costs nothing."""
        if terminal.session_id == self.session_id:
            self.terminals[terminal.run_id] = terminal
        for call_id in [call_id for call_id, output in self.outputs.items() if output.run_id == terminal.run_id]:
            del self.outputs[call_id]
