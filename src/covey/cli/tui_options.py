"""The options of `covey` without a command. They have names of their own, so that no command overwrites them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from covey.cli import option_types

PREFIX = "tui_"


def add_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("without a command: the terminal UI")
    group.add_argument(
        "-s", "--session", dest="tui_session", metavar="ID", type=option_types.some_id, help="open this session"
    )
    group.add_argument(
        "-c", "-C", "--continue", dest="tui_resume", action="store_true", help="open the session of the latest prompt"
    )
    group.add_argument(
        "--plain",
        dest="tui_plain",
        action="store_true",
        help="lines only: for screen readers and simple terminals. Markdown is rendered, also into a pipe, where "
        "`covey run` writes it as it is",
    )
    group.add_argument("--cwd", dest="tui_cwd", metavar="DIR", help="the directory to work on, as for the commands")
    group.add_argument("--host", dest="tui_host", metavar="ADDRESS", help="which server, as for the commands")
    group.add_argument("--data-dir", dest="tui_data_dir", metavar="DIR", help="where your server keeps its data")
    group.add_argument("--token-file", dest="tui_token_file", metavar="FILE", help="the token for tcp://")


def alone(words: Sequence[str]) -> argparse.Namespace | None:
    """What only the terminal UI is told; None: something else is asked for, or it is not understood."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    add_options(parser)
    try:
        args, more = parser.parse_known_args(words)
    except argparse.ArgumentError:
        return None
    if more:
        return None
    take(args)
    return args


def given(args: argparse.Namespace) -> str:
    """An option of these that was given before a command, as it is written; '' if none was."""
    names = [name for name, value in vars(args).items() if name.startswith(PREFIX) and value]
    return f"--{names[0].removeprefix(PREFIX).replace('_', '-').replace('resume', 'continue')}" if names else ""


def take(args: argparse.Namespace) -> None:
    """There is no command: they are the options of the terminal UI."""
    args.command = "tui"
    for name, value in list(vars(args).items()):
        if name.startswith(PREFIX):
            setattr(args, name.removeprefix(PREFIX), value)
