"""A command that was understood is run: with streams that can be written to, and an exit code for whatever ends it."""

from __future__ import annotations

import argparse
import importlib
import io
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType

from covey.cli import exits


def words(argv: Sequence[str] | None) -> list[str]:
    """The command line. Bytes that are no text would come as half characters, which cannot be sent."""
    return [os.fsencode(word).decode("utf-8", "replace") for word in (sys.argv[1:] if argv is None else argv)]


def run(args: argparse.Namespace) -> int:
    _prepare_streams()
    _take_variables(args)
    try:
        return int(importlib.import_module(f"covey.cli.{args.command}").main(args))
    except KeyboardInterrupt:
        return exits.STOPPED
    except exits.CommandFailed as failure:
        return _failed(args, failure)
    except BrokenPipeError:
        return exits.BROKEN_PIPE
    except OSError as error:
        return _failed(args, exits.CommandFailed(f"{_name(args)}: {error}"))


@contextmanager
def stopped_by_signals(on_first: Callable[[], object], on_second: Callable[[], None]) -> Iterator[None]:
    """The first Ctrl-C or SIGTERM calls `on_first`; the second leaves at once, whatever is going on."""
    seen = 0

    def handler(number: int, frame: FrameType | None) -> None:
        nonlocal seen
        seen += 1
        if seen > 1:
            signal.signal(number, signal.SIG_DFL)  # should nobody take our last words, the third ends it
            with suppress(Exception):
                on_second()
            os._exit(exits.STOPPED)
        on_first()

    before = {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def flushed(exit_code: int) -> int:
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


def _failed(args: argparse.Namespace, failure: exits.CommandFailed) -> int:
    """Say why: on stderr for people, and for whoever wants JSON as the one object that they get in any case."""
    from covey.cli.screen import Screen  # late: most commands end well
    from covey.cli.terminal_text import json_text

    screen = Screen(sys.stderr, quiet=False, shares_terminal=False)
    if isinstance(failure, exits.UsageError):
        screen.report(f"{_name(args)}: {failure}")
    else:
        screen.warn(str(failure))
    if getattr(args, "json", False) and not failure.is_written:
        print(json_text({"error": str(failure), "exit_code": failure.exit_code}))
    return failure.exit_code


def _name(args: argparse.Namespace) -> str:
    """What was called, for complaints."""
    return "covey" if args.command == "tui" else f"covey {args.command}"


def _take_variables(args: argparse.Namespace) -> None:
    """What the environment says counts where no option does. A data directory on the command line means its server."""
    if args.command != "serve" and not getattr(args, "data_dir", None) and not getattr(args, "host", None):
        args.host = os.environ.get("COVEY_HOST") or None
    if not getattr(args, "config", None):
        args.config = os.environ.get("COVEY_CONFIG") or None


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
                from covey.cli.terminal_text import TerminalStream  # late: many commands print nothing to a terminal

                setattr(sys, name, TerminalStream(stream))
