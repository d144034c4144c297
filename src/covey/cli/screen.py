"""What people see beside the answer: notes on stderr, and a spinner when it is a terminal. Never anything on stdout."""

from __future__ import annotations

import asyncio
import os
import time
from typing import TextIO

from covey.cli.terminal_text import one_line, plain, undisguised

__all__ = ["FRAMES", "Screen", "plain", "warning"]

FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
FRAME_S = 0.1
PATIENCE_S = 0.3
"""A wait that is shorter than this needs no spinner."""


def warning(text: str) -> str:
    """Further lines belong to the first, and are indented below it."""
    return f"covey: {plain(text)}".replace("\n", "\n  ")


class Screen:
    """Stderr of one command. `at_line_start` is set by whatever writes the answer to the same terminal."""

    def __init__(self, stream: TextIO, *, quiet: bool, shares_terminal: bool) -> None:
        self._stream = undisguised(stream)
        self._quiet = quiet
        self._shares_terminal = shares_terminal
        self._spins = stream.isatty() and not quiet and os.environ.get("TERM") != "dumb"
        self._colors = stream.isatty() and not os.environ.get("NO_COLOR")
        self._waiting_for = ""
        self._since = 0.0
        self._drawn = False
        self._asking = False
        self.at_line_start = True

    def say(self, text: str) -> None:
        """A note that one may do without, on one line."""
        if not self._quiet:
            note = " ".join(plain(text).splitlines())
            self._line(f"\x1b[2m{note}\x1b[0m" if self._colors else note)

    def warn(self, text: str) -> None:
        """Something that must be said, quiet or not."""
        self._line(warning(text))

    def ask(self, text: str) -> None:
        """A question: the answer is typed after it. Until then nothing else is written on its line."""
        self._fresh_line()
        self._stream.write(plain(text))
        self._stream.flush()
        self._asking = True

    def answered(self) -> None:
        """The person has typed an answer, and a newline with it."""
        self._asking = False
        self.at_line_start = True

    def wait_for(self, what: str) -> None:
        """Show that we wait, and for what; '' when there is nothing to wait for."""
        what = one_line(what)
        if what != self._waiting_for:
            self._waiting_for, self._since = what, time.monotonic()
            if self._drawn:
                self.clear()

    def clear(self) -> None:
        """Take the spinner away, and leave the line of a question, before something else is written."""
        if self._drawn or self._asking:
            self._stream.write("\n" if self._asking else "\r\x1b[K")
            self._stream.flush()
            self._drawn = self._asking = False

    def stop_spinning(self) -> None:
        self.clear()
        self._spins = False

    async def spin(self) -> None:
        """Draw the spinner until cancelled."""
        while self._spins:
            await asyncio.sleep(FRAME_S)
            waited_s = time.monotonic() - self._since
            has_room = not self._asking and (self.at_line_start or not self._shares_terminal)
            if self._waiting_for and waited_s > PATIENCE_S and has_room:
                frame = FRAMES[int(waited_s / FRAME_S) % len(FRAMES)]
                self._stream.write(f"\r\x1b[K{frame} {self._waiting_for} {waited_s:.0f}s")
                self._stream.flush()
                self._drawn = True

    def _line(self, text: str) -> None:
        self._fresh_line()
        self._stream.write(text + "\n")
        self._stream.flush()

    @property
    def began_line(self) -> bool:
        """Whether the answer's next text is on a line of its own already, because of a note in between."""
        return self._shares_terminal and self.at_line_start

    def _fresh_line(self) -> None:
        self.clear()
        if self._shares_terminal and not self.at_line_start:
            self._stream.write("\n")
            self.at_line_start = True
