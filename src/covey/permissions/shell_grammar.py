"""The grammar of a shell: lists, pipelines, compound commands, here-documents. It follows bash; see `shell_words`.

Every word that is read becomes part of a command, and so reaches the judge. What a compound command itself expands or
assigns is noted as a command named by its keyword: `for x in a b`, `case $y in`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from covey.permissions.shell_commands import Redirect, SimpleCommand
from covey.permissions.shell_output import may_print_patterns
from covey.permissions.shell_redirects import Redirections
from covey.permissions.shell_words import CannotRead, Word, WordKind, literal

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?)=")
_SUBSCRIPTED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\[.*\]\+?=", re.DOTALL)
_KEYWORD = re.compile(
    r"(?:if|then|elif|else|fi|while|until|for|select|do|done|case|esac|function|coproc|time|\[\[|[{}!])"
    r"(?=[\s;&|<>()]|\Z)"
)
_CLOSERS = frozenset({"then", "elif", "else", "fi", "do", "done", "esac", "}"})
_RESERVED = _CLOSERS | {"if", "while", "until", "for", "select", "case", "function", "coproc", "time", "{", "!", "[["}


class Grammar(Redirections):
    """Recursive descent; commands are noted as they are met, those inside of others first."""

    def whole(self) -> None:
        if closer := self._list():
            raise CannotRead(f"a {closer!r} without its beginning")
        self.expect_all_judged()

    # ── lists and pipelines ──

    def _list(self) -> str:
        """Commands up to the closing bracket or keyword of the caller, which is passed and returned."""
        self.deeper()
        while not (closer := self._closer()):
            if self.at >= len(self.text):
                if self._bodies:
                    raise CannotRead("a here-document without its end")
                break
            self.pipeline()
            self._separator()
        self.depth -= 1
        return closer

    def _closer(self) -> str:
        self.skip_lines()
        for closer in (";;&", ";;", ";&", ")"):
            if self.looking_at(closer):
                self.at += len(closer)
                return closer
        found = _KEYWORD.match(self.text, self.at)
        if found and found[0] in _CLOSERS:
            self.at = found.end()
            return found[0]
        return ""

    def _separator(self) -> None:
        """What stands between two pipelines. Nothing may stand before a closing bracket."""
        self.skip_blanks()
        rest = self.text[self.at : self.at + 2]
        if rest in ("&&", "||"):
            self.at += 2
            self.skip_lines()
            if self.at >= len(self.text) or self.text[self.at] in ";&|)":
                raise CannotRead("an operator without a command")
        elif rest[:1] == "&":
            self.oddities.add("background")
            self._separated += 1
            self.at += 1
        elif rest[:1] == ";" and rest not in (";;", ";&"):
            self._separated += 1
            self.at += 1
        elif rest[:1] not in ("", "\n", ")", ";"):
            raise CannotRead(f"an unexpected {rest[:1]!r}")

    def pipeline(self) -> None:
        while found := re.compile(r"(?:!|time(?:[ \t]+-p)?(?:[ \t]+--)?)(?=[ \t(])").match(self.text, self.at):
            self.at = found.end()
            self.skip_blanks()
        fed = self._fed
        self.command()
        self.skip_blanks()
        while self.looking_at("|") and not self.looking_at("||"):
            self.at += 2 if self.looking_at("|&") else 1
            self.skip_lines()
            self._fed = True
            self.command()
            self.skip_blanks()
        self._fed = fed

    # ── commands ──

    def command(self) -> None:
        self.deeper()
        begin = len(self.commands)
        found = _KEYWORD.match(self.text, self.at)
        if self.looking_at("(("):
            self.note(SimpleCommand((literal("(("), Word(self.take_sum(), WordKind.UNKNOWN))))
            self._redirections(begin)
        elif self.looking_at("("):
            self.at += 1
            self.commands_until(")")
            self._redirections(begin)
        elif found and (compound := self._compound(found[0])):
            self.at = found.end()
            compound()
            self._redirections(begin)
        else:
            self._simple()
        self.depth -= 1

    def _compound(self, keyword: str) -> Callable[[], object] | None:
        compounds: dict[str, Callable[[], object]] = {
            "{": lambda: self.expect("}"),
            "if": self._if,
            "while": self._while,
            "until": self._while,
            "for": lambda: self._for("for"),
            "select": lambda: self._for("select"),
            "case": self._case,
            "function": self._function,
            "coproc": self._coproc,
            "[[": self._condition,
        }
        return compounds.get(keyword)

    def expect(self, *closers: str) -> str:
        closer = self._list()
        if closer not in closers:
            raise CannotRead(f"{closer or 'the end'!r} where {closers[0]!r} should be")
        return closer

    def commands_until(self, closer: str) -> bool:
        """Inside of brackets: a list of its own, whose here-documents must end in it."""
        bodies, self._bodies = self._bodies, []
        begin = len(self.commands)
        start, announced, separated = self.at, self._announced, self._separated
        self.expect(closer)
        if self._announced > announced and self._separated > separated:
            raise CannotRead("a here-document and ';' in brackets")  # bash 5.2 may lose the ';', and join two commands
        if self._bodies or (bodies and "\n" in self.text[start : self.at]):
            raise CannotRead("here-documents across brackets")
        self._bodies = bodies
        self.awaiting_bodies = bool(bodies)
        return may_print_patterns(self.commands[begin:])

    def _if(self) -> None:
        self.expect("then")
        while (closer := self.expect("elif", "else", "fi")) != "fi":
            if closer == "elif":
                self.expect("then")

    def _while(self) -> None:
        looped, self._looped = self._looped, True
        self.expect("do")
        self.expect("done")
        self._looped = looped

    def _for(self, keyword: str) -> None:
        self.skip_blanks()
        if self.looking_at("(("):
            raise CannotRead("a loop that counts")
        words = [literal(keyword), self._plain_name()]
        self.skip_lines()
        if self.take(re.compile(r"in(?=[\s;]|\Z)")):
            words += [literal("in"), *self._words_until_separator()]
        elif self.looking_at(";"):
            self.at += 1
        self.note(SimpleCommand(tuple(words)))
        looped, self._looped = self._looped, True
        if (opener := self._next_keyword("do", "{")) == "do":
            self.expect("done")
        elif opener == "{":
            self.expect("}")
        self._looped = looped

    def _words_until_separator(self) -> list[Word]:
        words: list[Word] = []
        while True:
            self.skip_blanks()
            if self.text[self.at : self.at + 1] in (";", "\n"):
                self.at += self.looking_at(";")
                return words
            words.append(self._word())

    def _plain_name(self) -> Word:
        """A name that is set, not a word that is expanded."""
        self.skip_blanks()
        if name := self.take(re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?=[\s;()])")):
            return literal(name)
        raise CannotRead("an unusual name")

    def _next_keyword(self, *wanted: str) -> str:
        self.skip_lines()
        keyword = self.take(_KEYWORD)
        if keyword not in wanted:
            raise CannotRead(f"no {wanted[0]!r} where it should be")
        return keyword

    def _case(self) -> None:
        self.skip_blanks()
        subject = self._word()
        self.skip_lines()
        if not self.take(re.compile(r"in(?=\s)")):
            raise CannotRead("a case without 'in'")
        self.note(SimpleCommand((literal("case"), subject, literal("in"))))
        while True:
            self.skip_lines()
            if self.take(re.compile(r"esac(?=[\s;&|<>()]|\Z)")):
                return
            self.note(SimpleCommand((literal("case"), *self._patterns())))
            if self.expect(";;", ";&", ";;&", "esac") == "esac":
                return

    def _patterns(self) -> list[Word]:
        patterns: list[Word] = []
        self.at += self.looking_at("(")
        while True:
            self.skip_blanks()
            patterns.append(self._word())
            self.skip_blanks()
            if self.looking_at(")"):
                self.at += 1
                return patterns
            if not self.looking_at("|"):
                raise CannotRead("an unusual pattern")
            self.at += 1

    def _function(self) -> None:
        name = self._plain_name()
        self.skip_blanks()
        self.take(re.compile(r"\([ \t]*\)"))
        self._function_body(name)

    def _function_body(self, name: Word) -> None:
        self.oddities.add("function")
        self.note(SimpleCommand((literal("function"), name)))
        looped, self._looped = self._looped, True
        self.skip_lines()
        self.command()
        self._looped = looped

    def _coproc(self) -> None:
        self.oddities.add("coproc")
        self.skip_blanks()
        self.take(re.compile(r"[A-Za-z_][A-Za-z0-9_]*[ \t]+(?=[({])"))
        self.command()

    def _condition(self) -> None:
        words = [literal("[[")]
        while words[-1].text != "]]" or not words[-1].bare:
            self.skip_lines()
            if operator := self.take(re.compile(r"&&|\|\||[<>](?!\()|(?<=\s)[()](?=\s)")):
                words.append(Word(operator, bare=False, head=operator))
            else:
                words.append(self._word())
                if words[-1].text != "]]" and self.text[self.at : self.at + 1] in ("(", "|", ";", "&"):
                    raise CannotRead("an unusual condition")
        self.note(SimpleCommand(tuple(words)))

    # ── simple commands ──

    def _simple(self) -> None:
        words: list[Word] = []
        assigns: list[tuple[str, Word]] = []
        redirects: list[Redirect] = []
        while True:
            self.skip_blanks()
            if self.at >= len(self.text) or self._redirection(redirects):
                if self.at >= len(self.text):
                    break
                continue
            if self.text[self.at] in "\n;&|)":
                break
            if self.looking_at("("):
                self._function_or_not(words, assigns, redirects)
                return
            if any(redirect.op in ("&>", "&>>") for redirect in redirects):
                raise CannotRead("words after '&>'")  # which other shells take for the next command
            if not words and self._assignment(assigns):
                continue
            words.append(self._argument(first=not words))
        if not (words or assigns or redirects):
            raise CannotRead("an operator without a command")
        self.note(SimpleCommand(tuple(words), tuple(assigns), tuple(redirects)))

    def _argument(self, *, first: bool) -> Word:
        word = self._word()
        if first and word.bare and word.text in _RESERVED:
            raise CannotRead(f"an unexpected {word.text!r}")
        if self.text[self.at : self.at + 1] in ("<", ">") and word.text[:1] == "{" and word.text[-1:] == "}":
            raise CannotRead("a named file descriptor")
        if first and (_SUBSCRIPTED.match(word.text) or _ASSIGNMENT.match(word.text)):
            raise CannotRead("an unusual assignment")
        return word

    def _function_or_not(self, words: list[Word], assigns: list[tuple[str, Word]], redirects: list[Redirect]) -> None:
        if len(words) != 1 or assigns or redirects or not self.take(re.compile(r"\([ \t]*\)")):
            raise CannotRead("an unexpected '('")
        self._function_body(words[0])

    def _assignment(self, assigns: list[tuple[str, Word]]) -> bool:
        found = _ASSIGNMENT.match(self.text, self.at)
        if found is None:
            return False
        if self.text[found.end() : found.end() + 1] == "(":
            raise CannotRead("an array")
        word = self.word()
        value = replace(word, text=word.text[len(found[0]) :], head=word.head[len(found[0]) :])
        assigns.append((found[1], value))
        return True
