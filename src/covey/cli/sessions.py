"""`covey sessions`: list, show, rename, delete and export the sessions of a directory."""

from __future__ import annotations

import argparse
import sys
from datetime import datetime
from typing import Any

from covey.cli import common, exits
from covey.cli.ids import find_session
from covey.cli.terminal_text import json_text, one_line, plain
from covey.client.client import Client
from covey.protocol.messages import Message, Session, ShellCommandPart
from covey.protocol.requests import UpdateSession

SHOWN_CHARS = 2000
"""What `show` shows of a tool's output: `export` has all of it."""


def main(args: argparse.Namespace) -> int:
    return common.run(_sessions(args))


async def _sessions(args: argparse.Namespace) -> int:
    async with common.connected(args) as client:
        workspace_id = (await common.join(client, args.cwd)).id
        if args.action in (None, "list"):
            return await _list(client, workspace_id, args)
        session = await find_session(client, workspace_id, args.session)
        if args.action in ("rename", "model", "mode"):
            return await _change(client, workspace_id, session, args)
        if args.action == "delete":
            return await _delete(client, workspace_id, session, args)
        return await _show(client, workspace_id, session, args)


async def _list(client: Client, workspace_id: str, args: argparse.Namespace) -> int:
    found = await client.sessions(workspace_id, children=args.json)
    listed = sorted(found, key=lambda s: (s.updated_at, s.id), reverse=True)
    shown = listed[: args.limit]
    if args.json:
        _print_json(shown)
    for session in () if args.json else shown:
        print(_line(session))
    if len(shown) < len(listed):
        sys.stdout.flush()  # the note about what is left out comes below the list
        print(f"{len(listed) - len(shown)} more: see them with a higher --limit, or without.", file=sys.stderr)
    elif not listed and not args.json:
        print("There are no sessions in this directory yet.", file=sys.stderr)
    return exits.OK


async def _change(client: Client, workspace_id: str, session: Session, args: argparse.Namespace) -> int:
    if args.action == "rename":
        change = UpdateSession(title=" ".join(args.title))
    elif args.action == "mode":
        change = UpdateSession(mode=args.mode)
    else:
        change = UpdateSession(model=args.model or None)
    changed = await client.update_session(workspace_id, session.id, change)
    if args.json:
        _print_json(changed)
    else:
        print(_line(changed))
    return exits.OK


async def _delete(client: Client, workspace_id: str, session: Session, args: argparse.Namespace) -> int:
    await client.delete_session(workspace_id, session.id)
    if args.json:
        _print_json({"deleted": session.id})
    else:
        print(f"Session {session.id} is deleted.", file=sys.stderr)
    return exits.OK


async def _show(client: Client, workspace_id: str, session: Session, args: argparse.Namespace) -> int:
    messages = await client.messages(workspace_id, session.id)
    if args.json:
        _print_json({"session": session, "messages": messages})
    elif args.action == "export":
        print(to_markdown(session, messages))
    else:
        text = to_markdown(session, messages, shown_chars=SHOWN_CHARS)
        print(text)
    return exits.OK


def _line(session: Session) -> str:
    when = datetime.fromtimestamp(session.updated_at).strftime("%Y-%m-%d %H:%M")
    busy = " (busy)" if session.is_busy else ""
    model = f" [{session.model}]" if session.model else ""
    title = one_line(session.title) or "untitled"
    return plain(f"{session.id}  {when}  {session.message_count:4} messages  {title}{model}{busy}")


def _print_json(value: Any) -> None:
    print(json_text(value))


def to_markdown(session: Session, messages: tuple[Message, ...], shown_chars: int | None = None) -> str:
    """The whole conversation, to be read by people."""
    lines = [f"# {one_line(session.title) or 'Session ' + session.id}"]
    for message in messages:
        if message.role != "tool":
            lines.append(f"## {message.role.capitalize()}")
        if message.text:
            lines.append(message.text.strip("\n"))
        lines += [
            f"**{one_line(call.name)}**\n\n{_fenced(call.input, 'json', shown_chars)}" for call in message.tool_calls
        ]
        lines += [_fenced(result.content, "", shown_chars) for result in message.tool_results]
        commands = [part.data for part in message.parts if isinstance(part, ShellCommandPart)]
        lines += [_fenced(f"$ {c.command}\n{c.output}".rstrip("\n"), "", shown_chars) for c in commands]
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
