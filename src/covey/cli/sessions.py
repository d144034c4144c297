"""`covey sessions`: list, search, show, rename, summarize, archive, delete and export the sessions of a directory."""

from __future__ import annotations

import argparse
import codecs
import signal
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import Any

from covey.cli import common, exits
from covey.cli.ids import find_session
from covey.cli.listing import row
from covey.cli.sessions_search import find
from covey.cli.stats import dollars
from covey.cli.terminal_text import escaped_json, json_text, one_line, plain
from covey.client.client import Client
from covey.protocol import markdown
from covey.protocol.activity import WorkspaceSession
from covey.protocol.messages import Session
from covey.protocol.requests import UpdateSession
from covey.protocol.runs import PromptReceipt, Run

SHOWN_CHARS = 2000
"""What `show` shows of a tool's output: `export` has all of it."""
PAGE = 1000
"""Sessions of all directories in one answer: the most that a server gives."""


def main(args: argparse.Namespace) -> int:
    if args.action == "summarize" and not args.detach:
        from covey.cli.waiting import wait  # late: the other actions follow no run

        return wait(args, lambda client, workspace_id: _summary_run(client, workspace_id, args))
    return common.run(_sessions(args))


async def _sessions(args: argparse.Namespace) -> int:
    if args.action == "search" or args.grep is not None:
        return await find(args)
    async with common.connected(args) as client:
        if args.everywhere and args.action in (None, "list"):
            return await _list_everywhere(client, args)
        workspace_id = (await common.join(client, args.cwd)).id
        if args.action in (None, "list"):
            return await _list(client, workspace_id, args)
        if args.action == "summarize":
            receipt = await _summarize(client, workspace_id, args)
            print(json_text(receipt) if args.json else receipt.run_id)
            return exits.OK
        chosen = args.session or await common.chosen_session(client, workspace_id, "")
        session = await find_session(client, workspace_id, chosen)
        if args.action in ("rename", "model", "mode", "archive", "unarchive"):
            return await _change(client, workspace_id, session, args)
        if args.action == "delete":
            return await _delete(client, workspace_id, session, args)
        if args.action == "export":
            return await _export(client, workspace_id, session, args)
        return await _show(client, workspace_id, session, args)


async def _list(client: Client, workspace_id: str, args: argparse.Namespace) -> int:
    wanted = args.limit + 1 if args.limit else None  # one more, to know whether there are any
    listed = await client.sessions(workspace_id, children=args.json, archived=args.archived, limit=wanted)
    shown = listed[: args.limit]
    if args.json:
        _print_json(shown)
    for session in () if args.json else shown:
        print(_line(session))
    _say_what_is_left(listed, shown, args, "There are no sessions in this directory yet.")
    return exits.OK


async def _list_everywhere(client: Client, args: argparse.Namespace) -> int:
    """Those of all directories of the server, by directory: the one of the last changed session first."""
    listed = [each async for each in _everywhere(client, args)]
    shown = listed[: args.limit]
    if args.json:
        _print_json(shown)
    places: dict[str, list[WorkspaceSession]] = {}
    for session in () if args.json else shown:
        places.setdefault(session.path, []).append(session)
    for path, sessions in places.items():
        print("\n".join([one_line(path), *(_line(session, "  ") for session in sessions)]))
    _say_what_is_left(listed, shown, args, "There are no sessions yet.")
    return exits.OK


async def _everywhere(client: Client, args: argparse.Namespace) -> AsyncGenerator[WorkspaceSession, None]:
    """One more than are wanted, if there are as many; a page at a time."""
    wanted, before = args.limit + 1 if args.limit else sys.maxsize, ""
    listing = {"children": args.json, "archived": args.archived}
    while wanted and (page := await client.all_sessions(**listing, before=before, limit=min(wanted, PAGE))):
        for session in page:
            yield session
        wanted -= len(page)
        before = f"{page[-1].workspace_id}/{page[-1].id}"


