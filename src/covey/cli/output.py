"""What `covey run` writes to stdout: text as it grows, JSON that fits a schema, one object, or a line per event."""

from __future__ import annotations

from typing import Any, Protocol, TextIO

import msgspec

from covey.cli.denials import Denied, denied_calls
from covey.cli.screen import Screen, plain
from covey.cli.terminal_text import escaped_json, json_text
from covey.client.transcript import TranscriptChange
from covey.client.view.view import View
from covey.protocol.events import Event, MessageDelta, created, encode_event
from covey.protocol.messages import Message
from covey.protocol.runs import RunComplete, Usage


class Printer(Protocol):
    def event(self, event: Event, change: TranscriptChange | None) -> None:
        """Something happened in the session."""

    def end(self, terminal: RunComplete, exit_code: int) -> None:
        """The run has ended. Whatever was not written yet is written now."""


class TextPrinter:
    """The text of each assistant message of one run, as it grows, each exactly once.

    Text that was written cannot be taken back. If a message turns out other than it was streamed (a retry
    restarted it), it is written again, whole, when it is finished. If it is only shorter (a server that was killed had
    not stored its end), there is nothing to add.
    """

    def __init__(self, stdout: TextIO, run_id: str, screen: Screen) -> None:
        self._stdout = stdout
        self._run_id = run_id
        self._screen = screen
        self._plain = stdout.isatty()
        self._written: dict[str, list[str]] = {}
        self._other: set[str] = set()
        """Messages that became other than what was written of them."""
        self._current = ""
        self._last = "\n"

    def event(self, event: Event, change: TranscriptChange | None) -> None:
        match event.payload:
            case MessageDelta() as delta if change and change.kind == "grew" and change.text_kind == "text":
                if delta.run_id == self._run_id and delta.message_id not in self._other:
                    self._write(delta.message_id, change.text)
            case Message(role="assistant") as message if event.change != "deleted" and message.run_id == self._run_id:
                self._whole(message.id, message.text, finished=message.finish is not None)

    def end(self, terminal: RunComplete, exit_code: int) -> None:
        if terminal.text is not None:
            self._whole(terminal.message_id, terminal.text, finished=True)
        self._new_line()
        self._stdout.flush()

    def _whole(self, message_id: str, text: str, *, finished: bool) -> None:
        written = "".join(self._written.get(message_id, ()))
        if text.startswith(written):
            self._other.discard(message_id)
            self._write(message_id, text[len(written) :])
        elif finished:
            self._other.discard(message_id)
            if not written.startswith(text):
                self._written[message_id] = []
                self._current = ""
                self._write(message_id, text)
        else:
            self._other.add(message_id)

    def _write(self, message_id: str, text: str) -> None:
        if not text:
            return
        self._screen.clear()
        if not self._plain:
            # The reader of the pipe may write to the same terminal, where a spinner would erase it.
            self._screen.stop_spinning()
        if message_id != self._current:
            self._new_line()
            self._current = message_id
        self._written.setdefault(message_id, []).append(text)
        self._put(plain(text) if self._plain else text)

    def _new_line(self) -> None:
        if self._last != "\n" and not self._screen.began_line:
            self._put("\n")

    def _put(self, text: str) -> None:
        if text:
            self._stdout.write(text)
            self._stdout.flush()
            self._last = text[-1]
            self._screen.at_line_start = self._last == "\n"


class OutputPrinter:
    """With a schema: nothing but the JSON that fits it, on one line, for whatever program reads it."""

    def __init__(self, stdout: TextIO) -> None:
        self._stdout = stdout

    def event(self, event: Event, change: TranscriptChange | None) -> None:
        """An answer that is still growing may turn out not to fit."""

    def end(self, terminal: RunComplete, exit_code: int) -> None:
        if terminal.outcome == "completed":
            self._stdout.write(json_text(terminal.output) + "\n")
            self._stdout.flush()


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What `--json` writes. All fields are always there."""

    run_id: str
    session_id: str
    message_id: str
    exit_code: int
    text: str | None
    """The answer or, if the run did not complete, as much as there is of it."""
    error: str | None
    cancelled: bool
    interrupted: bool
    folded_into: str | None
    usage: Usage | None
    denied: list[Denied]
    """What the run was not allowed to do."""
    output: Any
    """With `--schema`: the JSON that fits it; null if there is none."""


class JsonPrinter:
    """One object at the end, and never more than one. What was said until then is known from the view."""

    def __init__(self, stdout: TextIO, view: View) -> None:
        self._stdout = stdout
        self._view = view
        self._is_written = False

    def event(self, event: Event, change: TranscriptChange | None) -> None:
        """Nothing is written before the end."""

    def end(self, terminal: RunComplete, exit_code: int) -> None:
        if self._is_written:
            return
        self._is_written = True
        fields = {name: getattr(terminal, name) for name in RunComplete.__struct_fields__}
        if terminal.text is None:
            fields["text"] = self._last_text(terminal.run_id)
        fields["denied"] = denied_calls(self._view.conversation.messages, terminal.folded_into or terminal.run_id)
        self._stdout.write(json_text(Result(exit_code=exit_code, **fields)) + "\n")
        self._stdout.flush()

    def fail(self, run_id: str, session_id: str, error: str, exit_code: int) -> None:
        """Instead of an end: there is no run, or we do not wait for its end."""
        self.end(RunComplete(session_id=session_id, run_id=run_id, message_id="", error=error), exit_code)

    def _last_text(self, run_id: str) -> str | None:
        messages = self._view.conversation.messages
        texts = [m.text for m in messages if m.run_id == run_id and m.role == "assistant" and m.text]
        return texts[-1] if texts else None


class StreamJsonPrinter:
    """A line for each event of the session, as it crosses the wire. The last one is the run's `run_complete`."""

    def __init__(self, stdout: TextIO) -> None:
        self._stdout = stdout
        self._ended: set[str] = set()

    def event(self, event: Event, change: TranscriptChange | None) -> None:
        if isinstance(event.payload, RunComplete):
            self._ended.add(event.payload.run_id)
        self._stdout.write(escaped_json(encode_event(event).decode()) + "\n")
        self._stdout.flush()

    def end(self, terminal: RunComplete, exit_code: int) -> None:
        if terminal.run_id not in self._ended:
            self.event(created(terminal), None)
