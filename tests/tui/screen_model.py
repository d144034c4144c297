"""A terminal with a screen of its own, as a model: for tests of what is painted, and of which modes are left behind.

It is strict: a sequence that Covey does not use is a failure. How wide characters are is up to the test, as terminals
do not agree.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from covey.lines.widths import clusters, width

_SEQUENCE = re.compile(
    r"\x1b\[(?P<given>[0-?]*)(?P<between>[ -/]*)(?P<last>[@-~])"
    r"|\x1b\](?P<command>[^\x07\x1b]*)(?:\x07|\x1b\\)"
    r"|\x1bP(?P<passed>(?:[^\x1b]|\x1b\x1b)*)\x1b\\"
    r"|\x1b_G(?P<graphics>[^\x1b]*)\x1b\\"
)
_BEGUN = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|\][^\x07]*|P.*|_[^\x1b]*\x1b?)?\Z", re.DOTALL)
Char = tuple[str, str, str]
"""What stands in a column ('': the second half of what is before it), its SGR code, and its link."""
NOTHING: Char = (" ", "", "")
Widths = Callable[[str], int]


@dataclass
class Counts:
    bytes: int = 0
    frames: int = 0
    """Complete ones, where the terminal has synchronized output."""
    outside: int = 0
    """Characters that were drawn outside of a frame."""
    clears: int = 0
    """Of the whole screen."""
    drawn_rows: list[int] = field(default_factory=list)
    """The row of each piece of text that was drawn."""


class TerminalModel:
    def __init__(
        self, columns: int, lines: int, *, widths: Widths = width, answers: bool = False, name: str = "model 1.0"
    ) -> None:
        self.is_dragged = False
        """While its size changes, what was drawn for another size is cut off at the edges, as real terminals do."""
        self.columns, self.lines = columns, lines
        self.counts = Counts()
        self.modes: set[str] = {"?7", "?25"}
        """The private modes that are on."""
        self.keyboard: dict[bool, list[int]] = {False: [], True: []}
        """Flags that were pushed, for the main screen and for the other."""
        self.other_keys = 0
        self.title = ""
        self.copied: list[str] = []
        self.passed_on: list[str] = []
        """To the terminal around tmux."""
        self.notices: list[str] = []
        self.pictures: dict[str, str] = {}
        """Content by id, as the kitty protocol has sent it."""
        self.drawn: list[tuple[int, int, str]] = []
        """By OSC 1337: row, column, and what was sent."""
        self._name = name
        self._picture = ""
        self.bells = 0
        self.replies = b""
        """What it answers, for whoever carries it to the program."""
        self._answers = answers
        self._widths = widths
        self._main: list[list[Char]] | None = None
        self.grid = self._blank()
        self.row = self.column = 0
        self._region = (0, lines - 1)
        self._pen = ("", "")
        self._left = ""

    # ── looking ──

    @property
    def text(self) -> str:
        return "\n".join(self.rows)

    @property
    def rows(self) -> list[str]:
        return ["".join(char for char, _, _ in row).rstrip() for row in self.grid]

    @property
    def is_as_before(self) -> bool:
        """Nothing that a program may switch on is on."""
        keyboard = not self.keyboard[False] and not self.keyboard[True]
        return self.modes == {"?7", "?25"} and keyboard and not self.other_keys and self._pen == ("", "")

    def resize(self, columns: int, lines: int) -> None:
        """Rows are cut or filled; what a real one does besides, nobody may rely on."""
        self.grid = [[*row[:columns], *[NOTHING] * (columns - len(row))] for row in self.grid[:lines]]
        self.columns, self.lines = columns, lines
        self.grid += [[NOTHING] * columns for _ in range(lines - len(self.grid))]
        self._region = (0, lines - 1)
        self.row, self.column = min(self.row, lines - 1), min(self.column, columns - 1)

    def _blank(self) -> list[list[Char]]:
        return [[NOTHING] * self.columns for _ in range(self.lines)]

    # ── what is written ──

    def feed(self, text: str) -> None:
        self.counts.bytes += len(text.encode())
        text, self._left = self._left + text, ""
        at = 0
        while at < len(text):
            if found := _SEQUENCE.match(text, at):
                self._sequence(found)
                at = found.end()
            elif begun := _BEGUN.match(text, at):
                self._left = begun[0]
                return
            elif text[at] < " " or text[at] == "\x7f":
                self._control(text[at])
                at += 1
            else:
                end = next((n for n in range(at, len(text)) if text[n] < " " or text[n] == "\x7f"), len(text))
                self._draw(text[at:end])
                at = end

    def _control(self, char: str) -> None:
        if char == "\r":
            self.column = 0
        elif char == "\n":
            if self.row == self._region[1]:
                self._scroll(1)
            else:
                self.row += 1
        elif char == "\b":
            self.column = max(self.column - 1, 0)
        elif char == "\x07":
            self.bells += 1
        else:
            assert char == "\x18", f"{char!r} is not for terminals"

    def _draw(self, text: str) -> None:
        self.counts.drawn_rows.append(self.row)
        if "?2026" not in self.modes:
            self.counts.outside += len(text)
        for cluster, _ in clusters(text):
            needed = self._widths(cluster)
            if self.column + needed > self.columns:
                if "?7" in self.modes:
                    self._control("\n")
                    self.column = 0
                else:
                    self.column = self.columns - needed
            self._put(cluster, needed)
            self.column += needed
            if "?7" not in self.modes:
                self.column = min(self.column, self.columns - 1)

    def _put(self, cluster: str, needed: int) -> None:
        """Half of a wide character that is overwritten takes the other half with it."""
        row = self.grid[self.row]
        for at in range(self.column, self.column + needed):
            if not row[at][0] and at:
                row[at - 1] = NOTHING
            if at + 1 < self.columns and not row[at + 1][0]:
                row[at + 1] = NOTHING
        for at in range(needed):
            row[self.column + at] = (cluster if at == 0 else "", *self._pen)

    def _scroll(self, count: int) -> None:
        top, bottom = self._region
        inside = self.grid[top : bottom + 1]
        new = [[NOTHING] * self.columns for _ in range(min(abs(count), len(inside)))]
        inside = [*inside[count:], *new] if count > 0 else [*new, *inside[:count]]
        self.grid[top : bottom + 1] = inside

    # ── sequences ──

    def _sequence(self, found: re.Match[str]) -> None:
        if found["passed"] is not None:
            assert found["passed"].startswith("tmux;")
            self.passed_on.append(found["passed"].removeprefix("tmux;").replace("\x1b\x1b", "\x1b"))
            return
        if found["graphics"] is not None:
            self._graphics(found["graphics"])
            return
        if found["command"] is not None:
            self._command(found["command"])
            return
        given, last = found["given"], found["between"] + found["last"]
        numbers = [int(part) if part else 0 for part in given.lstrip("?><=").split(";")]
        if given[:1] in ("?", ">", "<"):
            self._private(given[0], numbers, last)
        elif last == "m":
            self._pen = ("" if given in ("", "0") else given.removeprefix("0;"), self._pen[1])
        elif last == "H":
            row, column = (*numbers, 1)[:2]
            inside = 0 <= row <= self.lines and 0 <= column <= self.columns
            assert inside or self.is_dragged, f"{given}H is not on the screen"
            self.row, self.column = min(max(row, 1), self.lines) - 1, min(max(column, 1), self.columns) - 1
        elif last == "K":
            row_now = self.grid[self.row]
            if not row_now[self.column][0]:
                row_now[self.column - 1] = NOTHING
            row_now[self.column :] = [NOTHING] * (self.columns - self.column)
        elif last == "J":
            self.counts.clears += numbers[0] == 2
            self.grid[self.row + 1 :] = [[NOTHING] * self.columns for _ in range(self.lines - self.row - 1)]
        elif last == "r":
            self._region = (numbers[0] - 1, numbers[1] - 1) if len(numbers) == 2 else (0, self.lines - 1)
            self.row = self.column = 0
        elif last in ("S", "T"):
            self._scroll(numbers[0] if last == "S" else -numbers[0])
        elif last in ("A", "C", "D"):
            step = max(numbers[0], 1)
            self.row -= step if last == "A" else 0
            self.column += {"A": 0, "C": step, "D": -step}[last]
        elif last == "c":
            self._reply(b"\x1b[?62;52c")
        else:
            assert last == "t", f"a sequence that Covey does not use: {given}{last}"

    def _private(self, kind: str, numbers: list[int], last: str) -> None:
        is_other = self._main is not None
        if kind == "?" and last in ("h", "l"):
            for number in numbers:
                self._set_mode(number, last == "h")
        elif kind == "?" and last == "$p":
            self._reply(b"\x1b[?%d;2$y" % numbers[0])
        elif kind == "?" and last == "u":
            self._reply(b"\x1b[?%du" % (self.keyboard[is_other] or [0])[-1])
        elif kind == ">" and last == "u":
            self.keyboard[is_other].append(numbers[0])
        elif kind == "<" and last == "u":
            if self.keyboard[is_other]:
                self.keyboard[is_other].pop()
        elif kind == ">" and last == "m":
            assert numbers[0] == 4
            self.other_keys = (*numbers, 0)[1]
        elif kind == ">" and last == "q":
            self._reply(b"\x1bP>|%s\x1b\\" % self._name.encode())
        else:
            raise AssertionError(f"a sequence that Covey does not use: {kind}{numbers}{last}")

    def _set_mode(self, number: int, is_on: bool) -> None:
        if number == 1049:
            if is_on and self._main is None:
                self._main, self.grid = self.grid, self._blank()
            elif not is_on and self._main is not None:
                self.grid, self._main = self._main, None
        if number == 2026 and not is_on and "?2026" in self.modes:
            self.counts.frames += 1
        (self.modes.add if is_on else self.modes.discard)(f"?{number}")

    def _command(self, text: str) -> None:
        number, _, rest = text.partition(";")
        if number == "2":
            self.title = rest
        elif number == "8":
            self._pen = (self._pen[0], rest.partition(";")[2])
        elif number == "11":
            self._reply(b"\x1b]11;rgb:0000/0000/0000\x1b\\")
        elif number == "52":
            self.copied.append(rest)
        elif number == "1337":
            self.drawn.append((self.row, self.column, rest))
        else:
            assert number in ("9", "99", "777"), f"a sequence that Covey does not use: {text}"
            self.notices.append(text)

    def _graphics(self, text: str) -> None:
        """What is sent in pieces comes in order, and only its first piece says for which picture."""
        control, _, data = text.partition(";")
        keys = dict(part.split("=") for part in control.split(","))
        if keys.get("a") == "d":
            assert keys["d"] == "I"
            del self.pictures[keys["i"]]
            return
        if "i" in keys:
            assert (keys["a"], keys["U"], keys["f"], keys["q"]) == ("T", "1", "100", "2")
            self._picture = keys["i"]
        self.pictures[self._picture] = self.pictures.get(self._picture, "") + data

    def _reply(self, answer: bytes) -> None:
        if self._answers:
            self.replies += answer
