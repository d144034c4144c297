"""What stands between and after the words of a command: blanks, comments, redirections and here-documents."""

from __future__ import annotations

import re
from dataclasses import replace

from covey.permissions.shell_commands import Redirect, SimpleCommand
from covey.permissions.shell_words import UNKNOWN, CannotRead, Scanner, Word, literal

_BLANK = re.compile(r"(?:[ \t]|\\\n)+")
_REDIRECT = re.compile(r"[0-9]*(<<<|<<-|<<|<&|<>|<(?!\()|>>|>\||>&|>(?!\())|(&>>|&>)")
_DELIMITER = re.compile(r"(?:[A-Za-z0-9_.+@%:-]|'[^'\"\\\n]*'|\"[^\"'\\$`\n]*\"|\\[A-Za-z0-9_.+-])+(?=[\s;&|<>()]|\Z)")


class Redirections(Scanner):
    """A scanner that also reads redirections, and here-documents when their line has ended."""

    def __init__(self, text: str, depth: int = 0) -> None:
        super().__init__(text, depth)
        self.commands: list[SimpleCommand] = []
        self.oddities: set[str] = set()
        self._bodies: list[tuple[Redirect, str, bool]] = []
        """Here-documents that were announced: where they go, what ends them, and whether they are taken literally."""
        self._announced = self._separated = 0
        """How many here-documents, and how many `;` and `&`, were read so far."""
        self._fed = False
        self._looped = False

    def note(self, command: SimpleCommand) -> None:
        """A command was read."""
        raise NotImplementedError

    def _word(self) -> Word:
        """A word that must be there."""
        start = self.at
        word = self.word()
        if self.at == start:
            raise CannotRead("an operator where a word should be")
        return word

    def _redirections(self, begin: int) -> None:
        """Those after a compound command, whose commands have been noted from `begin` on."""
        redirects: list[Redirect] = []
        self.skip_blanks()
        while self._redirection(redirects):
            self.skip_blanks()
        if redirects:
            self.note(SimpleCommand((), (), tuple(redirects)))
        if any(redirect.feeds for redirect in redirects):
            self.commands[begin:] = [replace(command, fed=True) for command in self.commands[begin:]]

    def _redirection(self, redirects: list[Redirect]) -> bool:
        found = _REDIRECT.match(self.text, self.at)
        if found is None:
            return False
        if found[0][:2].isdigit():
            raise CannotRead("a file descriptor above 9")  # which other shells take for a word
        self.at = found.end()
        self.skip_blanks()
        operator = found[1] or found[2]
        if operator not in ("<<", "<<-"):
            target = self._word()
            if operator in (">&", "<&") and target.text[:1] == "-" != target.text:
                raise CannotRead("words after '>&-'")
            redirects.append(Redirect(operator, target))
            return True
        written = self.take(_DELIMITER)
        if not written:
            raise CannotRead("an unusual here-document")
        redirects.append(Redirect(operator, UNKNOWN))
        delimiter = re.sub(r"['\"\\]", "", written)
        self._bodies.append((redirects[-1], delimiter, delimiter != written))
        self.awaiting_bodies = True
        self._announced += 1
        return True

    def _read_bodies(self) -> None:
        """The here-documents that begin after the line end that was just passed."""
        bodies, self._bodies = self._bodies, []
        self.awaiting_bodies = False
        for redirect, delimiter, as_it_is in bodies:
            body = self._body_until(delimiter, tabs=redirect.op == "<<-", joins=not as_it_is)
            if as_it_is:
                redirect.target = literal(body)
            else:
                redirect.target = self._expanded(body)

    def _body_until(self, delimiter: str, *, tabs: bool, joins: bool) -> str:
        start, joined, before = self.at, False, ""
        while self.at < len(self.text):
            end = self.text.find("\n", self.at)
            end = len(self.text) if end < 0 else end
            line, begin = self.text[self.at : end], self.at
            self.at = end + 1
            if not joined and (line.lstrip("\t") if tabs else line) == delimiter:
                self.at = min(end + 1, len(self.text))
                return self.text[start:begin]
            whole = (before + line).lstrip("\t")
            if (joined and whole == delimiter) or (whole.startswith(delimiter) and ")" in whole):
                raise CannotRead("what may end a here-document")  # lines that are joined do, and `E)` does in `$(…)`
            joined = joins and (len(line) - len(line.rstrip("\\"))) % 2 == 1
            before = before + line[:-1] if joined else ""
        raise CannotRead("a here-document without its end")

    def _expanded(self, body: str) -> Word:
        raise NotImplementedError

    # ── between words ──

    def skip_blanks(self) -> None:
        """Blanks, and a comment, which ends before the end of its line."""
        blank = self.take(_BLANK)
        if "\n" in blank:
            self.join_lines()
        if self.looking_at("#"):
            end = self.text.find("\n", self.at)
            self.at = len(self.text) if end < 0 else end

    def skip_lines(self) -> None:
        self.skip_blanks()
        while self.looking_at("\n"):
            self.at += 1
            if self._bodies:
                self._read_bodies()
            self.skip_blanks()
