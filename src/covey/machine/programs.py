"""Programs of this machine that Covey runs by itself: where they are, and how they are run within bounds."""

from __future__ import annotations

import os
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, NamedTuple

_PIECE = 65536
_LOOK_S = 0.02
"""How often to look whether a program has ended: one that it left behind may hold its output open for ever."""


class Ran(NamedTuple):
    """How a program ended, and what it wrote."""

    exit_code: int
    output: bytes
    errors: bytes


class CannotRun(Exception):
    """It could not be started, took too long or wrote too much. The text goes on where its name ends."""


def find_program(name: str, search_path: str, outside: Path | None) -> str | None:
    """The program of this machine: never one that lies in `outside`, the project, however PATH may be set."""
    root = outside.resolve() if outside else None
    if os.path.isabs(name):
        found = shutil.which(name)
        return None if found is None or _is_inside(found, root) else found
    for entry in search_path.split(os.pathsep):
        if not os.path.isabs(entry) or _is_inside(entry, root):
            continue
        found = shutil.which(name, path=entry)
        if found and not _is_inside(found, root):
            return found
    return None


def _is_inside(path: str, root: Path | None) -> bool:
    """Also if a link on the way leads there, and if it cannot be known."""
    if root is None:
        return False
    try:
        return Path(path).resolve().is_relative_to(root)
    except (OSError, RuntimeError, ValueError):
        return True


def run_bounded(
    command: Sequence[str], *, env: Mapping[str, str], timeout_s: float, limit: int, given: bytes = b""
) -> Ran:
    """Run a program without a shell or a terminal, from the root directory. Blocks; raises CannotRun.

    `given` is what it can read, at most as much as a pipe holds. It is killed when it takes too long or writes more
    than `limit` bytes; what it started to go on after it, such as an agent that keeps keys, is left alone otherwise.
    """
    try:
        process = subprocess.Popen(  # noqa: S603 - the caller has chosen it
            command,
            cwd="/",
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise CannotRun(f"cannot be started: {getattr(error, 'strerror', None) or error}") from None
    assert process.stdin and process.stdout and process.stderr
    try:
        with suppress(BrokenPipeError):
            process.stdin.write(given)
            process.stdin.close()
        output, errors = _read(process, timeout_s, limit)
        return Ran(process.wait(), output, errors)
    except BaseException:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    finally:
        for pipe in (process.stdin, process.stdout, process.stderr):
            with suppress(BrokenPipeError):
                pipe.close()


def _read(process: subprocess.Popen[bytes], timeout_s: float, limit: int) -> tuple[bytes, bytes]:
    """What it writes until it has ended."""
    assert process.stdout and process.stderr
    streams: list[IO[bytes]] = [process.stdout, process.stderr]
    seen = {stream: bytearray() for stream in streams}
    deadline = time.monotonic() + timeout_s
    with selectors.DefaultSelector() as selector:
        for stream in streams:
            os.set_blocking(stream.fileno(), False)
            selector.register(stream, selectors.EVENT_READ)
        while True:
            has_ended = process.poll() is not None  # asked first: what it wrote before its end is there to be read
            ready = selector.select(0 if has_ended else _LOOK_S)
            for key, _ in ready:
                stream = next(stream for stream in streams if stream is key.fileobj)
                if piece := os.read(stream.fileno(), _PIECE):
                    seen[stream] += piece
                else:
                    selector.unregister(stream)
            if any(len(data) > limit for data in seen.values()):
                raise CannotRun(f"wrote more than {limit} bytes")
            if has_ended and not ready:
                return bytes(seen[process.stdout]), bytes(seen[process.stderr])
            if time.monotonic() > deadline:
                raise CannotRun(f"did not end within {timeout_s:g} s")
