"""Words of a shell command line: quotes are taken off, and what only a running shell can know is marked as such.

The scanner follows bash. Wherever it is not certain that bash would read the text in the same way (and other shells
differ), it raises `CannotRead` instead of guessing: what cannot be read is asked about. It reads each character once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum

MAX_DEPTH = 30
"""Nested constructs. People write three; Python's own stack is far from full at this many."""


class CannotRead(Exception):
    """The text is not certain to mean to a shell what it would mean to us."""


class WordKind(IntEnum):
    """How much of a word is known. A word is of the highest kind among its pieces."""

    LITERAL = 0
    """The text is the value."""
    NUMBER = 1
    """Some digits are not known: an exit code, or a sum."""
    GLOB = 2
    """Names of files that fit the text, or the text itself; or a file that was found."""
    OUTPUT = 3
    """Holds what other commands print. Those are commands of the line themselves."""
    UNKNOWN = 4
    """Holds a variable, or may become several words."""


@dataclass(frozen=True, slots=True)
class Word:
    text: str
    """Without quotes; a piece that is not known is left as it was written."""
    kind: WordKind = WordKind.LITERAL
    bare: bool = True
    """Written without any quotes: only such a word is a keyword."""
    head: str = ""
    """The literal beginning: all of `text` if it is literal."""
    at: int = field(default=-1, compare=False)
    """Where it was read; -1: it stands in no text."""

    @property
    def known(self) -> bool:
        return self.kind is WordKind.LITERAL

    @property
    def is_one_path(self) -> bool:
        """A file that `find` found: which one is not known, but it stays one word. A pattern may become several."""
        return self.kind is WordKind.GLOB and self.head == self.text


def literal(text: str) -> Word:
    return Word(text, head=text)


UNKNOWN = Word("", WordKind.UNKNOWN)


@dataclass(slots=True)
class _Growing:
    """A word in progress."""

    pieces: list[str] = field(default_factory=list)
    kind: WordKind = WordKind.LITERAL
    bare: bool = True
    head: int = -1
    """How many pieces there were before the first one that is not literal."""
    braces: str = ""
    """`{` after an open brace, `{,` if a comma or two dots followed: then the next closing one makes several words."""
    bracket: bool = False
    """What may be the subscript of an array is open. In it, a shell reads blanks, too, as part of the word."""

    pattern_bracket: bool = False
    """A `[` of a pattern is open: what is quoted in it means something else than it says, which `text` cannot show."""

    def add(self, text: str, kind: WordKind = WordKind.LITERAL, *, bare: bool = False) -> None:
        if kind is not WordKind.LITERAL and self.head < 0:
            self.head = len(self.pieces)
        self.pieces.append(text)
        self.kind = max(self.kind, kind)
        self.bare = self.bare and bare

    def word(self, at: int = -1) -> Word:
        if self.bracket:
            raise CannotRead("an open bracket")
        text = "".join(self.pieces)
        if self.bare and text == "[":
            return Word(text, head=text, at=at)  # the command
        head = text if self.head < 0 else "".join(self.pieces[: self.head])
        return Word(text, self.kind, self.bare, head, at)


