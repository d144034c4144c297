"""`covey acp`: for editors that speak the Agent Client Protocol. stdin and stdout belong to the editor."""

from __future__ import annotations

import argparse
import sys
from contextlib import AbstractAsyncContextManager

from covey.acp.stdio import serve
from covey.cli import common, exits
from covey.client.client import Client
from covey.client.connect import user_name


def main(args: argparse.Namespace) -> int:
    if sys.stdin.isatty():
        common.complain("This is for editors, which start it and speak JSON with it: see `covey acp --help`.")
    return common.run(_acp(args))


async def _acp(args: argparse.Namespace) -> int:
    def connect(editor: str) -> AbstractAsyncContextManager[Client]:
        return common.connected(args, kind="acp", name=f"{user_name()} in {editor}" if editor else "")

    await serve(connect, common.working_directory(args.cwd))
    return exits.OK
