"""What `covey nodes` takes, and how it teaches it. Nothing heavy: `--help` must answer at once."""

from __future__ import annotations

import argparse

from covey.cli.undo_options import Command

NODES_EXAMPLES = """\
examples:
  covey nodes --host tcp://a:8790            the nodes of the cluster that a belongs to: any node knows all of them
  covey nodes drain a --host tcp://b:8790    have node a hand its workspaces over, and stop
  covey nodes forget a --host tcp://b:8790   node a is gone and does not come back: strike it off the list

A cluster is several servers on one PostgreSQL (`covey serve --store postgres://…`): any node takes any request, and
each workspace has one owner, which the others pass requests on to. `drain` is what SIGTERM does: turns under way end
first, what waits is started by the next owner, nothing is cancelled. A node that died needs neither: others
take over what it had within seconds. docs/CLUSTER.md says more.

exit codes:
  0 done     1 there is no such node, it is alive (forget), or this server is no node     2 wrong usage     3 no server
"""


def _add_nodes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", nargs="?", choices=("list", "drain", "forget"), default="list", help="default: list")
    parser.add_argument("node", metavar="NAME", nargs="?", help="a node by its name (--node of its `covey serve`)")
    parser.add_argument("--json", action="store_true", help="JSON instead of text")


COMMANDS = {
    "nodes": Command("the nodes of a cluster: list them, have one leave, forget one", NODES_EXAMPLES, _add_nodes)
}
