"""The manual page, made from the parser: `python -m covey.cli.manual > docs/covey.1`. A test compares the two."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterable

from covey import __version__
from covey.cli.main import build_parser
from covey.cli.parser import Described, all_commands
from covey.cli.texts import DESCRIPTION, FILES_AND_VARIABLES

WITHOUT_A_COMMAND = """\
Without a command Covey opens the terminal UI on this directory, or on the git repository around it. F1 there shows all
keys; the colours, the keys and more are set under [tui] and [keys] of config.toml.
"""
WIDTH = "80"
"""For the usage lines, which argparse fits to the terminal."""


def page() -> str:
    parser = build_parser()
    lines = [
        f'.TH COVEY 1 "" "Covey {__version__}" "User Commands"',
        ".SH NAME",
        r"covey \- a coding agent that runs as a server",
        ".SH SYNOPSIS",
        ".B covey",
        r"[\fIOPTION\fR ...]",
        ".br",
        ".B covey",
        r"\fICOMMAND\fR [\fIOPTION\fR ...]",
        ".SH DESCRIPTION",
        *_paragraphs(DESCRIPTION),
        ".SH THE TERMINAL UI",
        *_paragraphs(WITHOUT_A_COMMAND),
        *_options(Described((), "", parser).options),
        ".SH COMMANDS",
    ]
    for command in all_commands(parser):
        lines += _command(command)
    lines += [".SH FILES AND VARIABLES", *_verbatim(FILES_AND_VARIABLES), ".SH EXAMPLES", *_verbatim(parser.epilog)]
    return "\n".join(lines) + "\n"


def _command(command: Described) -> list[str]:
    lines = [f".SS {_escaped(' '.join(('covey', *command.words, *map(_argument, command.arguments))))}"]
    lines += _paragraphs(command.parser.description or command.help)
    lines += _options((*command.arguments, *command.options))
    return lines + (_verbatim(command.parser.epilog) if command.parser.epilog else [])


def _options(actions: Iterable[argparse.Action]) -> list[str]:
    taught = (action for action in actions if action.help and "-h" not in action.option_strings)
    return [line for action in taught for line in (".TP", _named(action), _escaped(_help(action)))]


def _argument(action: argparse.Action) -> str:
    name = str(action.metavar or action.dest)
    return {"?": f"[{name}]", "*": f"[{name} ...]", "+": f"{name} ..."}.get(str(action.nargs), name)


def _named(action: argparse.Action) -> str:
    if not action.option_strings:
        return rf"\fI{_escaped(str(action.metavar or action.dest))}\fR"
    choices = "{" + ",".join(map(str, action.choices)) + "}" if action.choices else ""
    value = f" {action.metavar or choices or action.dest.upper()}" if action.nargs != 0 else ""
    return ", ".join(rf"\fB{_escaped(name)}\fR{_escaped(value)}" for name in action.option_strings)


def _help(action: argparse.Action) -> str:
    return (action.help or "").replace("%%", "%")


def _paragraphs(text: str) -> list[str]:
    return [".PP", *(_escaped(line) for line in text.strip().split("\n"))]


def _verbatim(text: str | None) -> list[str]:
    return [".PP", ".nf", *(_escaped(line) for line in (text or "").strip().split("\n")), ".fi"]


def _escaped(text: str) -> str:
    """What troff would take for its own is written so that it is shown."""
    text = re.sub(r"([\\-])", lambda found: r"\e" if found[1] == "\\" else r"\-", text)
    # Without preconv, troff reads bytes: only what is ASCII means the same to it.
    text = re.sub(r"[^\x00-\x7f]", lambda found: rf"\[u{ord(found[0]):04X}]", text)
    return rf"\&{text}" if text.startswith((".", "'")) else text


if __name__ == "__main__":
    os.environ["COLUMNS"] = WIDTH
    print(page(), end="")
