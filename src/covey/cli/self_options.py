"""What the commands about Covey itself take: `config`, `logs`, `completion`, `help`."""

from __future__ import annotations

import argparse

from covey.cli import option_types
from covey.cli.undo_options import Command

CONFIG_EXAMPLES = """\
examples:
  covey config                           what is set, and by which file; keys are not shown
  covey config path                      where your own file is
  covey config set model anthropic/claude-opus-5-5
  covey config set limits.cost_per_run 2
  covey config edit                      with $VISUAL or $EDITOR; checked when you are done
  covey config check                     whether all files that count here are right, and a prompt would be taken

`set` takes keys with one plain value of [models], [limits], [retention], [permissions], [server], [notify] and [tui];
`model` is models.large, `small` is models.small. A server that runs takes it up at once. Everything else: `covey config
edit`.

exit codes:
  0 right, or changed     1 something is wrong with a file, or no prompt would be taken     2 wrong usage
"""
LOGS_EXAMPLES = """\
examples:
  covey logs                             the end of the log of your server
  covey logs -f                          and keep printing what is added; Ctrl-C leaves
  covey logs -n 0 -f                     only what is added from now on
  covey logs -n 1000 | grep 4rTdsfL      what became of a run, a session or a workspace

A server that was started for you writes server.log in its data directory; when it has a megabyte it becomes
server.log.1. Of each run it says when it was accepted, when it started and how it ended, never what was said.
`covey serve` writes to stderr instead, unless it has --log-file.

exit codes:
  0 shown     1 there is no log
"""
COMPLETION_EXAMPLES = """\
examples:
  source <(covey completion bash)        in ~/.bashrc
  source <(covey completion zsh)         in ~/.zshrc, after compinit
  covey completion fish > ~/.config/fish/completions/covey.fish

Commands, options, files, and while a server runs also ids of sessions and runs, and names of models.
"""
HELP_EXAMPLES = """\
examples:
  covey help run                         the same as `covey run --help`
  covey help sessions export
  man covey                              all of it, if your system finds the manual of this installation
"""

NODES_EXAMPLES = """\
examples:
  covey nodes --host tcp://a:8790            the nodes of the cluster that a belongs to: any node knows all of them
  covey nodes drain a --host tcp://b:8790    have node a hand its workspaces over, and stop
  covey nodes forget a --host tcp://b:8790   node a is gone and does not come back: strike it off the list

A cluster is several servers on one PostgreSQL (`covey serve --store postgres://…`): any node takes any request, and
each workspace has one owner, which the others pass requests on to. `drain` is what SIGTERM does: turns under way end
first, what waits is started by the next owner, nothing is cancelled. A node that died needs neither: others
take over what it had within seconds.

exit codes:
  0 done     1 there is no such node, it is alive (forget), or this server is no node     2 wrong usage     3 no server
"""


STORE_EXAMPLES = """\
examples:
  covey store migrate postgres://covey@db/covey                      make the tables, or bring them up to this version
  covey store copy sqlite:~/.local/share/covey postgres://covey@db/covey   move what one server has into a cluster
  covey store new-epoch postgres://covey@db/covey                    after a restore from a backup: clients load anew

For the PostgreSQL that several nodes share; one server with SQLite needs none of this. A node migrates by itself when
it starts. copy takes all workspaces or, if anything is wrong, none; the file stays as it is, and its server must be
stopped. new-epoch is for a database that came back with less than it had acknowledged; no node may be running.

exit codes:
  0 done     1 it could not be done     2 wrong usage     3 the store cannot be reached
"""


def _config_action(word: str) -> str:
    """What is nearest to `get` would be `set`, and whoever asks for a value means no change."""
    if word == "get":
        raise argparse.ArgumentTypeError("'get' is not known; `covey config` shows all that is set")
    return word


def _add_config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "action",
        metavar="ACTION",
        type=_config_action,
        nargs="?",
        default="show",
        choices=("show", "path", "check", "edit", "set"),
        help="show (the default), path, check, edit, or set KEY VALUE",
    )
    parser.add_argument("words", metavar="KEY VALUE", nargs="*", help="for set")
    parser.add_argument("--config", metavar="FILE", help="also this file, which wins; default: $COVEY_CONFIG")
    parser.add_argument("--json", action="store_true", help="JSON instead of text; not with edit")


def _add_logs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-f", "--follow", action="store_true", help="keep printing what is added")
    parser.add_argument(
        "-n",
        "--lines",
        metavar="N",
        type=option_types.count_or_none,
        default=50,
        help="so many from the end; default: 50",
    )


def _add_completion(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", metavar="SHELL", nargs="?", choices=("bash", "zsh", "fish"), help="bash, zsh or fish")
    # For the scripts themselves.
    parser.add_argument("--words", choices=("sessions", "runs", "models"), help=argparse.SUPPRESS)


def _add_help(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("words", metavar="COMMAND", nargs="*", help="a command, and perhaps an action of it")


def _add_store(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("migrate", "copy", "new-epoch"), help="what to do")
    parser.add_argument("stores", metavar="STORE", nargs="+", help="postgres://…; copy: sqlite:PATH, then postgres://…")
    parser.add_argument("--json", action="store_true", help="JSON instead of text")


def _add_nodes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", nargs="?", choices=("list", "drain", "forget"), default="list", help="default: list")
    parser.add_argument("node", metavar="NAME", nargs="?", help="a node by its name (--node of its `covey serve`)")
    parser.add_argument("--json", action="store_true", help="JSON instead of text")


COMMANDS = {
    "config": Command("what is configured, and by which file; change it", CONFIG_EXAMPLES, _add_config),
    "logs": Command("what your server has written to its log", LOGS_EXAMPLES, _add_logs),
    "completion": Command("a script that completes commands, options and ids", COMPLETION_EXAMPLES, _add_completion),
    "help": Command("help on a command", HELP_EXAMPLES, _add_help),
}

NODES_COMMANDS = {
    "nodes": Command("the nodes of a cluster: list them, have one leave, forget one", NODES_EXAMPLES, _add_nodes)
}

STORE_COMMANDS = {
    "store": Command("the database that several nodes share: make it, fill it", STORE_EXAMPLES, _add_store)
}
"""They talk to no server."""
