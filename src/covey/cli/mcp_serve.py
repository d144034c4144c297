"""`covey mcp serve`: lets other agents use Covey. Without `--http`, stdin and stdout belong to the agent."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from pathlib import Path

from covey.cli import common, exits
from covey.client.client import Client
from covey.mcp_server.service import McpService
from covey.protocol.paths import Address, BadAddress, default_data_dir


def main(args: argparse.Namespace) -> int:
    address = _address(args.http) if args.http is not None else None
    return common.run(_serve(args, address))


def _address(text: str) -> Address:
    """Only on this machine: whoever comes in from elsewhere could do all that you can."""
    from covey.server.access import is_loopback

    try:
        address = Address.parse(text if "://" in text else f"tcp://{text}")
    except BadAddress as error:
        raise exits.UsageError(str(error)) from None
    if address.is_unix or not is_loopback(address.host):
        raise exits.UsageError(f"{text} is not on this machine: use 127.0.0.1:PORT, and a tunnel from elsewhere")
    return address


async def _serve(args: argparse.Namespace, address: Address | None) -> int:
    async with common.connected(args, kind="api", name="an agent over MCP") as client:
        service = McpService(client, common.working_directory(args.cwd))
        if address:
            await _serve_http(args, client, service, address)
        else:
            from covey.mcp_server.stdio import serve_stdio

            await serve_stdio(service)
    return exits.OK


def _token(args: argparse.Namespace) -> str:
    """The one that a server on TCP would have; made, if there is none."""
    from covey.server.token import find_token

    named = Path(args.token_file).expanduser() if args.token_file else None
    return find_token(common.data_dir(args) or default_data_dir(), named, os.environ)


async def _serve_http(args: argparse.Namespace, client: Client, service: McpService, address: Address) -> None:
    from covey.mcp_server.http import PATH, HttpApp
    from covey.server.access import Access
    from covey.server.listener import CannotServe, bound_address, listening
    from covey.server.serving import Serving

    try:
        token = _token(args)
        with listening(address) as listener:
            serving = Serving(HttpApp(service, Access(token).check), listener)
            print(f"covey: MCP at {bound_address(address, listener.socket).url}{PATH}", flush=True)
            stopping = asyncio.Event()
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                asyncio.get_running_loop().add_signal_handler(number, stopping.set)
            await stopping.wait()
            service.is_leaving = True
            await serving.close()
    except CannotServe as error:
        print(f"covey mcp: {error}", file=sys.stderr)
        raise SystemExit(exits.FAILED) from None
