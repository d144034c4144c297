"""What `covey run` writes to stdout: text as it grows, JSON that fits a schema, one object, or a line per event."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TextIO

import msgspec

from covey.cli.screen import Screen
from covey.cli.terminal_text import escaped_json, json_text
from covey.client.denials import Denied, denied_calls
from covey.client.view.run_news import AnswerGrew, RunNewsItem
from covey.client.view.view import View
from covey.lines.plain_text import plain
from covey.protocol.events import Event, created, encode_event
from covey.protocol.runs import RunComplete, Usage

TAKEN_BACK = (
    "the answer broke off and was asked for again: the words of it that are written already are taken back, "
    "and it begins anew on a line of its own."
)


class Printer(Protocol):
    def update(self, event: Event, news: Sequence[RunNewsItem]) -> None:
        """Something happened in the session; what of it is news of the run."""

    def end(self, terminal: RunComplete, news: Sequence[RunNewsItem], exit_code: int, why: str = "") -> None:
        """The run has ended. Whatever was not written yet is written now.

        `why` the exit code is what it is, where the end of the run does not say so.
        """


class TextPrinter:
    """The answer as the model wrote it. Into a pipe goes every byte; to a terminal only what cannot drive it."""

    def __init__(self, stdout: TextIO, screen: Screen) -> None:
        self._stdout = stdout
        self._screen = screen
        self._is_terminal = stdout.isatty()
        self._current = ""
        self._last = "\n"

    def update(self, event: Event, news: Sequence[RunNewsItem]) -> None:
        for item in news:
            if isinstance(item, AnswerGrew):
                self._write(item)

    def end(self, terminal: RunComplete, news: Sequence[RunNewsItem], exit_code: int, why: str = "") -> None:
        for item in news:
            if isinstance(item, AnswerGrew):
                self._write(item)
        self._new_line()
        self._stdout.flush()

    def _write(self, item: AnswerGrew) -> None:
        self._screen.clear()
        if not self._is_terminal:
            # The reader of the pipe may write to the same terminal, where a spinner would erase it.
            self._screen.stop_spinning()
        if item.is_anew:
            self._screen.warn(TAKEN_BACK)
        if item.message_id != self._current or item.is_anew:
            self._new_line()
            self._current = item.message_id
        self._put(plain(item.text) if self._is_terminal else item.text)

    def _new_line(self) -> None:
        if self._last != "\n" and not self._screen.began_line:
            self._put("\n")

    def _put(self, text: str) -> None:
        if text:
            self._stdout.write(text)
            self._stdout.flush()
            self._last = text[-1]
            self._screen.at_line_start = self._last == "\n"


def answer_printer(stdout: TextIO, screen: Screen, *, is_raw: bool) -> Printer:
    """Rendered on a terminal, and as it was written in a pipe and for whoever wants it so."""
    if is_raw or not stdout.isatty():
        return TextPrinter(stdout, screen)
    from covey.cli.row_printer import RowPrinter  # late: scripts need none of it

    return RowPrinter(stdout, screen)


class OutputPrinter:
    """With a schema: nothing but the JSON that fits it, on one line, for whatever program reads it."""

    def __init__(self, stdout: TextIO) -> None:
        self._stdout = stdout

    def update(self, event: Event, news: Sequence[RunNewsItem]) -> None:
        """An answer that is still growing may turn out not to fit."""

    def end(self, terminal: RunComplete, news: Sequence[RunNewsItem], exit_code: int, why: str = "") -> None:
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
    at_bound: bool
    folded_into: str | None
    usage: Usage | None
    denied: tuple[Denied, ...]
    """What the run was not allowed to do."""
    output: Any
    """With `--schema`: the JSON that fits it; null if there is none."""


class JsonPrinter:
    """One object at the end, and never more than one. What was said until then is known from the view."""

    def __init__(self, stdout: TextIO, view: View) -> None:
        self._stdout = stdout
        self._view = view
        self._is_written = False

    def update(self, event: Event, news: Sequence[RunNewsItem]) -> None:
        """Nothing is written before the end."""

    def end(self, terminal: RunComplete, news: Sequence[RunNewsItem], exit_code: int, why: str = "") -> None:
        if self._is_written:
            return
        self._is_written = True
        fields = {name: getattr(terminal, name) for name in RunComplete.__struct_fields__}
        fields["error"] = terminal.error or why or None
        if terminal.text is None:
            fields["text"] = self._last_text(terminal.run_id)
        fields["denied"] = denied_calls(self._view.conversation.messages, terminal.folded_into or terminal.run_id)
        self._stdout.write(json_text(Result(exit_code=exit_code, **fields)) + "\n")
        self._stdout.flush()

    def fail(self, run_id: str, session_id: str, error: str, exit_code: int) -> None:
        """Instead of an end: there is no run, or we do not wait for its end."""
        self.end(RunComplete(session_id=session_id, run_id=run_id, message_id="", error=error), (), exit_code)

    def _last_text(self, run_id: str) -> str | None:
        answers = [m for m in self._view.conversation.messages if m.run_id == run_id and m.role == "assistant"]
        texts = [answer.text for answer in answers if answer.text and not answer.is_summary_message]
        return texts[-1] if texts else None


class StreamJsonPrinter:
    """A line for each event of the session, as it crosses the wire. The last one is the run's `run_complete`.

    Without an end of the run, the last line is an object that says why: `{"error": …, "exit_code": …}`.
    """

    def __init__(self, stdout: TextIO, view: View) -> None:
        self._stdout = stdout
        self._view = view

    def update(self, event: Event, news: Sequence[RunNewsItem]) -> None:
        self._stdout.write(escaped_json(encode_event(event).decode()) + "\n")
        self._stdout.flush()

    def end(self, terminal: RunComplete, news: Sequence[RunNewsItem], exit_code: int, why: str = "") -> None:
        if terminal.run_id not in self._view.conversation.terminals:
            self.update(created(terminal), news)

    def fail(self, run_id: str, session_id: str, error: str, exit_code: int) -> None:
        """Instead of an end: there is no run, or we do not wait for its end."""
        self._stdout.write(json_text({"error": error, "exit_code": exit_code}) + "\n")
        self._stdout.flush()
