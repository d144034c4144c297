"""The data directory that a server owns while it runs: safe to use, and used by nobody else."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from covey import __version__
from covey.machine.locks import open_lock, try_lock
from covey.machine.names import server_lock
from covey.machine.owned import why_not_our_directory
from covey.protocol.paths import Address, DataDirInUse
from covey.server.listener import CannotServe

Announce = Callable[[Address | None], None]
"""Records where the owner listens, for whoever finds the directory taken. None: in its own process only."""


def make_data_dir(data_dir: Path) -> None:
    """Whoever can write into it could give us a token, a lock or a store of theirs."""
    try:
        data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        why = why_not_our_directory(data_dir)
    except OSError as error:
        raise CannotServe(f"{data_dir} cannot be the data directory: {error.strerror}") from None
    if why:
        raise CannotServe(
            f"{data_dir} {why}: the data directory must be yours, and only you may write into it. "
            f"Try `chmod go-w {data_dir}`, or choose another --data-dir."
        )


@contextlib.contextmanager
def owned(data_dir: Path) -> Iterator[Announce]:
    """Own the data directory while we run. The lock dies with the process, so a stale one cannot keep anybody out."""
    with contextlib.ExitStack() as stack:
        try:
            descriptor = stack.enter_context(open_lock(server_lock(data_dir)))
        except OSError as error:  # ELOOP: it is a link, which is not followed
            raise CannotServe(f"{server_lock(data_dir)} cannot be opened: {error.strerror}") from None

        def announce(address: Address | None) -> None:
            owner = {"pid": os.getpid(), "boot_id": _boot_id(), "version": __version__}
            where = {} if address is None else {"address": str(address)}
            os.ftruncate(descriptor, 0)
            try:
                os.pwrite(descriptor, json.dumps(owner | where).encode(), 0)
            except OSError as error:
                raise CannotServe(f"{data_dir} cannot be written to ({error.strerror}): make room there") from None

        is_ours = False
        with contextlib.suppress(OSError):  # a file system without locks
            is_ours = try_lock(descriptor)
        if not is_ours:
            raise _taken(data_dir, os.pread(descriptor, 4096, 0))
        os.ftruncate(descriptor, 0)
        yield announce
        os.ftruncate(descriptor, 0)


def _taken(data_dir: Path, owner: bytes) -> DataDirInUse:
    try:
        known = json.loads(owner)
        pid, address = int(known["pid"]), str(known.get("address", ""))
    except (ValueError, KeyError, TypeError, AttributeError):
        return DataDirInUse(
            f"{data_dir} is in use: another server has just started on it, or `covey doctor --repair` is at work. "
            "Try again in a moment, or choose another --data-dir."
        )
    if not address:
        return DataDirInUse(
            f"a program (pid {pid}) has opened {data_dir} in its own process, with covey.open(). "
            "Wait for its end, let it listen with `serve()`, or choose another --data-dir.",
            pid=pid,
        )
    return DataDirInUse(
        f"the server at {address} (pid {pid}) uses {data_dir} already. Use it with --host {address}, stop it with "
        f"`covey stop --host {address}`, or choose another --data-dir.",
        pid=pid,
        address=address,
    )


def _boot_id() -> str:
    """Tells apart two processes with the same pid before and after a reboot."""
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return ""
