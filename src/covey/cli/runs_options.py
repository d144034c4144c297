"""What `covey runs` and its actions take."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from covey.cli import option_types
from covey.cli.run_options import add_display

ACTIONS = {
    "list": "the runs of this directory, the newest first, with what they ask (this is the default)",
    "wait": "follow a run to its end: its text on stdout, its requests on the terminal",
    "allow": "allow what a run asks for, without waiting for it",
    "deny": "deny it, with a word to the model if you like; a question is left unanswered",
    "answer": "answer the questions of a run, each with one TEXT",
    "say": "say something to a run: it reads it before its next step, unless it has options of its own",
    "interrupt": "cancel a run, and go on in its session with this instead",
    "cancel": "cancel a run",
}
ID_HELP = "its id, or the beginning or end of it"
ASK_HELP = "the id of what is asked, as `covey runs` shows it, or of the run"

OF_ALL = "those of all directories of the server"

AddShared = Callable[[argparse.ArgumentParser], None]
AddAction = Callable[..., argparse.ArgumentParser]


def add_options(parser: argparse.ArgumentParser, add_shared: AddShared, add_action: AddAction) -> None:
    """`add_shared`: what every action takes; `add_action`: makes the parser of one."""
    _add_all(parser)
    add_everywhere(parser, OF_ALL)
    add_shared(parser)
    parser.set_defaults(quiet=False, verbose=False, raw=False, plain=False, deny=False)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", title="actions")
    for name, help in ACTIONS.items():
        action = add_action(actions, name, help)
        _add_own(action, name)
        add_shared(action)


def _add_all(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help="also the latest 20 that have ended, and how")


def add_everywhere(parser: argparse.ArgumentParser, help: str) -> None:
    parser.add_argument("--everywhere", action="store_true", help=help)


def _add_own(action: argparse.ArgumentParser, name: str) -> None:
    if name == "list":
        _add_all(action)
        add_everywhere(action, OF_ALL)
        return
    if name == "wait":
        help = f"{ID_HELP}; default: the only open one"
        action.add_argument("run_id", metavar="ID", type=option_types.run_id, nargs="?", default=None, help=help)
    elif name in ("allow", "deny", "answer"):
        action.add_argument("run_id", metavar="ID", type=option_types.some_id, help=ASK_HELP)
    else:
        action.add_argument("run_id", metavar="ID", type=option_types.run_id, help=ID_HELP)
    if name == "wait":
        add_display(action)
        action.add_argument(
            "--deny", action="store_true", help="without a terminal: deny what the run asks for, instead of waiting"
        )
    elif name == "allow":
        _add_how(action)
    elif name == "deny":
        action.add_argument("text", metavar="WHY", nargs="*", default=[], help="for the model")
    elif name != "cancel":
        action.add_argument("text", metavar="TEXT", nargs="+")


def _add_how(action: argparse.ArgumentParser) -> None:
    action.set_defaults(how="allow", network=None, unsandboxed=False)
    how = action.add_mutually_exclusive_group()
    for name, help in {
        "session": "the same again in this session, too",
        "always": "always in this directory, by a rule in your config.toml",
        "prefix": "the same, for the command with any further words, where that is offered",
    }.items():
        how.add_argument(f"--{name}", dest="how", action="store_const", const=f"allow_{name}", help=help)
    network = action.add_mutually_exclusive_group()
    network.add_argument(
        "--network", action="store_true", default=None, help="a command: with network; default: if it asks for it"
    )
    network.add_argument(
        "--no-network", dest="network", action="store_false", default=None, help="a command: without network"
    )
    action.add_argument("--unsandboxed", action="store_true", help="a command: without the sandbox")
