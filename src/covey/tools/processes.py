"""Processes with an owner: whatever a tool call starts has ended when the call returns, or was cancelled.

`Processes` is all that tools know, so that a simulation can stand in for the machine. `LocalProcesses` is the machine:
each command gets a session of its own, no input, a bounded memory for its output, and a tag in its environment; what
lives on and is talked to (`open`) gets three pipes instead. Their processes are found again by process group, by
descent and by that tag, which a child keeps when it leaves the group and even when the server is killed. What escapes:
a program that leaves the group *and* drops or overwrites its environment, once the command that started it has ended.
Nothing inherited tells it from any other process.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import secrets
import subprocess
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
from covey.tools.child import LiveChild
from covey.tools.output import Output
from covey.tools.owned_process import OwnedProcess, Started, end_all
from covey.tools.threads import in_thread

__all__ = ["Completed", "LiveChild", "LiveProcesses", "LocalProcesses", "Processes", "Started", "kill_tagged"]

DRAIN_S = 0.5
"""How long output may still arrive after the command has exited, while something it left behind holds the pipe."""

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
    private: tuple[str, ...] = ()
    """Directories that were its own: nobody else sees what it wrote there."""


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


class LiveProcesses(Processes, Protocol):
    """Also start processes that live on, for extensions."""

    def open(
        self,
        command: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        tag: str,
        policy: Policy | None = None,
        sandbox: Mode = Mode.AUTO,
    ) -> LiveChild:
        """Start a program that lives on and is talked to. Whoever opens it calls `LiveChild.end`, whatever happens.

        `env` is the whole environment but for the tag: see `extension_environment`. The rest is as for `run_command`.
        """
        ...


class LocalProcesses:
    """Processes on this machine. `root`: the project, from which no shell is taken."""

    def __init__(self, root: Path | None = None) -> None:
        self._root = root
        self._endings = ThreadPoolExecutor(_ENDINGS_AT_ONCE, thread_name_prefix="covey-ending")
        self._writes = ThreadPoolExecutor(_WRITES_AT_ONCE, thread_name_prefix="covey-output")
        own = secrets.token_hex(4)
        self._parts = (f"{own}-{number}" for number in itertools.count(1))
        """What tells a process from all others, also of another server whose workspace has the same id."""

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
        tag = tag_within(tag, next(self._parts))
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
        return Completed(
            exit_code,
            output.text(),
            output.dropped,
            timed_out=not in_time,
            put_back=put_back,
            private=wrapped.plan.private if wrapped else (),
        )

    def open(
        self,
        command: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        tag: str,
        policy: Policy | None = None,
        sandbox: Mode = Mode.AUTO,
    ) -> LiveChild:
        tag = tag_within(tag, next(self._parts))
        env = {**env, TAG_VARIABLE: tag}
        wrapped = wrap(command, policy, env, sandbox) if policy else None
        if wrapped and (why_not := wrapped.plan.refusal):
            raise ValueError(why_not)
        start = partial(launch, wrapped, cwd) if wrapped else partial(_start, command, cwd, env)
        return LiveChild(lambda given, output, errors: start(output, given, errors), tag, self._endings)


def kill_tagged(*prefixes: str) -> int:
    """End all processes whose tag is one of `prefixes` or begins with one and a slash; gives how many. Blocks.

    For the runs and the jobs that a killed server left behind. It never touches a process without our tag or of
    another user. Without `/proc` it finds none.
    """
    return end_all(lambda: process_table.tagged(*prefixes))


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
        self._loop = asyncio.get_running_loop()
        self._silent = self._loop.create_future()
        self._pipe, write_end = os.pipe()
        os.set_blocking(self._pipe, False)
        try:
            self.process = start(write_end)
        except BaseException:
            os.close(self._pipe)
            raise
        finally:
            os.close(write_end)
        self._owned = OwnedProcess(self.process, tag)

    def watch(self) -> None:
        """Tell the event loop what to listen to."""
        self._loop.add_reader(self._pipe, self._read)
        self._owned.watch()

    async def exits_within(self, seconds: float | None) -> bool:
        return await self._owned.exits_within(seconds)

    async def falls_silent_within(self, seconds: float) -> None:
        await asyncio.wait([self._silent], timeout=seconds)

    def end(self) -> None:
        """End what is left of the call. Blocks: see `OwnedProcess.end`."""
        self._owned.end()

    async def close(self) -> None:
        """All has ended: take what it had still written, and let go."""
        self._closing = True
        if not self._silent.done():
            self._loop.remove_reader(self._pipe)
        try:
            await self._take_rest()
        finally:
            os.close(self._pipe)
            self._owned.stop_watching()
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


def _start(
    arguments: Sequence[str],
    cwd: Path,
    env: Mapping[str, str],
    output: int,
    given: int = subprocess.DEVNULL,
    errors: int | None = None,
) -> Started:
    """Start a command that may do whatever the user may do. Without `errors` both outputs go to the same place."""
    return subprocess.Popen(  # noqa: S603 - running what a model asks for is the purpose, once permitted
        arguments,
        cwd=cwd,
        env=env,
        stdin=given,
        stdout=output,
        stderr=output if errors is None else errors,
        start_new_session=True,
    )


def _arguments(command: Sequence[str] | str, env: Mapping[str, str], root: Path | None) -> Sequence[str]:
    if not isinstance(command, str):
        return command
    shell = find_program("bash", env.get("PATH", os.defpath), root) or "/bin/sh"
    return [shell, "-c", command]
