"""What all commands that talk to a server share: how they connect, and how they say that something went wrong."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from covey.cli import exits
from covey.cli.directory import default_directory
from covey.cli.ids import find_session
from covey.cli.screen import Screen
from covey.client.client import Client
from covey.client.connect import Say, connect, environment, is_text, resolve_address
from covey.client.errors import ServerUnreachable
from covey.protocol.errors import ApiError, Unauthorized
from covey.protocol.paths import BadAddress, UnsafeDirectory
from covey.protocol.requests import WorkspaceView
from covey.protocol.who import ClientKind

WHEN_REFUSED = (
    "Give its own with --token-file FILE or in $COVEY_TOKEN: it is in the file `token` of the server's data directory, "
    "unless the server was started with a --token-file."
)
RELOAD_S = 10.0
"""For a server that runs to read its configuration again, which may mean asking for local models."""
RUNS_LOOKED_AT = 50
"""To find the latest session: more only if that many prompts were of sessions that are deleted now."""


def complain(text: str) -> None:
    Screen(sys.stderr, quiet=False, shares_terminal=False).warn(text)


def note(text: str) -> None:
    """What is said beside what was asked for, such as that there is none of it."""
    Screen(sys.stderr, quiet=False, shares_terminal=False).report(text)


def connected(
    args: argparse.Namespace,
    *,
    autostart: bool = True,
    say: Say = complain,
    kind: ClientKind = "run",
    name: str = "",
) -> AbstractAsyncContextManager[Client]:
    """The client for `--host`, `--data-dir` and `--token-file`. `name`: what others see of it; '' is the user's."""
    token_path = Path(args.token_file).expanduser() if args.token_file else None
    if token_path and not token_path.is_file():
        raise exits.UsageError(f"there is no token in {token_path}")
    try:
        resolve_address(args.host, data_dir(args))
    except BadAddress as error:
        raise exits.UsageError(str(error)) from None
    where = {"data_dir": data_dir(args), "token_path": token_path}
    return connect(args.host, **where, autostart=autostart, kind=kind, name=name, say=say)


def data_dir(args: argparse.Namespace) -> Path | None:
    """What `--data-dir` says; None: the user's own."""
    return Path(args.data_dir).expanduser().absolute() if args.data_dir else None


async def join(client: Client, cwd: str | None) -> WorkspaceView:
    """The workspace of this directory."""
    path = _directory(working_directory(cwd), is_here=client.address.is_unix)
    return await client.create_workspace(path, env=environment(client.address))


def working_directory(cwd: str | None) -> str:
    """What `--cwd` says, else the root of the git repository around here, else the current directory."""
    return cwd or str(default_directory(Path.cwd()))


def _directory(cwd: str, *, is_here: bool) -> str:
    """The path as the server needs it. Whether it exists can only be known if the server is on this machine."""
    path = os.path.abspath(os.path.expanduser(cwd))
    if is_here and not os.path.isdir(path):
        raise exits.UsageError(f"{path} is not a directory")
    if not is_text(path):
        raise exits.UsageError(f"{path!r} cannot be worked on: its name is not UTF-8")
    return path


OnFailure = Callable[[str, int], None]


def run(command: Coroutine[Any, Any, int], *, on_failure: OnFailure | None = None) -> int:
    """Run a command to its exit code, or raise CommandFailed.

    `on_failure`: of a command that has an object of its own for `--json`, and writes it also then.
    """
    try:
        return _run(command)
    except exits.CommandFailed as failure:
        if on_failure:
            on_failure(str(failure), failure.exit_code)
            failure.is_written = True
        raise


def _run(command: Coroutine[Any, Any, int]) -> int:
    try:
        return asyncio.run(command)
    except BrokenPipeError:
        raise  # nobody reads what we have to say
    except (ServerUnreachable, UnsafeDirectory, ApiError, OSError) as error:
        raise exits.CommandFailed(*explained(error)) from error


def explained(error: Exception) -> tuple[str, int]:
    """What went wrong as a sentence, and the exit code for it."""
    match error:
        case ServerUnreachable() | UnsafeDirectory():
            return str(error), exits.UNREACHABLE
        case Unauthorized():
            return f"{error.message.rstrip('.')}. {WHEN_REFUSED}", exits.UNREACHABLE
        case ApiError():
            return error.message, exits.FAILED
    return str(error), exits.FAILED


def reload_servers(args: argparse.Namespace, directory: str = "") -> int:
    """Let a server that runs read its configuration again, for one directory or for all that it has open.

    Whoever opens a directory later does so anyway, so this fails nobody.
    """
    asyncio.run(_reload(args, directory))
    return exits.OK


async def _reload(args: argparse.Namespace, directory: str) -> None:
    try:
        async with asyncio.timeout(RELOAD_S), connected(args, autostart=False, say=lambda text: None) as client:
            for workspace in await client.workspaces():
                if directory in ("", workspace.path):
                    await client.update_agent(workspace.id)
    except ApiError as error:
        complain(f"The server that runs cannot take it up: {error.message}")
    except TimeoutError:
        complain("The server that runs did not take it up in time; it does so when it opens the directory next.")
    except (ServerUnreachable, UnsafeDirectory, OSError):
        return


async def find_latest_session(client: Client, workspace_id: str) -> str:
    """The session of this directory's newest prompt, or ''. Those in which agents work for others do not count.

    The `updated_at` of a session alone cannot tell: it counts whole seconds.
    """
    sessions = {session.id: session for session in await client.sessions(workspace_id)}
    if not sessions:
        return ""
    runs = await client.runs(workspace_id, limit=RUNS_LOOKED_AT)
    latest = max(sessions.values(), key=lambda session: (session.updated_at, session.id))
    return next((run.session_id for run in runs if run.session_id in sessions), latest.id)


async def chosen_session(client: Client, workspace_id: str, beginning: str) -> str:
    """The id of the session that was named or, if none was, of the latest one. Raises UsageError if there is none."""
    if beginning:
        return (await find_session(client, workspace_id, beginning)).id
    if latest := await find_latest_session(client, workspace_id):
        return latest
    raise exits.UsageError("there are no sessions in this directory yet")