def _say_what_is_left(listed: Sequence[Session], shown: Sequence[Session], args: argparse.Namespace, none: str) -> None:
    if len(shown) < len(listed):
        sys.stdout.flush()  # the note about what is left out comes below the list
        common.note("There are more: see them with a higher --limit, or without.")
    elif not listed and not args.json:
        common.note(none)


async def _change(client: Client, workspace_id: str, session: Session, args: argparse.Namespace) -> int:
    if args.action == "rename":
        change = UpdateSession(title=" ".join(args.title))
    elif args.action == "mode":
        change = UpdateSession(mode=args.mode)
    elif args.action in ("archive", "unarchive"):
        change = UpdateSession(archived=args.action == "archive")
    else:
        change = UpdateSession(model=args.model or None)
    changed = await client.update_session(workspace_id, session.id, change)
    if args.json:
        _print_json(changed)
    else:
        print(_line(changed))
    return exits.OK


async def _summarize(client: Client, workspace_id: str, args: argparse.Namespace) -> PromptReceipt:
    session = await find_session(client, workspace_id, args.session)
    return await client.summarize(workspace_id, session.id, focus=" ".join(args.focus))


async def _summary_run(client: Client, workspace_id: str, args: argparse.Namespace) -> Run:
    receipt = await _summarize(client, workspace_id, args)
    return await client.run(workspace_id, receipt.run_id)


async def _delete(client: Client, workspace_id: str, session: Session, args: argparse.Namespace) -> int:
    if not args.yes and not _is_meant(session):
        print("Nothing is deleted.", file=sys.stderr)
        return exits.FAILED
    await client.delete_session(workspace_id, session.id)
    if args.json:
        _print_json({"deleted": session.id})
    else:
        print(f"Session {session.id} is deleted.", file=sys.stderr)
    return exits.OK


def _is_meant(session: Session) -> bool:
    """Ask whoever sits at a terminal: it cannot be taken back. A script has said what it means."""
    if sys.stdin is None or not sys.stdin.isatty() or not sys.stderr.isatty():
        return True
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # nothing else goes on: Ctrl-C just leaves
    try:
        print(_line(session), file=sys.stderr)
        print("Delete it for good, with its open runs? [y/N] ", end="", file=sys.stderr, flush=True)
        answer = sys.stdin.readline()
    finally:
        signal.signal(signal.SIGINT, before)
    return answer.strip().lower() in ("y", "yes")


async def _show(client: Client, workspace_id: str, session: Session, args: argparse.Namespace) -> int:
    messages = await client.messages(workspace_id, session.id)
    if args.json:
        _print_json({"session": session, "messages": messages})
        return exits.OK
    print(markdown.head(session), end="")
    for message in messages:
        print(markdown.section(message, SHOWN_CHARS), end="")
    return exits.OK


async def _export(client: Client, workspace_id: str, session: Session, args: argparse.Namespace) -> int:
    """Written as it arrives: it may be long."""
    decode = codecs.getincrementaldecoder("utf-8")("replace").decode
    async with aclosing(client.export(workspace_id, session.id, "json" if args.json else "markdown")) as pieces:
        async for piece in pieces:
            text = decode(piece)
            sys.stdout.write(escaped_json(text) if args.json else text)
    sys.stdout.write(decode(b"", True))
    return exits.OK


def _line(session: Session, indent: str = "") -> str:
    when = datetime.fromtimestamp(session.updated_at).strftime("%Y-%m-%d %H:%M")
    busy = " (busy)" if session.is_busy else ""
    model = f" [{session.model}]" if session.model else ""
    mode = f" ({session.mode})" if session.mode not in (None, "ask") else ""
    aside = " (archived)" if session.archived_at is not None else ""
    title = one_line(session.title) or "untitled"
    messages = "message " if session.message_count == 1 else "messages"
    counts = f"{session.message_count:4} {messages}  {dollars(session.cost):>7}"
    return row(f"{indent}{session.id}  {when}  {counts}  ", plain(title), plain(f"{model}{mode}{busy}{aside}"))


def _print_json(value: Any) -> None:
    print(json_text(value))
