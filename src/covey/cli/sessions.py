"""`covey sessions`: list, show, rename, delete and export the sessions of a directory."""

from __future__ import annotations

import argparse
import sys
from datetime import datetime
from typing import Any

import msgspec

from covey.cli import common, exits
from covey.cli.screen import plain
from covey.client.client import Client
from covey.protocol.errors import NotFound
from covey.protocol.messages import Message, Session
from covey.protocol.requests import UpdateSession

SHOWN_CHARS = 2000
"""What `show` shows of a tool's output: `export` has all of it."""


def main(args: argparse.Namespace) -> int:
    return common.run(_sessions(args))


async def _sessions(args: argparse.Namespace) -> int:
    async with common.connected(args) as client:
        workspace_id = (await common.join(client, args.cwd)).id
        try:
            if args.action in (None, "list"):
                return await _list(client, workspace_id, args)
            if args.action in ("rename", "model"):
                return await _change(client, workspace_id, args)
            if args.action == "delete":
                return await _delete(client, workspace_id, args)
            return await _show(client, workspace_id, args)
        except NotFound as error:
            if error.code != "session_not_found":
                raise
            raise exits.UsageError(f"there is no session {args.session} in this directory") from None


async def _list(client: Client, workspace_id: str, args: argparse.Namespace) -> int:
    sessions = sorted(await client.sessions(workspace_id), key=lambda s: (s.updated_at, s.id), reverse=True)
    shown = [session for session in sessions if not session.parent_session_id]  # not those of agents
    if args.json:
        _print_json(sessions)
    elif shown:
        for session in shown:
            print(_line(session))
    else:
        print("There are no sessions in this directory yet.", file=sys.stderr)
    return exits.OK


async def _change(client: Client, workspace_id: str, args: argparse.Namespace) -> int:
    renames = args.action == "rename"
    change = UpdateSession(title=" ".join(args.title)) if renames else UpdateSession(model=args.model or None)
    session = await client.update_session(workspace_id, args.session, change)
    if args.json:
        _print_json(session)
    else:
        print(_line(session))
    return exits.OK


async def _delete(client: Client, workspace_id: str, args: argparse.Namespace) -> int:
    await client.delete_session(workspace_id, args.session)
    if args.json:
        _print_json({"deleted": args.session})
    else:
        print(f"Session {args.session} is deleted.", file=sys.stderr)
    return exits.OK


async def _show(client: Client, workspace_id: str, args: argparse.Namespace) -> int:
    session = await client.session(workspace_id, args.session)
    messages = await client.messages(workspace_id, args.session)
    if args.json:
        _print_json({"session": session, "messages": messages})
    elif args.action == "export":
        print(to_markdown(session, messages))
    else:
        text = to_markdown(session, messages, shown_chars=SHOWN_CHARS)
        print(plain(text) if sys.stdout.isatty() else text)
    return exits.OK


def _line(session: Session) -> str:
    when = datetime.fromtimestamp(session.updated_at).strftime("%Y-%m-%d %H:%M")
    busy = " (busy)" if session.is_busy else ""
    model = f" [{session.model}]" if session.model else ""
    title = session.title or "untitled"
    return plain(f"{session.id}  {when}  {session.message_count:4} messages  {title}{model}{busy}")


def _print_json(value: Any) -> None:
    print(msgspec.json.encode(value).decode())


def to_markdown(session: Session, messages: tuple[Message, ...], shown_chars: int | None = None) -> str:
    """The whole conversation, to be read by people."""
    lines = [f"# {session.title or 'Session ' + session.id}"]
    for message in messages:
        if message.role != "tool":
            lines.append(f"## {message.role.capitalize()}")
        if message.text:
            lines.append(message.text.strip("\n"))
        lines += [f"**{call.name}**\n\n{_fenced(call.input, 'json', shown_chars)}" for call in message.tool_calls]
        lines += [_fenced(result.content, "", shown_chars) for result in message.tool_results]
        finish = message.finish
        if finish and finish.reason not in ("end_turn", "tool_use"):
            lines.append(f"*({finish.reason}{': ' + finish.message if finish.message else ''})*")
    return "\n\n".join(lines)


def _fenced(text: str, language: str, shown_chars: int | None) -> str:
    """A code block whose fence is longer than any in the text."""
    if shown_chars is not None and len(text) > shown_chars:
        text = f"{text[:shown_chars]}\n… {len(text) - shown_chars} more characters"
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text}\n{fence}"
