"""A program at a pseudo-terminal, with a model of a terminal behind it. Tests wait for what is shown, with a bound."""

from __future__ import annotations

import codecs
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from fcntl import ioctl
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.tui.screen_model import TerminalModel

WAIT_S = 30.0


class PtyProgram:
    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        columns: int = 80,
        lines: int = 24,
        answers: bool = True,
        term: str = "xterm-256color",
        name: str = "model 1.0",
    ) -> None:
        """`answers`: the terminal answers questions."""
        self.screen = TerminalModel(columns, lines, answers=answers, name=name)
        self._ours, self._theirs = pty.openpty()
        os.set_blocking(self._ours, False)
        self._outgoing = b""
        self.raw = ""
        """All that was written."""
        self._set_size(columns, lines)
        self.attributes_before = self.attributes()
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self.process = subprocess.Popen(
            ["sh", "-c", 'exec "$@" <"$0" >"$0" 2>&1', os.ttyname(self._theirs), *command],
            cwd=cwd,
            env=dict(env or os.environ) | {"TERM": term},
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(WAIT_S)
        os.close(self._ours)
        os.close(self._theirs)

    def attributes(self) -> list[Any]:
        return termios.tcgetattr(self._theirs)

    def resize(self, columns: int, lines: int) -> None:
        self._set_size(columns, lines)
        self.screen.resize(columns, lines)

    def type(self, keys: str | bytes) -> None:
        """All of it, also what the program takes only while its own output is read."""
        self._outgoing += keys.encode() if isinstance(keys, str) else keys
        self.wait_until(lambda: not self._outgoing, "the program takes no more input")

    def wait_for(self, text: str) -> None:
        self.wait_until(lambda: text in self.screen.text, f"{text!r} was not shown")

    def wait_until(self, is_true: Callable[[], object], else_: str) -> None:
        deadline = time.monotonic() + WAIT_S
        while not is_true():
            assert time.monotonic() < deadline, f"{else_}:\n{self.screen.text}"
            if not self.read(0.05) and self.process.poll() is not None and not self.read(0):
                assert is_true(), f"{else_}, and the program has ended:\n{self.screen.text}"

    def read(self, within_s: float) -> bool:
        """Take what the program has written, and hand on what is typed; false if nothing was written."""
        readable, writable, _ = select.select([self._ours], [self._ours] if self._outgoing else [], [], within_s)
        if writable:
            with suppress(BlockingIOError):
                self._outgoing = self._outgoing[os.write(self._ours, self._outgoing) :]
        if not readable:
            return False
        text = self._decode(os.read(self._ours, 1 << 16))
        self.raw += text
        self.screen.feed(text)
        self._outgoing += self.screen.replies  # after what was typed: no terminal answers in the middle of a paste
        self.screen.replies = b""
        return True

    def send_signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def finish(self) -> int:
        """Until it has ended, and all that it wrote was read."""
        self.wait_until(lambda: self.process.poll() is not None, "the program goes on")
        while self.read(0):
            pass
        return self.process.wait(WAIT_S)

    def _set_size(self, columns: int, lines: int) -> None:
        ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
