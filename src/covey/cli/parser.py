"""The parser of the command line: argparse, with a guess at what was meant; and the tree of its commands."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any, NamedTuple, NoReturn

from covey.cli.exits import USAGE


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Texts keep their lines where those fit the terminal; else prose is filled anew, and each example wrapped."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n\n".join(_fitted(paragraph, width) for paragraph in text.strip("\n").split("\n\n"))


def _fitted(paragraph: str, width: int) -> str:
    lines = paragraph.split("\n")
    if max(map(len, lines)) <= width:
        return paragraph
    if not any(line.startswith(" ") for line in lines):
        lines = [" ".join(lines)]
    return "\n".join(line if len(line) <= width else _wrapped(line, width) for line in lines)


def _wrapped(line: str, width: int) -> str:
    """Further rows are below what stands after a wide gap, such as what a command does."""
    import re
    import textwrap  # both only to show help

    if len(cells := re.split(r" {3,}", line.strip())) > 2:
        return _rows_of(cells, width)
    gap = re.match(r" +\S.*? {2,}(?=\S)", line)
    column = gap.end() if gap and gap.end() <= width * 0.65 else 4 if line.startswith(" ") else 0
    further = " " * column
    return textwrap.fill(line, width, subsequent_indent=further, break_long_words=False, break_on_hyphens=False)


def _rows_of(cells: list[str], width: int) -> str:
    """A list beside each other, such as exit codes: no row breaks in the middle of one, if it fits into a row."""
    rows: list[str] = []
    for cell in cells:
        if rows and len(row := f"{rows[-1]}     {cell}") <= width:
            rows[-1] = row
        else:
            rows += [_wrapped(f"  {cell}", width)]
    return "\n".join(rows)


class Parser(argparse.ArgumentParser):
    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Instead of the list of everything that there is: what is nearest to it, if anything is."""
        if action.choices is None or value in action.choices:
            return
        choices = [str(choice) for choice in action.choices]
        meant = (
            nearest_command(self, str(value))
            if isinstance(action, argparse._SubParsersAction)
            else did_you_mean(str(value), choices)
        )
        hint = meant or f"there is: {', '.join(choices)}"
        if " " in str(value) and "run" in choices:
            hint = 'a prompt comes after `run`: covey run "…"'
        raise argparse.ArgumentError(action, f"{str(value)!r} is not known; {hint}")

    def error(self, message: str) -> NoReturn:
        """What is wrong, and where all options are told: the usage of them all would hide it."""
        from covey.lines.plain_text import plain  # late: most command lines are right

        self.exit(USAGE, plain(f"{self.prog}: {message}\nSee `{self.prog} --help`.\n"))


def did_you_mean(word: str, known: Iterable[str], *, at_most: int = 2) -> str:
    """The question, or '' if nothing is near. The dashes of options are alike, and make none of them more likely."""
    from difflib import get_close_matches  # only needed once something is wrong

    names = {name.lstrip("-"): name for name in known}
    near = [names[each] for each in get_close_matches(word.lstrip("-"), names, n=at_most, cutoff=0.6)]
    return f"did you mean {' or '.join(near)}?" if near else ""


def nearest_command(parser: argparse.ArgumentParser, name: str) -> str:
    """Which command may have been meant by these words. Some look for an action without the command that has it."""
    known = [" ".join(command.words) for command in all_commands(parser)]
    named_so = [f"`{parser.prog} {each}`" for each in known if each.endswith(f" {name}")]
    return f"did you mean {' or '.join(named_so)}?" if named_so else did_you_mean(name, known)


def took(parser: argparse.ArgumentParser, args: argparse.Namespace, more: list[str]) -> bool:
    """Whether words that argparse has left belong to the last argument of a command; they are added to it.

    argparse fills arguments that may be left out, or repeated, only with what stands before the next option:
    `covey run fix --yolo the bug`, `covey jobs output --json job-1`.
    """
    arguments = [action for action in parser._actions if not action.option_strings]
    if not arguments or any(word.startswith("-") for word in more):
        return False
    last = arguments[-1]
    if last.nargs == "*":
        setattr(args, last.dest, [*getattr(args, last.dest), *more])
        return True
    is_free = last.nargs == "?" and not (last.choices or last.type) and getattr(args, last.dest) == last.default
    if is_free and len(more) == 1:
        setattr(args, last.dest, more[0])
    return is_free and len(more) == 1


def unknown(parser: argparse.ArgumentParser, words: list[str]) -> str:
    """What to say about words that no option or argument takes."""
    names = [word.partition("=")[0] for word in words if word.startswith("-")]
    hints = [did_you_mean(name, parser._option_string_actions, at_most=1) for name in names]
    return " ".join((f"unrecognized arguments: {' '.join(words)}", *(f"({hint})" for hint in hints if hint)))


class Described(NamedTuple):
    """A command, or an action of one, as the parser describes it."""

    words: tuple[str, ...]
    """As it is typed after `covey`."""
    help: str
    parser: argparse.ArgumentParser

    @property
    def options(self) -> list[argparse.Action]:
        return [one for one in self.parser._actions if one.option_strings and one.help != argparse.SUPPRESS]

    @property
    def arguments(self) -> list[argparse.Action]:
        actions = self.parser._actions
        return [one for one in actions if not one.option_strings and not isinstance(one, argparse._SubParsersAction)]

    @property
    def names(self) -> list[str]:
        """Of the commands, or actions, that may come next."""
        return [command.words[-1] for command in commands(self.parser, self.words)]


def commands(parser: argparse.ArgumentParser, words: tuple[str, ...] = ()) -> list[Described]:
    """The commands right below a parser, in their order."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {choice.dest: choice.help or "" for choice in action._choices_actions}
            return [Described((*words, name), helps[name], child) for name, child in action.choices.items()]
    return []


def all_commands(parser: argparse.ArgumentParser) -> list[Described]:
    """Every command, each with its actions after it."""
    return [each for one in commands(parser) for each in (one, *commands(one.parser, one.words))]
