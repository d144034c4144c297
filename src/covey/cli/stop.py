"""`covey stop`: end the server in order, and wait until it is gone."""

from __future__ import annotations

import argparse
import asyncio
import os
import time

from covey.cli import common, exits
from covey.cli.status import server_pid
from covey.client.client import Client
from covey.client.errors import BadAnswer, ConnectionLost, ServerUnreachable
from covey.protocol.errors import Conflict, CoveyError

GONE_S = 30.0
"""Closing has bounds that add up to less: cancelling runs, their last words, flushing."""
POLL_S = 0.02


def main(args: argparse.Namespace) -> int:
    return common.run(_stop(args))


async def _stop(args: argparse.Namespace) -> int:
    try:
        async with common.connected(args, autostart=False) as client:
            pid = server_pid(client.address)
            try:
                await client.control("shutdown_if_idle" if args.if_idle else "shutdown")
            except Conflict as error:
                common.complain(f"{error.message}; it goes on.")
                return exits.FAILED
            return await _wait_until_gone(client, pid)
    except BadAnswer:
        raise
    except ServerUnreachable:
        print("No server is running.")
        return exits.OK


async def _wait_until_gone(client: Client, pid: int | None) -> int:
    """Until nobody answers, and the process has ended: only then may the next server have the data directory."""
    deadline = time.monotonic() + GONE_S
    while await _answers(client) or (pid and _is_alive(pid)):
        if time.monotonic() > deadline:
            common.complain(f"The server has not ended within {GONE_S:.0f} s.")
            return exits.FAILED
        await asyncio.sleep(POLL_S)
    print("The server has ended.")
    return exits.OK


async def _answers(client: Client) -> bool:
    try:
        await client.health()
    except (ConnectionLost, CoveyError):
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
