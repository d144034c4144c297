"""The first process of a call or of an extension, with all that it started: when it exits, and how all of it is ended.

They are found by process group, by descent and by the tag in their environment (`process_table`). Whoever starts a
process owns it: `end` is called whatever happens, and when it returns all of it is gone.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from covey.tools import process_table
from covey.tools.process_table import Process

log = logging.getLogger(__name__)

GRACE_S = 2.0
"""Between TERM and KILL: time to remove a lock file, and with `KILL_S` less than a cancelled turn may take to stop."""
KILL_S = 2.0
"""How long KILL is repeated. What is alive then waits inside the kernel, and no signal reaches it."""
KILLS = 5
"""How often it is sent at least: on a very busy machine one look at the processes may take all of that time."""

_POLL_S = 0.02
"""How often to look whether a command has exited, on systems that cannot tell. Nobody notices 20 ms."""


class Started(Protocol):
    """A process, as `subprocess.Popen` has it."""

    @property
    def pid(self) -> int: ...
    @property
    def returncode(self) -> int | None: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...


class OwnedProcess:
    """One process and its family. It is not reaped before `end`: until then nobody else can get its pid."""

    def __init__(self, process: Started, tag: str) -> None:
        self.process = process
        self._tag = tag
        self._loop = asyncio.get_running_loop()
        self.exited: asyncio.Future[None] = self._loop.create_future()
        self._pidfd: int | None = None

    def watch(self) -> None:
        """Have the event loop notice its exit."""
        try:
            self._pidfd = os.pidfd_open(self.process.pid)
        except (AttributeError, OSError):  # not Linux, an old kernel, or a sandbox that forbids it
            self._poll()
        else:
            self._loop.add_reader(self._pidfd, self._on_exit)

    async def exits_within(self, seconds: float | None) -> bool:
        # `wait` neither cancels what it waits for nor swallows a cancel of its own, as `wait_for` could.
        await asyncio.wait([self.exited], timeout=seconds)
        return self.exited.done()

    def end(self) -> None:
        """End all of it. Blocks, for at most `GRACE_S` + `KILL_S`.

        The first process is reaped last. While it is a zombie nobody else can get its pid, and that is the name of
        its group and session.
        """
        if not process_table.AVAILABLE:
            self._end_group()
        elif not self.exited.done() or not process_table.is_alone(self.process.pid) or self._tagged():
            end_all(self._members())
        self.process.poll()

    def stop_watching(self) -> None:
        """Nobody waits for its exit any more."""
        self._forget_pidfd()
        self.exited.cancel()

    def members(self) -> set[Process]:
        """All that is alive of it."""
        return self._tagged() | process_table.relatives(self.process.pid)

    def _tagged(self) -> set[Process]:
        return process_table.tagged(self._tag, leader=self.process.pid)

    def _members(self) -> Callable[[], set[Process]]:
        """Finds all of the processes, also those whose parents have ended since it was last asked."""
        known: set[Process] = set()

        def find() -> set[Process]:
            found = self._tagged()
            known.update(found)
            # Added, not put in its place: one that was tagged may be gone by now, and its child not be a relative.
            found |= process_table.relatives(self.process.pid, known)
            known.update(found)
            return found

        return find

    def _end_group(self) -> None:
        until = time.monotonic() + GRACE_S
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGTERM)
            while time.monotonic() < until:
                self.process.poll()  # a zombie would count as a member
                os.killpg(self.process.pid, 0)
                time.sleep(_POLL_S)
            os.killpg(self.process.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(KILL_S)

    def _poll(self) -> None:
        if self.exited.done():
            return
        if _has_exited(self.process):
            self.exited.set_result(None)
        else:
            self._loop.call_later(_POLL_S, self._poll)

    def _on_exit(self) -> None:
        self._forget_pidfd()
        self.exited.set_result(None)

    def _forget_pidfd(self) -> None:
        if self._pidfd is not None:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None


def end_all(find: Callable[[], set[Process]]) -> int:
    """TERM to all that `find` finds, KILL to what is left after the grace, until it finds none. Blocks."""
    seen: set[Process] = set()
    signalled: set[Process] = set()
    began, pause, kills = time.monotonic(), 0.002, 0
    while found := find():
        seen |= found
        waited = time.monotonic() - began
        if kills >= KILLS and waited > GRACE_S + KILL_S:
            log.warning("processes that cannot be killed: %s", sorted(process.pid for process in found))
            break
        if waited > GRACE_S:
            process_table.send(found, signal.SIGKILL)
            kills += 1
        else:
            # What one of them starts after it was asked to end is how it tidies up. It has until the grace is over.
            new = found - signalled - process_table.children_of(signalled & found, found - signalled)
            process_table.send(new, signal.SIGTERM)
            signalled |= new
        time.sleep(pause)
        pause = min(2 * pause, 0.05)
    return len(seen)


def _has_exited(process: Started) -> bool:
    """Without reaping it where that is possible: see `OwnedProcess.end`."""
    if not hasattr(os, "waitid"):
        return process.poll() is not None
    try:
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:  # `end`, in its thread, has just reaped it
        return True
