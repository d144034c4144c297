"""`covey fork`: go on from a message of a session in a session of its own."""

from __future__ import annotations

import argparse
import sys

from covey.cli import common, exits
from covey.cli.terminal_text import json_text
from covey.protocol.errors import NotFound
from covey.protocol.requests import ForkSession


def main(args: argparse.Namespace) -> int:
    return common.run(_fork(args))


async def _fork(args: argparse.Namespace) -> int:
    async with common.connected(args) as client:
        workspace_id = (await common.join(client, args.cwd)).id
        session_id = await common.chosen_session(client, workspace_id, args.session)
        try:
            session = await client.fork(
                workspace_id, session_id, ForkSession(message_id=args.at or "", title=args.title)
            )
        except NotFound as error:
            if error.code != "message_not_found":
                raise
            raise exits.UsageError(error.message) from None
    print(json_text(session) if args.json else session.id)
    if sys.stdout.isatty():  # in `$(covey fork)` nobody needs it
        common.note(f'`covey run -s {session.id} "…"` goes on there, -C in the session of your last prompt.')
    return exits.OK
