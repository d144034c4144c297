"""Processes with an owner: whatever a tool call starts has ended when the call returns, or was cancelled.

`Processes` is all that tools know, so that a simulation can stand in for the machine. `LocalProcesses` is the machine:
each command gets a session of its own, no input, a bounded memory for its output, and a tag in its environment. Its
processes are found again by process group, by descent and by that tag, which a child keeps when it leaves the group
and even when the server is killed. What escapes: a program that leaves the group *and* drops or overwrites its
environment, once the command that started it has ended. Nothing inherited tells it from any other process.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from covey.machine.names import TAG_VARIABLE, tag_within
from covey.machine.programs import find_program
from covey.sandbox.policy import Mode, Policy
from covey.sandbox.probe import wrap
from covey.sandbox.starter import launch
from covey.tools import process_table
from covey.tools.output import Output
from covey.tools.process_table import Process
from covey.tools.threads import in_thread

log = logging.getLogger(__name__)

GRACE_S = 2.0
"""Between TERM and KILL: time to remove a lock file, and with `KILL_S` less than a cancelled turn may take to stop."""
KILL_S = 2.0
"""How long KILL is repeated. What is alive then waits inside the kernel, and no signal reaches it."""
DRAIN_S = 0.5
"""How long output may still arrive after the command has exited, while something it left behind holds the pipe."""

_POLL_S = 0.02
"""How often to look whether a command has exited, on systems that cannot tell. Nobody notices 20 ms."""
_READ_SIZE = 65536
"""What a pipe holds on Linux: one read empties it."""
_ENDINGS_AT_ONCE = 32
"""Threads that look after ending processes. They mostly sleep; one that is busy for 4 s must not delay the others."""
_WRITES_AT_ONCE = 4
"""Threads that write long outputs to files. The commands wait for them, nobody else."""


@dataclass(frozen=True, slots=True)
class Completed:
    """How a command ended."""

    exit_code: int | None
    """As the system gives it: -9 if signal 9 ended it. None if it did not end by itself."""
    output: str
    """What it wrote to stdout and stderr. If that was too much: its beginning, a note, and its end."""
    truncated_bytes: int = 0
    timed_out: bool = False
    put_back: tuple[str, ...] = ()
    """Protected paths that it had changed, and that are as they were again."""


class Processes(Protocol):
    """Start processes on behalf of a run, and end them."""

    async def run_command(
        self,
        command: Sequence[str] | str,
        *,
        cwd: Path,
        env: Mapping[str, str],
        tag: str,
        timeout_s: float | None,
        output_limit: int = 0,
        output: Output | None = None,
        policy: Policy | None = None,
        sandbox: Mode = Mode.AUTO,
    ) -> Completed:
        """Run a program with arguments, or a text as a shell command. When this returns or raises, all has ended.

        `tag` is the run's tag, a slash, and what tells this call from others. `output` collects what it writes, and
        can be looked at meanwhile; without it, the result has as much as `output_limit` allows. `policy` is what it may
        do, and `sandbox` what happens where this system cannot see to that; None: whatever the user may do. It is
        started before anything is awaited. Raises OSError or ValueError if it cannot be started.
        """
        ...


class LocalProcesses:
    """Processes on this machine. `root`: the project, from which no shell is taken."""

    def __init__(self, root: Path | None = None) -> None:
        self._root = root
        self._endings = ThreadPoolExecutor(_ENDINGS_AT_ONCE, thread_name_prefix="covey-ending")
        self._writes = ThreadPoolExecutor(_WRITES_AT_ONCE, thread_name_prefix="covey-output")
        self._numbers = itertools.count(1)

    async def run_command(
        self,
        command: Sequence[str] | str,
        *,
        cwd: Path,
        env: Mapping[str, str],
        tag: str,
        timeout_s: float | None,
        output_limit: int = 0,
        output: Output | None = None,
        policy: Policy | None = None,
        sandbox: Mode = Mode.AUTO,
    ) -> Completed:
        # The number keeps calls apart even if a model gives two of them the same id.
        tag = tag_within(tag, next(self._numbers))
        output = output or Output(output_limit)
        arguments, env = _arguments(command, env, self._root), {**env, TAG_VARIABLE: tag}
        wrapped = wrap(arguments, policy, env, sandbox) if policy else None
        if wrapped and (why_not := wrapped.plan.refusal):
            raise ValueError(why_not)
        guard = wrapped.guard() if wrapped else None
        start = partial(launch, wrapped, cwd) if wrapped else partial(_start, arguments, cwd, env)
        call = _Call(start, tag, output, self._writes)
        # Nothing was awaited since the process exists: no cancel can come between its start and this `try`.
        try:
            call.watch()
            in_time = await call.exits_within(timeout_s)
            if in_time:
                await call.falls_silent_within(DRAIN_S)
        finally:
            try:
                await in_thread(call.end, self._endings)
            finally:
                await call.close()
                put_back = await in_thread(guard.restore, self._endings) if guard else ()
        exit_code = call.process.returncode if in_time else None
        return Completed(exit_code, output.text(), output.dropped, timed_out=not in_time, put_back=put_back)


def kill_tagged(*prefixes: str) -> int:
    """End all processes whose tag is one of `prefixes` or begins with one and a slash; gives how many. Blocks.

    For the runs and the jobs that a killed server left behind. It never touches a process without our tag or of
    another user. Without `/proc` it finds none.
    """
    return _end_all(lambda: process_table.tagged(*prefixes))


class Started(Protocol):
    """A process, as `subprocess.Popen` has it."""

    @property
    def pid(self) -> int: ...
    @property
    def returncode(self) -> int | None: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...


class _Call:
    """One command under way: its first process, and what it has written."""

    def __init__(
        self,
        start: Callable[[int], Started],
        tag: str,
        output: Output,
        writes: Executor,
    ) -> None:
        self._output = output
        self._writes = writes
        self._write: Future[None] | None = None
        self._closing = False
        self._tag = tag
        self._loop = asyncio.get_running_loop()
        self._exited = self._loop.create_future()
        self._silent = self._loop.create_future()
        self._pidfd: int | None = None
        self._pipe, write_end = os.pipe()
        os.set_blocking(self._pipe, False)
        try:
            self.process = start(write_end)
        except BaseException:
            os.close(self._pipe)
            raise
        finally:
            os.close(write_end)

    def watch(self) -> None:
        """Tell the event loop what to listen to. The process is not reaped here: see `end`."""
        self._loop.add_reader(self._pipe, self._read)
        try:
            self._pidfd = os.pidfd_open(self.process.pid)
        except (AttributeError, OSError):  # not Linux, an old kernel, or a sandbox that forbids it
            self._poll()
        else:
            self._loop.add_reader(self._pidfd, self._on_exit)

    async def exits_within(self, seconds: float | None) -> bool:
        # `wait` neither cancels what it waits for nor swallows a cancel of its own, as `wait_for` could.
        await asyncio.wait([self._exited], timeout=seconds)
        return self._exited.done()

    async def falls_silent_within(self, seconds: float) -> None:
        await asyncio.wait([self._silent], timeout=seconds)

    def end(self) -> None:
        """End what is left of the call. Blocks, for at most `GRACE_S` + `KILL_S`.

        The first process is reaped last. While it is a zombie nobody else can get its pid, and that is the name of
        its group and session.
        """
        if not process_table.AVAILABLE:
            self._end_group()
        elif not self._exited.done() or not process_table.is_alone(self.process.pid) or self._tagged():
            _end_all(self._members())
        self.process.poll()

    async def close(self) -> None:
        """All has ended: take what it had still written, and let go."""
        self._closing = True
        if not self._silent.done():
            self._loop.remove_reader(self._pipe)
        self._stop_watching_exit()
        try:
            await self._take_rest()
        finally:
            os.close(self._pipe)
            self._exited.cancel()
            self._silent.cancel()

    async def _take_rest(self) -> None:
        try:
            if self._write:
                await in_thread(self._write.result)
        finally:
            if not self._silent.done():
                with suppress(BlockingIOError):
                    self._output.add(os.read(self._pipe, _READ_SIZE))
            if self._output.spill:
                await in_thread(self._finish_spill)

    def _finish_spill(self) -> None:
        assert self._output.spill is not None
        if work := self._output.work():
            work()
        self._output.spill.close()

    def _tagged(self) -> set[Process]:
        return process_table.tagged(self._tag, leader=self.process.pid)

    def _members(self) -> Callable[[], set[Process]]:
        """Finds all of the call's processes, also those whose parents have ended since it was last asked."""
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

    def _read(self) -> None:
        with suppress(BlockingIOError):
            data = os.read(self._pipe, _READ_SIZE)
            self._output.add(data)
            if not data:
                self._silent.set_result(None)
                self._loop.remove_reader(self._pipe)
            elif work := self._output.work():
                # The command waits for the disk, not the event loop.
                self._loop.remove_reader(self._pipe)
                self._write = self._writes.submit(work)
                self._write.add_done_callback(self._on_written)

    def _on_written(self, write: Future[None]) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody reads any more
            self._loop.call_soon_threadsafe(self._go_on_reading)

    def _go_on_reading(self) -> None:
        if not self._closing:
            self._loop.add_reader(self._pipe, self._read)

    def _poll(self) -> None:
        if self._exited.done():
            return
        if _has_exited(self.process):
            self._exited.set_result(None)
        else:
            self._loop.call_later(_POLL_S, self._poll)

    def _on_exit(self) -> None:
        self._stop_watching_exit()
        self._exited.set_result(None)

    def _stop_watching_exit(self) -> None:
        if self._pidfd is not None:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None


