"""The descriptors of a terminal: opened for us alone, put into raw mode and back; what others print goes elsewhere."""

from __future__ import annotations

import os
import sys
import termios
from contextlib import suppress
from typing import Any

_IFLAG, _OFLAG, _CFLAG, _LFLAG, _CC = 0, 1, 2, 3, 6


class Tty:
    """Reading and writing do not block. Others who have the terminal open, such as the shell, do not notice."""

    def __init__(self, fd: int = 0) -> None:
        self._own_flags: bool | None = None
        try:
            name = os.ttyname(fd)
            self.fd = os.open(name, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
            self.plain_fd = os.open(name, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
            """For children, and whoever may wait."""
        except OSError:  # it has no name here, as in some containers
            self.fd, self.plain_fd = os.dup(fd), os.dup(fd)
            self._own_flags = os.get_blocking(self.fd)
            os.set_blocking(self.fd, False)
        self.attributes: list[Any] = termios.tcgetattr(self.fd)
        """As they were when we came."""

    def size(self) -> tuple[int, int]:
        """Columns and rows."""
        with suppress(OSError):
            found = os.get_terminal_size(self.fd)
            if found.columns > 0 and found.lines > 0:
                return found.columns, found.lines
        return 80, 24

    def make_raw(self) -> None:
        """Every key comes at once, as bytes. What was typed before is kept."""
        raw: list[Any] = [list(part) if isinstance(part, list) else part for part in self.attributes]
        raw[_IFLAG] &= ~(termios.BRKINT | termios.ICRNL | termios.INPCK | termios.ISTRIP | termios.IXON | termios.INLCR)
        raw[_OFLAG] &= ~termios.OPOST
        raw[_CFLAG] |= termios.CS8
        raw[_LFLAG] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN | termios.ISIG)
        raw[_CC][termios.VMIN], raw[_CC][termios.VTIME] = 1, 0
        termios.tcsetattr(self.fd, termios.TCSANOW, raw)

    def restore(self) -> None:
        with suppress(termios.error):  # nobody is there any more
            termios.tcsetattr(self.fd, termios.TCSANOW, self.attributes)

    def close(self) -> None:
        if self._own_flags is not None:
            os.set_blocking(self.fd, self._own_flags)
        os.close(self.fd)
        os.close(self.plain_fd)


class Aside:
    """Whatever is printed to stdout and stderr goes into a log: the screen is ours alone."""

    def __init__(self, log: str | os.PathLike[str] | None) -> None:
        for stream in (sys.stdout, sys.stderr):
            _flush(stream)
        self._kept = [os.dup(1), os.dup(2)]
        into = os.open(log or os.devnull, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.dup2(into, 1)
        os.dup2(into, 2)
        os.close(into)

    def end(self) -> None:
        for number, kept in enumerate(self._kept, 1):
            _flush(sys.stdout if number == 1 else sys.stderr)
            os.dup2(kept, number)
            os.close(kept)


def _flush(stream: Any) -> None:
    with suppress(OSError, ValueError, AttributeError):
        stream.flush()
