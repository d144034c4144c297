"""`covey mcp`: what has to do with the Model Context Protocol."""

from __future__ import annotations

import argparse


def main(args: argparse.Namespace) -> int:
    if args.action == "serve":
        from covey.cli import mcp_serve

        return mcp_serve.main(args)
    if args.action == "login":
        from covey.cli import mcp_login

        return mcp_login.main(args)
    from covey.cli import mcp_servers

    return mcp_servers.main(args)
