"""`covey` without a command: the terminal face. Everything that it needs is imported after its first frame."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from covey.cli import exits
from covey.lines.theme import theme_doubt
from covey.tui.door import FaceWishes, Farewell, Say
from covey.tui.start import start

if TYPE_CHECKING:
    from covey.client.client import Client
    from covey.protocol.requests import WorkspaceView

SERVER_OPTIONS = ("host", "data_dir", "token_file")


def main(args: argparse.Namespace) -> int:
    door = CommandLineDoor(args)
    if doubt := theme_doubt(os.environ):
        from covey.cli.common import complain

        complain(doubt)
    try:
        if args.plain or os.environ.get("TERM", "dumb") == "dumb":
            from covey.tui.plain.plain import start as start_plain

            return start_plain(door)
        farewell = start(door)
    except exits.UsageError:
        raise
    except Exception as error:
        return _failed(error)
    _say_how_to_resume(farewell, args)
    return farewell.exit_code


def _failed(error: Exception) -> int:
    """What ended it, on the screen of the shell. What is no error of ours keeps its traceback."""
    from covey.cli.common import complain, explained
    from covey.client.errors import ServerUnreachable
    from covey.protocol.errors import ApiError
    from covey.protocol.paths import UnsafeDirectory
    from covey.tui.face.keys import KeyConflict

    if not isinstance(error, ServerUnreachable | UnsafeDirectory | ApiError | OSError | KeyConflict):
        raise error
    sentence, exit_code = explained(error)
    complain(sentence)
    return exit_code


def _say_how_to_resume(farewell: Farewell, args: argparse.Namespace) -> None:
    """The line as it has to be typed: with the server and the directory, if these were named."""
    if farewell.session_id:
        import shlex

        from covey.lines.plain_text import one_line

        title = f"  ({one_line(farewell.title)})" if farewell.title else ""
        again = shlex.join(["covey", *_given(args, *SERVER_OPTIONS, "cwd"), "-s", farewell.session_id])
        print(f"{again}   goes on with this session{title}")
    if farewell.unsent:
        what = "A prompt was" if farewell.unsent == 1 else f"{farewell.unsent} prompts were"
        print(f"{what} not sent: ↑ in the prompt has what you wrote.")


def _given(args: argparse.Namespace, *names: str) -> list[str]:
    """Those of these options that were given, as words of a command line that holds anywhere."""
    words: list[str] = []
    for name in names:
        if value := getattr(args, name, None):
            words += [
                f"--{name.replace('_', '-')}",
                value if name == "host" else os.path.abspath(os.path.expanduser(value)),
            ]
    return words


class CommandLineDoor:
    """What the command line says about server, directory and session, and the user's own file about the rest."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._args = args

    def settings(self) -> FaceWishes:
        from covey.config.load import load
        from covey.tui.face.keys import configured
        from covey.tui.face.state import FacePreferences

        found = load(None, None, os.environ).faces
        wishes = found.tui
        preferences = FacePreferences(
            keys=configured(found.keys),
            busy=wishes.busy,
            notifies=wishes.notify,
            shares_shell=wishes.share_shell,
        )
        return FaceWishes(preferences, wishes.theme, wishes.mouse)

    def connect(self, say: Say) -> AbstractAsyncContextManager[Client]:
        from covey.cli.common import connected

        return connected(self._args, say=say, kind="tui")

    async def join(self, client: Client) -> WorkspaceView:
        from covey.cli.common import join

        return await join(client, self._args.cwd)

    async def choose(self, client: Client, workspace_id: str) -> str:
        from covey.cli.common import chosen_session

        if self._args.session or self._args.resume:
            return await chosen_session(client, workspace_id, self._args.session or "")
        return ""

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-P", "-m", "covey", *words, *_given(self._args, *SERVER_OPTIONS)]
