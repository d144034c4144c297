"""A program at a pseudo-terminal, under measurement: when it draws, what it writes, and what it costs."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from fcntl import ioctl
from pathlib import Path
from types import TracebackType
from typing import Self

COLUMNS, LINES = 120, 40
WAIT_S = 60.0
KEYS, TYPED_EVERY_S = b"zq", 0.02
"""Letters that no program shows by itself, and how often somebody types them."""
_CONTROL = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]P_][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b.|[\x00-\x1f]")
_OWN_SCREEN = b"\x1b[?1049h"
"""What comes before it is the echo of the system."""
ANSWERS = (
    (b"\x1b[c", b"\x1b[?62c"),
    (b"\x1b[?u", b"\x1b[?0u"),
    (b"\x1b[?2026$p", b"\x1b[?2026;2$y"),
    (b"\x1b]11;?", b"\x1b]11;rgb:0000/0000/0000\x1b\\"),
    (b"\x1b]10;?", b"\x1b]10;rgb:ffff/ffff/ffff\x1b\\"),
    (b"\x1b[6n", b"\x1b[1;1R"),
)
"""Questions of programs, and what a terminal answers: some wait for it."""


class TerminalProgram:
    def __init__(
        self, command: Sequence[str], *, cwd: Path, env: Mapping[str, str], typed: bytes = b"", echoes: bool = True
    ) -> None:
        """`typed`: keys that are there before it starts. Without `echoes`, what is shown of keys is the program's."""
        self._ours, theirs = pty.openpty()
        if not echoes:
            attributes = termios.tcgetattr(theirs)
            attributes[3] &= ~termios.ECHO
            termios.tcsetattr(theirs, termios.TCSANOW, attributes)
        ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        if typed:
            os.write(self._ours, typed)
        self.written = b""
        self.byte_count = 0
        self.started = time.perf_counter()
        self.popen = subprocess.Popen(
            ["sh", "-c", 'exec "$@" <"$0" >"$0" 2>&1', os.ttyname(theirs), *command],
            cwd=cwd,
            env={**env, "TERM": "xterm-256color", "COLORTERM": "truecolor"},
            start_new_session=True,
        )
        os.close(theirs)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.popen.terminate()
        try:
            self.read_for(0.5)
            self.popen.wait(2)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()
        os.close(self._ours)

    # ── the terminal ──

    def type(self, keys: bytes) -> None:
        os.write(self._ours, keys)

    def read(self, within_s: float) -> bool:
        if not select.select([self._ours], [], [], within_s)[0]:
            return False
        try:
            data = os.read(self._ours, 1 << 16)
        except OSError:
            return False
        for question, answer in ANSWERS:
            if question in data:
                os.write(self._ours, answer)
        self.written = (self.written + data)[-(1 << 20) :]
        self.byte_count += len(data)
        return True

    def read_for(self, seconds: float) -> None:
        deadline = time.perf_counter() + seconds
        while (left := deadline - time.perf_counter()) > 0:
            self.read(left)

    def until(self, is_there: Callable[[bytes], bool], what: str, *, on_own_screen: bool = False) -> float:
        """Seconds since the start, when what was written so far (without its control characters) is so."""
        deadline = time.perf_counter() + WAIT_S
        begun = _OWN_SCREEN if on_own_screen else b""
        while begun not in self.written or not is_there(_CONTROL.sub(b"", self.written[self.written.find(begun) :])):
            if time.perf_counter() > deadline or (self.popen.poll() is not None and not self.read(0.1)):
                raise RuntimeError(f"{what} was not shown: {self.written[-2000:]!r}")
            self.read(0.1)
        return time.perf_counter() - self.started

    def settle(self, quiet_s: float = 1.0) -> None:
        """Until it writes nothing for a while."""
        deadline = time.perf_counter() + WAIT_S
        while self.read(quiet_s) and time.perf_counter() < deadline:
            pass

    def first_echo_s(self) -> float:
        """Seconds since the start until it shows what is typed; somebody types all the time."""
        deadline = time.perf_counter() + WAIT_S
        while KEYS not in _CONTROL.sub(b"", self.written):
            if time.perf_counter() > deadline or (self.popen.poll() is not None and not self.read(0.1)):
                raise RuntimeError(f"no key was shown: {self.written[-2000:]!r}")
            self.type(KEYS)
            self.read_for(TYPED_EVERY_S)
        return time.perf_counter() - self.started

    def echo_s(self, key: bytes) -> float:
        """From a key to the first byte that it causes; the program must be quiet before."""
        began = time.perf_counter()
        self.type(key)
        if not self.read(WAIT_S):
            raise RuntimeError("nothing came of a key")
        took = time.perf_counter() - began
        self.settle(0.05)
        return took

    # ── what it costs, with its children ──

    def cpu_s(self) -> float:
        return sum(_cpu_s(pid) for pid in self._pids())

    def memory_mb(self) -> float:
        return sum(_memory_mb(pid) for pid in self._pids())

    def own_memory_mb(self) -> float:
        return _memory_mb(self.popen.pid)

    def wake_ups(self) -> int:
        return sum(_wake_ups(pid) for pid in self._pids())

    def _pids(self) -> list[int]:
        found, left = [], [self.popen.pid]
        while left:
            pid = left.pop()
            found.append(pid)
            for task in Path(f"/proc/{pid}/task").glob("*/children"):
                left += [int(child) for child in task.read_text().split()]
        return found


def _cpu_s(pid: int) -> float:
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def _memory_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def _wake_ups(pid: int) -> int:
    statuses = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/status")]
    return sum(int(text.partition("\nvoluntary_ctxt_switches:")[2].split()[0]) for text in statuses)


def found(name: str, variable: str) -> str:
    """A program of others, by the variable that names it, or in the path; '': it is not here."""
    return os.environ.get(variable, "") or shutil.which(name) or ""