_PLAIN = re.compile(r"[^\s;&|<>()'\"\\$`*?\[\]{}~]+")
_IN_QUOTES = re.compile(r"[^\"\\$`]+")
_IN_BODY = re.compile(r"[^\\$`]+")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9@*!\-_]")
_IN_SUM = r"(?:[A-Za-z0-9_ \t+*/%=!&|^~?:,-]|[$<>](?!\())"
_SUM = re.compile(rf"\(\((?:{_IN_SUM}|\((?:{_IN_SUM}|\({_IN_SUM}*\))*\))*\)\)")
"""Arithmetic with nothing in it that runs, and brackets that cannot be taken for subshells."""
_ANSI = re.compile(
    r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|c(.)|(.))", re.DOTALL
)
_ANSI_LETTERS = {"a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_BACKQUOTES = re.compile(r"`((?:[^`\\]|\\.)*)`", re.DOTALL)
_MAYBE_SUBSCRIPT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
WORD_ENDS = frozenset(" \t\n;&|<>()")


class Scanner:
    """A place in a text, and how to read a word from there. What stands inside `$(…)` is left to `commands_until`."""

    def __init__(self, text: str, depth: int = 0) -> None:
        self.text = text
        self.at = 0
        self.depth = depth
        self.awaiting_bodies = False
        """A here-document was announced: the next line end is where it begins."""
        self._unjudged: set[int] = set()
        """Where words were read that are not yet part of a command, so that no judge gets to see them."""

    def commands_until(self, closer: str) -> bool:
        """Commands inside of brackets. True: what they print may become names of files."""
        raise NotImplementedError

    def commands_of(self, text: str) -> bool:
        """The same for commands in a text of their own, as between backquotes."""
        raise NotImplementedError

    def looking_at(self, text: str) -> bool:
        return self.text.startswith(text, self.at)

    def take(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self.text, self.at)
        if found is None:
            return ""
        self.at = found.end()
        return found[0]

    def hand_over(self, words: Iterable[Word]) -> None:
        """These words are part of a command now: the judge of that command sees them."""
        self._unjudged.difference_update(word.at for word in words)

    def expect_all_judged(self) -> None:
        """No word may be read and then forgotten: the shell would expand it, and nobody would have looked at it."""
        if self._unjudged:
            raise CannotRead("a word in an unusual place")

    def word(self) -> Word:
        """The word that begins here. Empty only if none does."""
        start = self.at
        growing = _Growing()
        while self.at < len(self.text):
            if plain := self.take(_PLAIN):
                if growing.braces and ("," in plain or ".." in plain):
                    growing.braces = "{,"
                growing.add(plain, bare=True)
                continue
            char = self.text[self.at]
            if char in "<>" and self.text[self.at + 1 : self.at + 2] == "(":
                self._process(growing)
            elif char in WORD_ENDS:
                break
            elif char in "'\"\\$`":
                if growing.pattern_bracket and char in "'\"\\":
                    raise CannotRead("quotes in the brackets of a pattern")
                self._quoted(growing, char)
            else:
                self._special(growing, char)
        if self.at > start:
            self._unjudged.add(start)
        return growing.word(start)

    def _special(self, growing: _Growing, char: str) -> None:
        """An unquoted character that may mean something, or a blank that is not ASCII."""
        before = growing.pieces[-1][-1:] if growing.pieces else ""
        self.at += 1
        growing.pattern_bracket = char == "[" or (growing.pattern_bracket and char != "]")
        if char in "*?[":
            if char == "[" and growing.bare and growing.head < 0 and _MAYBE_SUBSCRIPT.match("".join(growing.pieces)):
                growing.bracket = True
            growing.add(char, WordKind.GLOB, bare=True)
        elif char == "~" and (not growing.pieces or before in ("=", ":")):
            growing.add(char, WordKind.UNKNOWN)
        elif char == "}" and growing.braces == "{,":
            growing.add(char, WordKind.UNKNOWN)
            growing.head = 0
        elif char in "{}~]":
            growing.braces = growing.braces or "{" * (char == "{")
            growing.bracket = growing.bracket and char != "]"
            growing.add(char, bare=True)
        else:
            raise CannotRead("an unusual blank")

    def _quoted(self, growing: _Growing, char: str) -> None:
        start = self.at
        if char == "'":
            growing.add(self._single())
        elif char == '"':
            self._double(growing)
        elif char == "`":
            patterns = self._backquotes(in_quotes=False)
            growing.add(self.text[start : self.at], WordKind.UNKNOWN if patterns else WordKind.OUTPUT)
        elif char == "\\":
            self.at += 2
            if self.looking_at_line_end(start):
                if growing.braces:
                    raise CannotRead("a line that goes on in braces")
                self.join_lines()
            else:
                growing.add(self.text[start + 1 : self.at])
        elif self.looking_at("$'"):
            growing.add(self._ansi())
        elif self.looking_at('$"'):
            self.at += 1
            self._double(growing)
        else:
            self.dollar(growing, in_quotes=False)

    def looking_at_line_end(self, backslash: int) -> bool:
        if backslash + 1 >= len(self.text):
            raise CannotRead("nothing after a backslash")
        return self.text[backslash + 1] == "\n"

    def join_lines(self) -> None:
        """A backslash before a line end was passed."""
        if self.awaiting_bodies:
            raise CannotRead("a line that goes on before a here-document")

    def _single(self) -> str:
        end = self.text.find("'", self.at + 1)
        if end < 0:
            raise CannotRead("an open quote")
        inside = self.text[self.at + 1 : end]
        self._no_line_end(inside)
        self.at = end + 1
        return inside

    def _no_line_end(self, inside: str) -> None:
        if self.awaiting_bodies and "\n" in inside:
            raise CannotRead("a line end in quotes before a here-document")

    def _double(self, growing: _Growing) -> None:
        self.at += 1
        growing.add("")
        while True:
            if plain := self.take(_IN_QUOTES):
                self._no_line_end(plain)
                growing.add(plain)
            elif self.at >= len(self.text):
                raise CannotRead("an open quote")
            elif self.looking_at('"'):
                self.at += 1
                return
            else:
                self._expansion(growing, escapes='$`"\\')

    def _expansion(self, growing: _Growing, escapes: str) -> None:
        """A backslash, a dollar or a backquote inside of double quotes or a here-document."""
        start = self.at
        if self.looking_at("`"):
            self._backquotes(in_quotes='"' in escapes)
            growing.add(self.text[start : self.at], WordKind.OUTPUT)
        elif self.looking_at("$"):
            self.dollar(growing, in_quotes=True)
        elif self.looking_at_line_end(start):
            self.at += 2
            self.join_lines()
        else:
            self.at += 2
            growing.add(self.text[start + (self.text[start + 1] in escapes) : self.at])

    def body(self) -> Word:
        """The whole text as that of a here-document, in which variables and commands are replaced."""
        growing = _Growing()
        while self.at < len(self.text):
            if plain := self.take(_IN_BODY):
                growing.add(plain)
            else:
                self._expansion(growing, escapes="$`\\")
        return growing.word()

    def _ansi(self) -> str:
        pieces: list[str] = []
        self.at += 2
        while not self.looking_at("'"):
            if self.at >= len(self.text):
                raise CannotRead("an open quote")
            if self.looking_at("\\"):
                pieces.append(self._ansi_escape())
            else:
                pieces.append(self.text[self.at])
                self.at += 1
        self.at += 1
        inside = "".join(pieces)
        self._no_line_end(inside)
        return inside

    def _ansi_escape(self) -> str:
        found = _ANSI.match(self.text, self.at)
        # Another shell takes `$'` for a dollar and a plain quote, which an escaped quote would end.
        if found is None or found[5] is not None or found[0] in ("\\x", "\\u", "\\U", "\\'"):
            raise CannotRead("an unusual escape")
        self.at = found.end()
        code = next((int(digits, 8 if group == 4 else 16) for group in (1, 2, 3, 4) if (digits := found[group])), None)
        if code is None:
            letter = found[6]
            return _ANSI_LETTERS.get(letter, letter if letter in '\\"?' else found[0])
        if not 0 < code < 0x80:  # NUL ends the word; bytes and characters beyond ASCII depend on the locale
            raise CannotRead("an unusual escape")
        return chr(code)

    def _backquotes(self, *, in_quotes: bool) -> bool:
        found = _BACKQUOTES.match(self.text, self.at)
        if found is None:
            raise CannotRead("an open backquote")
        self._no_line_end(found[1])
        if "\\\n" in found[1]:  # which of the two goes first, the escapes or the line, is in no manual
            raise CannotRead("a line that goes on between backquotes")
        self.at = found.end()
        return self.commands_of(re.sub(r"\\([\\`$\"])" if in_quotes else r"\\([\\`$])", r"\1", found[1]))

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise CannotRead("too many levels")

    def dollar(self, growing: _Growing, *, in_quotes: bool) -> None:
        start = self.at
        self.deeper()
        if self.looking_at("$(("):
            self.at += 1
            if not (inside := self.take(_SUM)):
                raise CannotRead("arithmetic that may run commands")
            kind = WordKind.UNKNOWN if re.search(r"[A-Za-z_$]", inside) else WordKind.NUMBER
        elif self.looking_at("$("):
            self.at += 2
            patterns = self.commands_until(")")
            # Without quotes, what is printed is split, and each piece that is a pattern becomes names of files.
            kind = WordKind.UNKNOWN if patterns and not in_quotes else WordKind.OUTPUT
        elif self.looking_at("${"):
            self.at += 2
            self._parameter(in_quotes=in_quotes)
            kind = WordKind.UNKNOWN
        elif self.looking_at("$["):
            raise CannotRead("old arithmetic")
        elif self.text[start + 1 : start + 2] in tuple("?#$"):
            self.at += 2
            kind = WordKind.NUMBER
        else:
            self.at += 1
            kind = WordKind.UNKNOWN if self.take(_NAME) else WordKind.LITERAL
        self.depth -= 1
        growing.add(self.text[start : self.at], kind)

    def _parameter(self, *, in_quotes: bool) -> None:
        """The rest of `${…}`, for the sake of the commands in it."""
        inside = _Growing()
        if self.text[self.at : self.at + 1] in (" ", "\t", "\n", "|", "("):
            raise CannotRead("commands in ${ }")
        while not self.looking_at("}"):
            char = self.text[self.at : self.at + 1]
            if char in ("", "\n", "{") or (char == "'" and in_quotes):
                raise CannotRead("an unusual ${ }")
            if char in "<>" and self.text[self.at + 1 : self.at + 2] == "(":
                raise CannotRead("commands in ${ }")
            if char in "'\"\\`$":
                self._quoted_in_parameter(inside, char, in_quotes=in_quotes)
            else:
                self.at += 1
        self.at += 1

    def _quoted_in_parameter(self, inside: _Growing, char: str, *, in_quotes: bool) -> None:
        if char == "$" and in_quotes:
            self.dollar(inside, in_quotes=True)
        elif char == "`":
            self._backquotes(in_quotes=in_quotes)
        else:
            self._quoted(inside, char)

    def _process(self, growing: _Growing) -> None:
        start = self.at
        self.at += 2
        self.commands_until(")")
        growing.add(self.text[start : self.at], WordKind.UNKNOWN)

    def take_sum(self) -> str:
        """Arithmetic as a command, `((…))`."""
        if not (inside := self.take(_SUM)):
            raise CannotRead("arithmetic, or subshells")
        return inside
