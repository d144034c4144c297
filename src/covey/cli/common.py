"""What all commands that talk to a server share: how they connect, and how they say that something went wrong."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Coroutine
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from covey.cli import exits
from covey.cli.screen import warning
from covey.client.client import Client
from covey.client.connect import Say, connect, environment, is_text, resolve_address
from covey.client.errors import ServerUnreachable
from covey.protocol.errors import CoveyError, Unauthorized
from covey.protocol.paths import BadAddress, UnsafeDirectory
from covey.protocol.requests import Workspace

RUNS_LOOKED_AT = 50
"""To find the latest session: more only if that many prompts were of sessions that are deleted now."""


def complain(text: str) -> None:
    print(warning(text), file=sys.stderr)


def connected(
    args: argparse.Namespace, *, autostart: bool = True, say: Say = complain
) -> AbstractAsyncContextManager[Client]:
    """The client for `--host`, `--data-dir` and `--token-file`."""
    data_dir = Path(args.data_dir).expanduser().absolute() if args.data_dir else None
    token_path = Path(args.token_file).expanduser() if args.token_file else None
    if token_path and not token_path.is_file():
        raise exits.UsageError(f"there is no token in {token_path}")
    try:
        resolve_address(args.host, data_dir)
    except BadAddress as error:
        raise exits.UsageError(str(error)) from None
    return connect(args.host, data_dir=data_dir, token_path=token_path, autostart=autostart, say=say)


async def join(client: Client, cwd: str | None) -> Workspace:
    """The workspace of this directory."""
    path = _directory(cwd or ".", is_here=client.address.is_unix)
    return await client.create_workspace(path, env=environment(client.address))


def _directory(cwd: str, *, is_here: bool) -> str:
    """The path as the server needs it. Whether it exists can only be told if the server is on this machine."""
    path = os.path.abspath(os.path.expanduser(cwd))
    if is_here and not os.path.isdir(path):
        raise exits.UsageError(f"{path} is not a directory")
    if not is_text(path):
        raise exits.UsageError(f"{path!r} cannot be worked on: its name is not UTF-8")
    return path


def run(command: Coroutine[Any, Any, int]) -> int:
    """Run a command to its exit code; whatever goes wrong is one sentence on stderr."""
    try:
        return asyncio.run(command)
    except (ServerUnreachable, UnsafeDirectory) as error:
        complain(str(error))
        return exits.UNREACHABLE
    except Unauthorized as error:
        complain(f"{error.message} Give the right one with --token-file FILE or in $COVEY_TOKEN.")
        return exits.UNREACHABLE
    except CoveyError as error:
        complain(error.message)
        return exits.FAILED
    except BrokenPipeError:
        # Whatever is still in the buffer would raise again when Python flushes it at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return exits.BROKEN_PIPE
    except OSError as error:
        complain(str(error))
        return exits.FAILED


async def find_latest_session(client: Client, workspace_id: str) -> str:
    """The session of this directory's newest prompt, or ''. Those in which agents work for others do not count.

    The `updated_at` of a session alone cannot tell: it counts whole seconds.
    """
    sessions = {session.id: session for session in await client.sessions(workspace_id) if not session.parent_session_id}
    if not sessions:
        return ""
    runs = await client.runs(workspace_id, limit=RUNS_LOOKED_AT)
    latest = max(sessions.values(), key=lambda session: (session.updated_at, session.id))
    return next((run.session_id for run in runs if run.session_id in sessions), latest.id)


async def latest_session(client: Client, workspace_id: str) -> str:
    """The same where there must be one."""
    if latest := await find_latest_session(client, workspace_id):
        return latest
    raise exits.UsageError("there are no sessions in this directory yet")
