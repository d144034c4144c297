"""The process that holds a model, as its clients see it: started when it is needed, ended when it is not.

It answers one request after the other: two at once would both be slow, and a request that was given up could not be
distinguished from its neighbour. The process has no state worth saving, so ending it is always a kill.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from weakref import WeakKeyDictionary

import msgspec

from covey.models.embedded_server import Listening, Order

STOP_GENERATION_S = 0.5
"""How long a model may go on after its answer was given up, before its process is killed."""
STOP_GENERATION_POLL_S = 0.05
IDLE_S = 300.0
"""How long a model that nobody asks stays in memory: people think between prompts, but not for ever."""
LINGER_S = 60.0
"""How long it stays when nobody is left who could ask: a `covey run` is often followed by the next one."""
MAX_STDERR = 2000
"""Its last words are enough to see what was wrong."""
MAX_SLOTS_BYTES = 1024 * 1024

_PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
_PASSED_ON_PREFIXES = ("LD_", "DYLD_", "CUDA_", "GGML_", "HIP_", "HSA_", "ROCR_", "VK_")
"""What the process needs to run, and to find its graphics card: no key of any provider is among it."""


class ChildFailed(Exception):
    """The process did not start, or ended. The text is for people."""


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """What a process is for. The same spec is the same process."""

    model_file: Path
    context_window: int
    sha256: str = ""
    is_tiny: bool = False


@dataclass(frozen=True, slots=True)
class ChildAddress:
    base_url: str
    api_key: str

    def __repr__(self) -> str:
        return f"ChildAddress({self.base_url!r})"


class Child:
    """One process at most, and the queue before it."""

    def __init__(self, spec: ChildSpec) -> None:
        self.users = 0
        self._spec = spec
        self._lock = asyncio.Lock()
        self._process: asyncio.subprocess.Process | None = None
        self._address: ChildAddress | None = None
        self._stderr = bytearray()
        self._reading: asyncio.Task[None] | None = None
        self._stopping_generation: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None
        self._idle: asyncio.TimerHandle | None = None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process and self._process.returncode is None else None

    @asynccontextmanager
    async def turn(self, start_s: float) -> AsyncIterator[ChildAddress]:
        """The process to oneself. Leaving with an exception means that it may still compute: then it is made quiet."""
        async with self._lock:
            self._stay()
            await self._settled()
            try:
                address = await self._started(start_s)
                try:
                    yield address
                except BaseException:
                    # A task of its own: a cancelled caller need not wait, and cannot stop this by a second cancel.
                    self._stopping_generation = asyncio.create_task(self._stop_generation(address))
                    raise
            finally:
                self._end_in(IDLE_S if self.users else LINGER_S)

    async def last_output(self) -> str:
        """How the process ended and what it said last; '' while it is alive."""
        process = self._process
        if process is None:
            return "the model's process has ended"
        try:
            await asyncio.wait_for(process.wait(), 0.2)  # its connection is closed a moment before it is gone
        except TimeoutError:
            return ""
        return await self._last_words(process)

    def leave(self) -> None:
        """A user is gone. The process stays a while for the next one; it cannot outlive the server."""
        self.users -= 1
        if not self.users and not self._lock.locked():
            self._end_in(LINGER_S)

    async def aclose(self) -> None:
        """End the process now."""
        self._stay()
        if self._process:
            self._kill(self._process)  # so that nobody waits for it to fall quiet
        await self._settled()
        await self._end()

    # ── starting ──

    async def _started(self, start_s: float) -> ChildAddress:
        if self._process and self._process.returncode is None and self._address:
            return self._address
        await self._end()
        key = secrets.token_urlsafe(24)
        order = Order(
            model_file=str(self._spec.model_file),
            context_window=self._spec.context_window,
            api_key=key,
            parent=os.getpid(),
            sha256=self._spec.sha256,
            is_tiny=self._spec.is_tiny,
        )
        try:
            port = await self._start(order, start_s)
        except BaseException:
            await self._end()
            raise
        self._address = ChildAddress(f"http://127.0.0.1:{port}/v1", key)
        return self._address

    async def _start(self, order: Order, start_s: float) -> int:
        self._stderr.clear()
        try:
            self._process = process = await asyncio.create_subprocess_exec(
                *command(),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=environment(),
                start_new_session=True,  # a Ctrl-C in the server's terminal is for the server
            )
        except OSError as error:
            raise ChildFailed(f"the model's process cannot be started: {error.strerror}") from None
        assert process.stdin and process.stdout and process.stderr
        self._reading = asyncio.create_task(self._read_stderr(process.stderr))
        process.stdin.write(msgspec.json.encode(order) + b"\n")
        try:
            line = await asyncio.wait_for(process.stdout.readline(), start_s)
        except TimeoutError:
            raise ChildFailed(f"the model was not loaded within {start_s:g} s (idle_timeout_s)") from None
        try:
            return msgspec.json.decode(line, type=Listening).port
        except msgspec.DecodeError:
            raise ChildFailed(await self._last_words(process)) from None

    async def _read_stderr(self, stderr: asyncio.StreamReader) -> None:
        while data := await stderr.read(65536):
            self._stderr += data
            del self._stderr[:-MAX_STDERR]

    async def _last_words(self, process: asyncio.subprocess.Process) -> str:
        self._kill(process)
        await process.wait()
        if self._reading:
            await asyncio.wait([self._reading], timeout=1.0)
        said = self._stderr.decode("utf-8", "replace").strip()
        return said if process.returncode == 1 and said else _how(process.returncode) + (f": {said}" if said else "")

    # ── ending ──

    async def _stop_generation(self, address: ChildAddress) -> None:
        """Make sure that nothing is computed any more.

        llama.cpp stops when its reader is gone, but only between tokens, and a long prompt is one long computation.
        """
        with contextlib.suppress(OSError, msgspec.MsgspecError):  # a timeout is an OSError too
            async with asyncio.timeout(STOP_GENERATION_S):
                while not await is_quiet(address):  # noqa: ASYNC110 - another process does not set our events
                    await asyncio.sleep(STOP_GENERATION_POLL_S)
                return
        await self._end()

    def _kill(self, process: asyncio.subprocess.Process) -> None:
        with contextlib.suppress(ProcessLookupError):
            process.kill()

    async def _settled(self) -> None:
        """Until what was begun about the process has been done."""
        for task in (self._stopping_generation, self._ending):
            if task:
                await asyncio.wait([task])

    def _stay(self) -> None:
        if self._idle:
            self._idle.cancel()
            self._idle = None

    def _end_in(self, seconds: float) -> None:
        self._stay()
        self._idle = asyncio.get_running_loop().call_later(seconds, self._end_when_idle)

    def _end_when_idle(self) -> None:
        self._idle = None
        if not self._lock.locked():
            self._ending = asyncio.create_task(self._end())

    async def _end(self) -> None:
        process, self._process, self._address = self._process, None, None
        if process is None:
            return
        self._kill(process)
        if process.stdin:
            process.stdin.close()
        await process.wait()
        if self._reading:
            await asyncio.wait([self._reading], timeout=1.0)


async def is_quiet(address: ChildAddress) -> bool:
    """Whether llama.cpp computes nothing. While it is in the middle of a computation it does not even answer."""
    host, _, port = address.base_url.removeprefix("http://").removesuffix("/v1").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        head = f"GET /slots HTTP/1.0\r\nHost: {host}\r\nAuthorization: Bearer {address.api_key}\r\n\r\n"
        writer.write(head.encode())
        answer = b""
        while len(answer) < MAX_SLOTS_BYTES and (chunk := await reader.read(65536)):
            answer += chunk
    finally:
        writer.close()
    return not any(
        slot.is_processing for slot in msgspec.json.decode(answer.partition(b"\r\n\r\n")[2], type=list[_Slot])
    )


class _Slot(msgspec.Struct):
    is_processing: bool


def command() -> list[str]:
    """-P: nothing out of the directory that somebody works on may be imported."""
    return [sys.executable, "-P", "-m", "covey.models.embedded_server"]


def environment() -> dict[str, str]:
    return {
        name: value for name, value in os.environ.items() if name in _PASSED_ON or name.startswith(_PASSED_ON_PREFIXES)
    }


def _how(returncode: int | None) -> str:
    if returncode is not None and returncode < 0:
        with contextlib.suppress(ValueError):
            name = signal.Signals(-returncode).name
            why = ", perhaps because this processor lacks what it was built for" if name == "SIGILL" else ""
            return f"the model's process was ended by {name}{why}"
    return f"the model's process ended with code {returncode}"


# ── shared ──

_children: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[ChildSpec, Child]] = WeakKeyDictionary()
"""One process for each model in this server, however many workspaces use it."""


def share(spec: ChildSpec) -> Child:
    """The child for a model. Say `leave` to it in the end."""
    child = _here().setdefault(spec, Child(spec))
    child.users += 1
    return child


async def end_all() -> None:
    """End every process now. The server need not: they end with it."""
    children = _here()
    while children:
        await children.popitem()[1].aclose()


def _here() -> dict[ChildSpec, Child]:
    return _children.setdefault(asyncio.get_running_loop(), {})
