"""`covey help [COMMAND [ACTION]]`: the same as `--help`, for those who look for it there."""

from __future__ import annotations

import argparse

from covey.cli import exits
from covey.cli.main import build_parser
from covey.cli.parser import all_commands, nearest_command


def main(args: argparse.Namespace) -> int:
    parser = build_parser()
    wanted = tuple(args.words)
    if not wanted:
        parser.print_help()
        return exits.OK
    known = {command.words: command.parser for command in all_commands(parser)}
    if found := known.get(wanted):
        found.print_help()
        return exits.OK
    name = " ".join(wanted)
    hint = nearest_command(parser, name) or "`covey help` lists the commands"
    raise exits.UsageError(f"there is no command {name!r}; {hint}")
