"""`covey mcp login`: a short-lived process that logs in to an MCP server; the server itself only sends the token."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from covey.cli import common, exits
from covey.cli.listing import tell
from covey.cli.terminal_text import plain
from covey.config.load import load
from covey.config.schema import ConfigError, McpSettings
from covey.credentials.accounts import CredentialsError
from covey.protocol.paths import default_data_dir

if TYPE_CHECKING:
    from covey.credentials.mcp_login import ClientIdentity
    from covey.credentials.mcp_tokens import McpGrant


def main(args: argparse.Namespace) -> int:
    if not args.name:
        raise exits.UsageError("login needs the name of a server; see `covey mcp`")
    try:
        settings = _settings(args)
        asyncio.run(_log_in(args, settings))
    except (ConfigError, CredentialsError) as error:
        common.complain(str(error))
        return exits.FAILED
    tell(f"Logged in to {args.name}. The token is kept in your data directory, for you alone.")
    return common.reload_servers(args)


def _settings(args: argparse.Namespace) -> McpSettings:
    """Of the user's own entry: a login for a server that a project names has to be wanted by the user."""
    found = load(Path(common.working_directory(args.cwd)), None, os.environ).config.mcp.get(args.name)
    if found is None or not found.url:
        raise ConfigError(f"there is no MCP server {args.name} with a url in your config.toml; see `covey mcp`")
    return found


async def _log_in(args: argparse.Namespace, settings: McpSettings) -> None:
    from covey.credentials.mcp_login import ClientIdentity, machine_login
    from covey.credentials.mcp_tokens import find_grant, keep_grant, united

    data_dir = common.data_dir(args) or default_data_dir()
    before = await asyncio.to_thread(find_grant, data_dir, settings.url)
    further = united(before.scope, before.further) if before and before.further else ""
    identity = ClientIdentity(settings.client_id, settings.client_secret)
    if settings.login == "client_credentials":
        grant = await machine_login(settings.url, settings.headers, identity, further)
    else:
        grant = await _agreed(settings, identity, further)
    await asyncio.to_thread(keep_grant, data_dir, grant)


async def _agreed(settings: McpSettings, identity: ClientIdentity, further: str) -> McpGrant:
    """What somebody agrees to in a browser."""
    from covey.credentials.mcp_login import mcp_login
    from covey.credentials.oauth import show_in_browser

    async with mcp_login(settings.url, settings.headers, identity, further) as login:
        print(
            plain(f"Agree on this page, in a browser on this machine:\n  {login.address}"), file=sys.stderr, flush=True
        )
        if sys.stderr.isatty():
            show_in_browser(login.address, os.environ, Path.cwd())
        return await login.grant()
