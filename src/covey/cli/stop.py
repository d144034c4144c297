"""`covey stop`: end the server in order, and wait until it is gone."""

from __future__ import annotations

import argparse
import asyncio
import os
import select
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from covey.cli import common, exits
from covey.cli.status import server_pid
from covey.client.client import Client
from covey.client.errors import BadAnswer, ConnectionLost, ServerUnreachable, SocketGone
from covey.protocol.errors import ApiError, Conflict

GONE_S = 30.0
"""Closing has bounds that add up to less: cancelling runs, their last words, flushing."""
POLL_S = 0.02


def main(args: argparse.Namespace) -> int:
    return common.run(_stop(args))


async def _stop(args: argparse.Namespace) -> int:
    try:
        async with common.connected(args, autostart=False) as client:
            pid = server_pid(client.address, common.data_dir(args))
            with _watched(pid) as has_ended:
                try:
                    await client.control("shutdown_if_idle" if args.if_idle else "shutdown")
                except Conflict as error:
                    common.complain(f"{error.message}; it goes on.")
                    return exits.FAILED
                return await _wait_until_gone(client, has_ended)
    except (BadAnswer, SocketGone):
        raise
    except ServerUnreachable:
        print("No server is running.")
        return exits.OK


@contextmanager
def _watched(pid: int | None) -> Iterator[Callable[[], bool] | None]:
    """Whether the process has ended; None if it is not known which one it is.

    By a handle where the system has one: a number may belong to another process by then, and keeps that of a process
    which has ended for as long as its parent does not ask how.
    """
    if not pid:
        yield None
        return
    try:
        handle = os.pidfd_open(pid)
    except (AttributeError, OSError):
        yield lambda: not _is_alive(pid)
        return
    try:
        yield lambda: bool(select.select([handle], [], [], 0)[0])
    finally:
        os.close(handle)


async def _wait_until_gone(client: Client, has_ended: Callable[[], bool] | None) -> int:
    """Until the process has ended: only then may the next server have the data directory.

    Whether somebody answers says little: another client may have started the next one already. It is asked only where
    the process is not known.
    """
    deadline = time.monotonic() + GONE_S
    while not has_ended() if has_ended else await _answers(client):
        if time.monotonic() > deadline:
            common.complain(f"The server has not ended within {GONE_S:.0f} s.")
            return exits.FAILED
        await asyncio.sleep(POLL_S)
    print("The server has ended.")
    return exits.OK


async def _answers(client: Client) -> bool:
    try:
        await client.health()
    except (ConnectionLost, ApiError):
        return True
    except ServerUnreachable:
        return False
    return True


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
