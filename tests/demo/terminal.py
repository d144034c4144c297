"""As much of a terminal as Covey uses: rows that grow and are drawn over, and colours. For pictures and tests."""

from __future__ import annotations

import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from fcntl import ioctl
from pathlib import Path

_SEQUENCE = re.compile(r"\x1b\[([0-9;]*)([A-Za-z])")
WAIT_S = 60.0


class ScreenModel:
    """All rows that were ever shown, as they are now: each a list of characters with the SGR code that they have."""

    def __init__(self) -> None:
        self.rows: list[list[tuple[str, str]]] = [[]]
        self._row = 0
        self._column = 0
        self._style = ""

    @property
    def text(self) -> str:
        return "\n".join("".join(char for char, _ in row).rstrip() for row in self.rows)

    def feed(self, text: str) -> None:
        at = 0
        while at < len(text):
            if found := _SEQUENCE.match(text, at):
                self._control(found[1], found[2])
                at = found.end()
            else:
                self._char(text[at])
                at += 1

    def _char(self, char: str) -> None:
        if char == "\r":
            self._column = 0
        elif char == "\n":
            self._row, self._column = self._row + 1, 0
            if self._row == len(self.rows):
                self.rows.append([])
        else:
            assert char.isprintable() or char in "\u200d\ufe0f", f"{char!r} is not for terminals"
            row = self.rows[self._row]
            row[self._column : self._column + 1] = [(char, self._style)]
            self._column += 1

    def _control(self, given: str, kind: str) -> None:
        if kind == "m":
            self._style = "" if given in ("", "0") else given
        elif kind == "K":
            del self.rows[self._row][self._column :]
        elif kind == "A":
            self._row -= int(given)
        elif kind == "J":
            del self.rows[self._row][self._column :]
            del self.rows[self._row + 1 :]
        else:
            raise AssertionError(f"a sequence that Covey does not use: {given}{kind}")


class TerminalProgram:
    """A program at a terminal of its own, of a given size."""

    def __init__(self, command: Sequence[str], cwd: Path, env: Mapping[str, str], columns: int) -> None:
        self._ours, theirs = pty.openpty()
        ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        self._process = subprocess.Popen(
            ["sh", "-c", 'exec "$@" <"$0" >"$0" 2>&1', os.ttyname(theirs), *command],
            cwd=cwd,
            env=dict(env),
            start_new_session=True,
        )
        self._theirs = theirs
        self.screen = ScreenModel()

    def wait_for(self, text: str, count: int = 1) -> None:
        deadline = time.monotonic() + WAIT_S
        while self.screen.text.count(text.rstrip()) < count:
            assert time.monotonic() < deadline and self._read(), f"{text!r} was not shown: {self.screen.text}"

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def finish(self) -> None:
        while self._read():
            pass
        self._process.wait(WAIT_S)
        os.close(self._ours)
        os.close(self._theirs)

    def _read(self) -> bool:
        """False once the program has ended and everything that it wrote was read."""
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            has_ended = self._process.poll() is not None
            ready, _, _ = select.select([self._ours], [], [], 0 if has_ended else 0.05)
            if ready:
                self.screen.feed(os.read(self._ours, 1 << 20).decode("utf-8", "replace").replace("\r\n", "\n"))
                return True
            if has_ended:
                return False
        raise AssertionError("nothing happened any more")
