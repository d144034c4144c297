"""`covey nodes`: the nodes of a cluster, as any of them knows them. Never starts a server."""

from __future__ import annotations

import argparse
import sys

from covey.cli import common, exits
from covey.cli.terminal_text import json_text, plain
from covey.client.client import Client
from covey.protocol.requests import NodeView

NO_CLUSTER = "This server is no node of a cluster. `covey help serve` says how to run several on one PostgreSQL."


def main(args: argparse.Namespace) -> int:
    if args.action == "list" and args.node:
        raise exits.UsageError("list takes no name; did you mean `covey nodes drain`?")
    if args.action != "list" and not args.node:
        raise exits.UsageError(f"{args.action} needs the name of a node; see `covey nodes`")
    return common.run(_nodes(args))


async def _nodes(args: argparse.Namespace) -> int:
    async with common.connected(args, autostart=False) as client:
        if args.action == "drain":
            return await _drain(client, args)
        if args.action == "forget":
            await client.forget_node(args.node)
            return exits.OK
        return _list(await client.nodes(), args)


async def _drain(client: Client, args: argparse.Namespace) -> int:
    await client.drain_node(args.node)
    common.complain(
        f"{args.node} hands its workspaces over, and stops when the turns under way have ended: see `covey nodes`."
    )
    return exits.OK


def _list(nodes: tuple[NodeView, ...], args: argparse.Namespace) -> int:
    if args.json:
        print(json_text(nodes))
    elif not nodes:
        print(NO_CLUSTER, file=sys.stderr)
    else:
        width = max(len(node.name) for node in nodes)
        for node in nodes:
            print(plain(_line(node, width)))
    return exits.OK if nodes else exits.FAILED


def _line(node: NodeView, width: int) -> str:
    count = f"{node.workspaces} workspace{'' if node.workspaces == 1 else 's'}"
    here = "  (asked)" if node.is_asked else ""
    return f"{node.name:{width}}  {node.state:8}  {count:15}  {node.address}{here}"