def _start(arguments: Sequence[str], cwd: Path, env: Mapping[str, str], output: int) -> Started:
    """Start a command that may do whatever the user may do."""
    return subprocess.Popen(  # noqa: S603 - running what a model asks for is the purpose, once permitted
        arguments,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        start_new_session=True,
    )


def _has_exited(process: Started) -> bool:
    """Without reaping it where that is possible: see `_Call.end`."""
    if not hasattr(os, "waitid"):
        return process.poll() is not None
    try:
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:  # `end`, in its thread, has just reaped it
        return True


def _arguments(command: Sequence[str] | str, env: Mapping[str, str], root: Path | None) -> Sequence[str]:
    if not isinstance(command, str):
        return command
    shell = find_program("bash", env.get("PATH", os.defpath), root) or "/bin/sh"
    return [shell, "-c", command]


def _end_all(find: Callable[[], set[Process]]) -> int:
    """TERM to all that `find` finds, KILL to what is left after the grace, until it finds none. Blocks."""
    seen: set[Process] = set()
    signalled: set[Process] = set()
    began, pause = time.monotonic(), 0.002
    while found := find():
        seen |= found
        waited = time.monotonic() - began
        if waited > GRACE_S + KILL_S:
            log.warning("processes that cannot be killed: %s", sorted(process.pid for process in found))
            break
        if waited > GRACE_S:
            process_table.send(found, signal.SIGKILL)
        else:
            # What one of them starts after it was asked to end is how it tidies up. It has until the grace is over.
            new = found - signalled - process_table.children_of(signalled & found, found - signalled)
            process_table.send(new, signal.SIGTERM)
            signalled |= new
        time.sleep(pause)
        pause = min(2 * pause, 0.05)
    return len(seen)
