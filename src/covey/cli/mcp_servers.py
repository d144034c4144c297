"""`covey mcp list | add | remove | approve | import | logs`: the MCP servers that the agent uses."""

from __future__ import annotations

import argparse
import asyncio
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from covey.cli import common, exits
from covey.cli.approval_text import approval_text, in_short, says_yes
from covey.cli.listing import tell
from covey.cli.status import extension_line
from covey.cli.terminal_text import json_text, plain
from covey.client.client import Client
from covey.config.mcp_edit import add_mcp_server, remove_mcp_server
from covey.config.mcp_import import PLACES, read_foreign
from covey.config.schema import ConfigError
from covey.lines.plain_text import visible
from covey.protocol.extensions import ExtensionView

STARTS_WITHIN_S = 40.0
"""Longer than a server may take to start."""
LOOK_S = 0.2


def main(args: argparse.Namespace) -> int:
    needs_name = {"add", "remove", "logs"}
    if args.action in needs_name and not args.name:
        raise exits.UsageError(f"{args.action} needs the name of a server; see `covey mcp --help`")
    try:
        here = {"add": _add, "remove": _remove, "import": _import}.get(args.action)
        return here(args) if here else common.run(_ask_server(args))
    except ConfigError as error:
        common.complain(error.message)
        return exits.FAILED


def _here(args: argparse.Namespace) -> Path | None:
    return Path(common.working_directory(args.cwd)) if args.here else None


def _add(args: argparse.Namespace) -> int:
    if bool(args.command_line) == bool(args.url):
        raise exits.UsageError("give either a command after -- or a --url")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}", args.name):
        raise exits.UsageError("a name has letters, digits, dashes and underscores, 32 at most")
    entry: dict[str, Any] = {}
    if args.command_line:
        entry["command"], *words = args.command_line
        entry |= {"args": words} if words else {}
    else:
        entry["url"] = args.url
    entry |= {"env": _pairs(args.env, "--env")} if args.env else {}
    entry |= {"headers": _pairs(args.header, "--header")} if args.header else {}
    entry |= {"reads": args.reads} if args.reads else {}
    path = add_mcp_server(os.environ, args.name, entry, _here(args))
    tell(f"{args.name} is in {path} now. `covey mcp approve {args.name}` shows its tools.")
    return common.reload_servers(args)


def _pairs(texts: Sequence[str], option: str) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts]
    if wrong := next((name for name, equals, _ in pairs if not name or not equals), None):
        raise exits.UsageError(f"{option} {wrong}: expected NAME=VALUE")
    return {name.strip(): value.strip() for name, _, value in pairs}


def _remove(args: argparse.Namespace) -> int:
    directory = Path(common.working_directory(args.cwd))
    places = (directory,) if args.here else (None, directory)
    removed = [remove_mcp_server(os.environ, args.name, place) for place in places]
    if not any(removed):
        common.complain(f"there is no MCP server {visible(args.name)} in your config.toml; see `covey mcp`")
        return exits.FAILED
    tell(f"{args.name} is no longer in your config.toml.")
    return common.reload_servers(args)


def _import(args: argparse.Namespace) -> int:
    """Into the user's own file, for this directory: so that what was looked at is what counts."""
    root = Path(common.working_directory(args.cwd))
    path = Path(args.name) if args.name else next((root / name for name in PLACES if (root / name).exists()), None)
    if path is None:
        raise exits.UsageError(f"there is none of {', '.join(PLACES)} here: name a file")
    found = read_foreign(path)
    for name, entry in found.entries.items():
        try:
            add_mcp_server(os.environ, name, entry, root)
        except ConfigError as error:
            found.left_out.append(f"{name}: {error.message}")
        else:
            words = entry.get("url") or " ".join((entry["command"], *entry.get("args", ())))
            tell(f"taken over: {name}  {words}")
    for line in found.left_out:
        common.complain(f"not taken over: {visible(line)}")
    common.note("`covey mcp approve` shows their tools. They hold in this directory alone.")
    return common.reload_servers(args)


async def _ask_server(args: argparse.Namespace) -> int:
    async with common.connected(args) as client:
        workspace = await common.join(client, args.cwd)
        if args.action == "approve":
            return await _approve(client, workspace.id, args)
        if args.action == "logs":
            found = await client.extension(workspace.id, "mcp", args.name)
            print(plain((found.log or "").rstrip("\n")) or "It has written nothing.")
            return exits.OK
        servers = [view for view in await client.extensions(workspace.id) if view.kind == "mcp"]
        _show(servers, args)
    return exits.OK


def _show(servers: Sequence[ExtensionView], args: argparse.Namespace) -> None:
    if args.json:
        print(json_text(list(servers)))
        return
    if not servers:
        common.note("There are no MCP servers. `covey mcp add NAME -- COMMAND` adds one.")
    for server in servers:
        tell(extension_line(server))
        if server.tools:
            tell(f"  {', '.join(server.tools)}")
        for line in (*(f"withheld: {name}" for name in server.withheld), *server.left_out):
            tell(f"  {line}")


async def _approve(client: Client, workspace_id: str, args: argparse.Namespace) -> int:
    """Each thing that waits, one after the other; an approved entry is started, and then has tools to show."""
    answered: set[str] = set()
    left = 0
    while True:
        await _settled(client, workspace_id, args.name)
        waiting = [
            request
            for request in await client.approvals(workspace_id)
            if request.kind == "mcp" and request.name == (args.name or request.name) and request.id not in answered
        ]
        if not waiting:
            break
        for request in waiting:
            answered.add(request.id)
            if args.yes:
                tell(approval_text(request))
            if args.yes or says_yes(request):
                await client.answer_approval(workspace_id, request.id, approve=True)
                tell(f"Approved: {in_short(request)}")
            else:
                left += 1
                common.complain(f"not approved: {in_short(request)}")
    servers = [view for view in await client.extensions(workspace_id) if view.name == (args.name or view.name)]
    _show([view for view in servers if view.kind == "mcp"], args)
    if args.name and not servers:
        common.complain(f"there is no MCP server {visible(args.name)} here; see `covey mcp`")
    failed = any(view.state in ("failed", "needs_login") for view in servers)
    return exits.FAILED if left or failed or (args.name and not servers) else exits.OK


async def _settled(client: Client, workspace_id: str, name: str | None) -> None:
    """Until none of them is starting any more."""
    for _ in range(int(STARTS_WITHIN_S / LOOK_S)):
        views = await client.extensions(workspace_id)
        if not any(
            view.kind == "mcp" and view.state == "starting" and view.name == (name or view.name) for view in views
        ):
            return
        await asyncio.sleep(LOOK_S)
