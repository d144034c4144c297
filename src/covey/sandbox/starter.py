"""Starts restricted commands by way of a process that is forked for each (`forker`): as children of this process.

There is one for the whole server, started when it is needed, and again if it should have ended. It holds no state, so
nothing is lost with it.
"""

from __future__ import annotations

import atexit
import marshal
import os
import socket
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from covey.sandbox.probe import Wrapped, program

_POLL_S = 0.005
_ANSWER_S = 10.0
"""A forker that takes longer than this to fork hangs."""
_ENVIRONMENT = ("LD_LIBRARY_PATH",)
"""What the interpreter may need to start."""


class SandboxedChild:
    """A process that somebody else has forked for us: what `subprocess.Popen` is for those that it starts."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._lock = threading.Lock()

    def poll(self) -> int | None:
        """Its exit code if it has ended, as Popen gives it; it is reaped then."""
        with self._lock:
            if self.returncode is None:
                try:
                    found, status = os.waitpid(self.pid, os.WNOHANG)
                except ChildProcessError:  # reaped by somebody else
                    self.returncode = 0
                else:
                    self.returncode = os.waitstatus_to_exitcode(status) if found else None
            return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        until = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if until is not None and time.monotonic() > until:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
            time.sleep(_POLL_S)
        return code


def launch(
    wrapped: Wrapped, cwd: Path, output: int, given: int = subprocess.DEVNULL, errors: int | None = None
) -> SandboxedChild | subprocess.Popen[bytes]:
    """Start a wrapped command in a session of its own. Raises OSError, ValueError.

    It has no input, unless one is given; without `errors` both of its outputs go to the same place.
    """
    if wrapped.plan.steps and not wrapped.plan.view:
        pipes = (output,) if errors is None else (given, output, errors)
        return STARTER.start(wrapped.command, cwd, wrapped.env, wrapped.plan.steps, *pipes)
    return subprocess.Popen(  # noqa: S603 - running what a model asks for is the purpose, once permitted
        wrapped.line(),
        cwd=cwd,
        env=wrapped.env,
        stdin=given,
        stdout=output,
        stderr=output if errors is None else errors,
        start_new_session=True,
    )


class Starter:
    """The forker, and the way to it. Threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._channel: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def start(
        self, command: Sequence[str], cwd: Path, env: Mapping[str, str], words: Sequence[str], *pipes: int
    ) -> SandboxedChild:
        """Start a command as a session of its own. Raises OSError, ValueError.

        `pipes`: where both outputs go; or the input, the output and the errors.
        """
        if any("\0" in text for text in (*command, *env, *env.values())):
            raise ValueError("embedded null byte")
        request = marshal.dumps((list(command), dict(env), str(cwd), list(words)))
        with self._lock:
            try:
                return self._ask(request, pipes)
            except OSError:
                self._end()
                return self._ask(request, pipes)

    def warm_up(self) -> None:
        """Start the forker if there is none, and wait until it answers: for a thread that has time. Raises OSError."""
        if self._channel is None:
            with open(os.devnull, "wb") as nothing:
                self.start(("/bin/true",), Path("/"), {}, (), nothing.fileno()).wait(_ANSWER_S)

    def cpu_s(self) -> float:
        """CPU time of the forker so far, without what it has forked; 0 if there is none."""
        if self._process is None:
            return 0.0
        return int(Path(f"/proc/{self._process.pid}/schedstat").read_text().split()[0]) / 1e9

    def close(self) -> None:
        """End the forker. What it has forked goes on."""
        with self._lock:
            self._end()

    def _ask(self, request: bytes, pipes: Sequence[int]) -> SandboxedChild:
        from covey.sandbox.forker import LENGTH_BYTES  # with it come the functions of the C library

        channel = self._channel or self._begin()
        socket.send_fds(channel, [len(request).to_bytes(LENGTH_BYTES, "little")], list(pipes))
        channel.sendall(request)
        answer = channel.recv(LENGTH_BYTES, socket.MSG_WAITALL)
        if len(answer) < LENGTH_BYTES:
            raise ConnectionResetError("the process that starts commands has ended")
        return SandboxedChild(int.from_bytes(answer, "little"))

    def _begin(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 - our own program
                [*program("forker"), str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
                cwd="/",
                start_new_session=True,
            )
        ours.settimeout(_ANSWER_S)
        self._channel = ours
        return ours

    def _end(self) -> None:
        if self._channel:
            self._channel.close()
        if self._process:
            self._process.kill()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_ANSWER_S)
        self._channel = self._process = None


STARTER = Starter()
"""The one of this process."""
atexit.register(STARTER.close)
