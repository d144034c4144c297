"""A shell command line → every simple command that would run, wherever it stands. Pure, bounded, one pass.

The grammar is that of bash, which the `bash` tool uses. Only commands and what they would work on are kept; who runs
first and under which condition is not: whatever may run, counts. `tests/permissions/fuzz_shell.py` compares this with
what a real bash runs. What is not certain is `Unparsed`, never a guess.
"""

from __future__ import annotations

import re
from dataclasses import replace

from covey.permissions.shell_commands import Line, Redirect, SimpleCommand, Unparsed
from covey.permissions.shell_grammar import Grammar
from covey.permissions.shell_output import may_print_patterns
from covey.permissions.shell_words import UNKNOWN, CannotRead, Word, WordKind
from covey.permissions.shell_wrappers import Inner, unwrap

__all__ = ["Line", "Redirect", "SimpleCommand", "Unparsed", "parse"]

MAX_LENGTH = 32_768
"""Characters. Longer ones are programs: somebody should look at them."""
MAX_COMMANDS = 300
"""More than that is a program, too."""
_LEVELS_PER_TEXT = 5
"""A text within a text, as for `sh -c`, is parsed again, so it counts for more than a bracket does."""
_LONG_TEXT = 2_000
"""And a long one for one level more, for each so many characters: else it would be read too often."""

_NEVER_READ = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\xa0\u1680\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff\ud800-\udfff]"
    r"|[$&|;<>(){}`!]\\\n|\\\n[$&|;<>(){}`!#]"
)
"""Control characters and blanks that shells and screens treat differently, and operators written on two lines."""


def parse(text: str) -> Line | Unparsed:
    """All commands of a line. Never raises."""
    if len(text) > MAX_LENGTH:
        return Unparsed("it is too long")
    parser = _Parser(text)
    try:
        parser.whole()
    except CannotRead as error:
        return Unparsed(str(error))
    return Line(tuple(parser.commands), frozenset(parser.oddities))


class _Parser(Grammar):
    """The grammar, and commands that are seen through: what `env`, `sh -c` and their like run, runs too."""

    def __init__(self, text: str, depth: int = 0) -> None:
        super().__init__(text, depth)
        self._waiting: list[int] = []
        """Commands that may read a here-document which is yet to come."""

    def whole(self) -> None:
        if found := _NEVER_READ.search(self.text):
            raise CannotRead(f"{found[0]!r}")
        super().whole()

    def note(self, command: SimpleCommand) -> None:
        targets = (redirect.target for redirect in command.redirects)
        self.hand_over((*command.words, *(value for _, value in command.assigns), *targets))
        self._append(replace(command, fed=self._fed or _has_input(command), looped=self._looped))
        if self._bodies:  # its own here-document, or that of a command before it in the pipe
            self._waiting.append(len(self.commands) - 1)
        else:
            self._see_through(len(self.commands) - 1)

    def _read_bodies(self) -> None:
        super()._read_bodies()
        waiting, self._waiting = self._waiting, []
        for index in waiting:
            self._see_through(index)

    def commands_of(self, text: str) -> bool:
        inner = self._inside(text)
        self._adopt(inner, -1)
        return may_print_patterns(inner.commands)

    def _expanded(self, body: str) -> Word:
        if "\\\n" in body and ("$" in body or "`" in body):  # lines are joined first, also inside of quotes
            raise CannotRead("a line that goes on in a here-document")
        inner = _Parser(body, self.depth + 1)
        word = inner.body()
        inner.expect_all_judged()
        self._adopt(inner, -1)
        return word

    def _inside(self, text: str) -> _Parser:
        inner = _Parser(text, self.depth + _LEVELS_PER_TEXT + len(text) // _LONG_TEXT)
        inner._looped, inner._fed = self._looped, self._fed
        inner.whole()
        return inner

    def _adopt(self, inner: Grammar, parent: int) -> None:
        """Take over what another parser found; what the shell itself runs there is run by `parent` here."""
        offset = len(self.commands)
        for command in inner.commands:
            self._append(replace(command, parent=command.parent + offset if command.parent >= 0 else parent))
        self.oddities |= inner.oddities

    def _append(self, command: SimpleCommand) -> None:
        if len(self.commands) >= MAX_COMMANDS:
            raise CannotRead("too many commands")
        self.commands.append(command)

    def _see_through(self, index: int) -> None:
        command = self.commands[index]
        self.deeper()
        fed_text = _input_text(command) or (self._printed_before(index) if command.fed else None)
        for inner in unwrap(command.words, fed_text, fed=command.fed):
            if inner.words:
                program, *arguments = inner.words
                words = (replace(program, bare=False), *arguments)  # only a shell knows keywords
                self._append(replace(command, words=words, assigns=(), redirects=(), parent=index))
                self._see_through(len(self.commands) - 1)
            else:
                self._read_text(inner, index)
                if not all(word.known for word in command.words):
                    self._append(replace(command, words=(UNKNOWN,), assigns=(), redirects=(), parent=index))
        self.depth -= 1

    def _printed_before(self, index: int) -> str | None:
        """What the command before a pipe prints, if it says so; `cat` and `tee` pass on what they read."""
        while self.commands[index].parent >= 0:  # `sudo sh` reads what `sudo` gets
            index = self.commands[index].parent
        for command in reversed(self.commands[:index]):
            if command.is_compound:
                continue
            if command.name in ("echo", "printf"):
                return " ".join(word.text for word in command.words[1:])
            if command.name not in ("cat", "tee") or (text := _input_text(command)) is not None:
                return text if command.name in ("cat", "tee") else None
        return None

    def _read_text(self, inner: Inner, index: int) -> None:
        try:
            self._adopt(self._inside(inner.text), index)
        except CannotRead:
            self._append(replace(self.commands[index], words=(Word(inner.text, WordKind.UNKNOWN),), parent=index))


def _has_input(command: SimpleCommand) -> bool:
    return any(redirect.feeds for redirect in command.redirects)


def _input_text(command: SimpleCommand) -> str | None:
    """What a here-document or a here-string feeds to the command."""
    return next((redirect.target.text for redirect in command.redirects if redirect.op.startswith("<<")), None)
