"""`covey mcp login`: a short-lived process that logs in to an MCP server; the server itself only sends the token."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from pathlib import Path

from covey.cli import common, exits
from covey.cli.terminal_text import plain
from covey.config.load import load
from covey.config.schema import ConfigError, McpSettings
from covey.credentials.accounts import CredentialsError
from covey.protocol.paths import default_data_dir


def main(args: argparse.Namespace) -> int:
    if not args.name:
        raise exits.UsageError("login needs the name of a server; see `covey mcp`")
    try:
        settings = _settings(args)
        asyncio.run(_log_in(args, settings))
    except (ConfigError, CredentialsError) as error:
        common.complain(str(error))
        return exits.FAILED
    print(plain(f"Logged in to {args.name}. The token is kept in your data directory, for you alone."))
    return common.reload_servers(args)


def _settings(args: argparse.Namespace) -> McpSettings:
    """Of the user's own entry: a login for a server that a project names has to be wanted by the user."""
    found = load(Path(common.working_directory(args.cwd)), None, os.environ).config.mcp.get(args.name)
    if found is None or not found.url:
        raise ConfigError(f"there is no MCP server {args.name} with a url in your config.toml; see `covey mcp`")
    return found


async def _log_in(args: argparse.Namespace, settings: McpSettings) -> None:
    from covey.credentials.mcp_login import mcp_login
    from covey.credentials.mcp_tokens import keep_grant
    from covey.credentials.oauth import show_in_browser

    async with mcp_login(settings.url, settings.headers, settings.client_id) as login:
        print(
            plain(f"Agree on this page, in a browser on this machine:\n  {login.address}"), file=sys.stderr, flush=True
        )
        if sys.stderr.isatty():
            show_in_browser(login.address, os.environ, Path.cwd())
        grant = await login.grant()
    await asyncio.to_thread(keep_grant, common.data_dir(args) or default_data_dir(), grant)
