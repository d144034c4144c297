"""A command at a terminal of its own, as a person has it."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import termios
import time

from tests.cli.conftest import WAIT_S, Home

QUESTION = "Allow it? "
"""Shown when a key counts."""


class Terminal:
    """A command whose stdin, stdout and stderr are a terminal of its own, with everything that it shows."""

    def __init__(self, home: Home, *command: str) -> None:
        self._screen, self.line = pty.openpty()
        # A session leader that opens a terminal gets it as its own: only then does Ctrl-C reach it.
        self._process = subprocess.Popen(
            ["sh", "-c", 'exec "$@" <"$0" >"$0" 2>&1', os.ttyname(self.line), *command],
            cwd=home.project,
            env=home.env,
            start_new_session=True,
        )
        self.shown = ""

    def wait_for(self, text: str, count: int = 1) -> None:
        deadline = time.monotonic() + WAIT_S
        while self.shown.count(text) < count:
            assert time.monotonic() < deadline, f"{text!r} was not shown; only {self.shown!r}"
            assert self._read(), f"it ended without {text!r}; only {self.shown!r}"

    def type(self, text: str) -> None:
        os.write(self._screen, text.encode())

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def finish(self) -> int:
        while self._read():
            pass
        return self._process.wait(WAIT_S)

    def unread(self) -> bytes:
        """What was typed, and the shell would get after the command."""
        modes = termios.tcgetattr(self.line)
        modes[3] &= ~termios.ICANON  # half a line counts too
        termios.tcsetattr(self.line, termios.TCSANOW, modes)
        ready, _, _ = select.select([self.line], [], [], 0)
        return os.read(self.line, 1000) if ready else b""

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
        os.close(self._screen)
        os.close(self.line)

    def _read(self) -> bool:
        """False once the command has ended and everything that it wrote was read."""
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            ended = self._process.poll() is not None
            ready, _, _ = select.select([self._screen], [], [], 0 if ended else 0.05)
            if ready:
                data = os.read(self._screen, 65536)
                self.shown += data.decode("utf-8", "replace").replace("\r\n", "\n")
                return True
            if ended:
                return False
        raise AssertionError(f"nothing happened any more after {self.shown!r}")


def drawn(shown: str) -> str:
    """What stays on the screen of rows that were drawn over."""
    rows = [row.rpartition("\r\x1b[K")[2] for row in shown.split("\n")]
    return "\n".join(rows)


class Terminals:
    def __init__(self, home: Home) -> None:
        self._home = home
        self._made: list[Terminal] = []

    def run(self, *args: str) -> Terminal:
        return self.start(*self._home.command("run", *args))

    def start(self, *command: str) -> Terminal:
        made = Terminal(self._home, *command)
        self._made.append(made)
        return made

    def close(self) -> None:
        for made in self._made:
            made.close()
