"""Puts one question at a time to the person at the terminal: by single keys where that is possible, else by lines."""

from __future__ import annotations

import asyncio
import os
import signal
import termios
from collections.abc import Callable
from contextlib import suppress
from typing import Any, assert_never

from covey.cli.asks import Answer, ApprovalAnswer, Ask, Heard, PermissionAnswer, PermissionAsk, QuestionAnswers
from covey.cli.screen import Screen
from covey.lines.line import StyledLine
from covey.lines.permission import PermissionShown, answered_line, choices, help_lines, permission_lines, request_lines
from covey.lines.plain_text import one_line
from covey.lines.request_text import FEWEST_LINES, LINES_SHOWN

QUIET_S = 0.4
"""So long nothing must be typed before a key counts: what was meant for something else is no answer."""
PROMPT = "Allow it? "
ALL_OF_IT = "This is all of it now. Allow it? "
WORDS = "No, because: "


class Questioner:
    """Owns the terminal's input until it is closed. `asked` is what the person looks at.

    What is typed while nothing is asked is not shown: it would get between the lines that are drawn over. It is there
    for the shell afterwards, unless a question came in between.
    """

    def __init__(
        self, terminal: int, screen: Screen, on_answer: Callable[[Ask, Answer], None], on_lost: Callable[[], None]
    ) -> None:
        self._terminal = terminal
        self._screen = screen
        self._on_answer = on_answer
        self._on_lost = on_lost
        self.asked: Ask | None = None
        self._modes = _Modes(terminal)
        self._takes_keys = False
        self._in_words = False
        self._prompt = PROMPT
        self._opening: asyncio.TimerHandle | None = None
        """Set while keys do not count yet."""
        self._rest()
        asyncio.get_running_loop().add_signal_handler(signal.SIGCONT, self._resumed)

    def ask(self, ask: Ask) -> None:
        self.asked, self._prompt = ask, PROMPT
        self._forget_typed()  # what was typed before the question was there is no answer to it
        self._show(ask)
        asyncio.get_running_loop().add_reader(self._terminal, self._read)

    def withdraw(self) -> None:
        """Nobody needs an answer any more."""
        if self.asked:
            self._screen.clear()
        self._stop_reading()
        self._rest()

    def close(self) -> None:
        """Leave the terminal as it was."""
        self._stop_reading()
        self._modes.restore()
        asyncio.get_running_loop().remove_signal_handler(signal.SIGCONT)

    def restore(self) -> None:
        """The process ends at once: only what the next program on this terminal would notice."""
        self._modes.restore()

    def _resumed(self) -> None:
        """After Ctrl-Z and `fg`: the shell has set the terminal as it likes it, and the question is far above."""
        if not self._modes.is_ours:
            return
        if self.asked:
            self._show(self.asked)
        else:
            self._rest()

    def _rest(self) -> None:
        """Nothing is asked. A pager that gets the answer has the same terminal: it is left alone."""
        if self._screen.moves_cursor and self._screen.shares_terminal:
            self._modes.hide()

    def _stop_reading(self) -> None:
        if self.asked:
            self._forget_typed()  # half an answer is no command for the shell
        self.asked = None
        self._stop_opening()
        asyncio.get_running_loop().remove_reader(self._terminal)

    def _show(self, ask: Ask) -> None:
        self._in_words = False
        self._takes_keys = isinstance(ask, PermissionAsk) and self._screen.moves_cursor and self._modes.take_keys()
        if isinstance(ask, PermissionAsk) and self._takes_keys:
            self._screen.ask("", _menu(ask, self._screen.columns, self._screen.rows))
            self._open_later()
        else:
            self._modes.restore()  # by lines, which are seen
            self._ask_for_line(ask)

    def _ask_for_line(self, ask: Ask) -> None:
        if isinstance(ask, PermissionAsk):
            self._screen.ask(ask.question, request_lines(_as_shown(ask), self._screen.columns))
        else:
            self._screen.ask(ask.text)

    def _forget_typed(self) -> None:
        with suppress(termios.error):
            termios.tcflush(self._terminal, termios.TCIFLUSH)

    # ── keys ──

    def _open_later(self) -> None:
        self._stop_opening()
        self._opening = asyncio.get_running_loop().call_later(QUIET_S, self._open)

    def _stop_opening(self) -> None:
        if self._opening:
            self._opening.cancel()
        self._opening = None

    def _open(self) -> None:
        """From now on a key counts, and the prompt says so."""
        self._opening = None
        self._screen.ask(self._prompt)

    def _key(self, ask: PermissionAsk, typed: str) -> None:
        if self._opening:
            self._open_later()
            return
        key = typed[:-1] if len(typed) == 2 and typed[-1] in "\r\n" else typed  # from whoever is used to Enter
        # Several keys at once were typed ahead, or pasted, or are one key that sends a sequence.
        heard = ask.press(key) if len(key) <= 1 else Heard.AGAIN
        self._screen.answered("", f"{one_line(key) if key.isprintable() and len(key) == 1 else ' '}\n")
        self._take(ask, heard)

    # ── what was typed ──

    def _read(self) -> None:
        """The end of input (Ctrl-D) is a no, but a terminal that is gone has said nothing."""
        typed = b""
        with suppress(OSError):
            typed = os.read(self._terminal, 4096)
        if not typed and not os.isatty(self._terminal):
            self.close()
            self._on_lost()
            return
        text, ask = typed.decode("utf-8", "replace"), self.asked
        if ask is None:
            return
        if isinstance(ask, PermissionAsk) and self._takes_keys:
            self._key(ask, text)
            return
        self._screen.answered(text, "" if text.endswith("\n") else "\n")
        if not text:
            self._take(ask, ask.refusal)
        elif isinstance(ask, PermissionAsk) and self._in_words:
            self._take(ask, ask.hear_words(text))
        else:
            self._take(ask, ask.hear(text))

    def _take(self, ask: Ask, heard: Answer | Heard) -> None:
        match heard:
            case Heard.AGAIN:
                self._screen.ask("Press a key from above (? explains): " if self._takes_keys else ask.again)
            case Heard.MORE | Heard.WHOLE | Heard.NOTHING:
                self._show(ask)
            case Heard.UNSEEN:
                self._prompt = ALL_OF_IT
                self._show(ask)
            case Heard.HELP:
                assert isinstance(ask, PermissionAsk)
                self._screen.ask(PROMPT, help_lines(ask.request, self._screen.columns))
            case Heard.WORDS:
                self._takes_keys, self._in_words = False, True
                self._modes.restore()
                self._screen.ask(WORDS)
            case PermissionAnswer() | QuestionAnswers() | ApprovalAnswer():
                if self._takes_keys or self._in_words:
                    self._put_away(ask, heard)
                self.asked = None
                self._rest()
                self._on_answer(ask, heard)
            case _:
                assert_never(heard)

    def _put_away(self, ask: Ask, answer: Answer) -> None:
        """A line instead of the whole menu: what was allowed is shown with its result."""
        if (
            isinstance(ask, PermissionAsk)
            and isinstance(answer, PermissionAnswer)
            and self._screen.take_back_question()
        ):
            reach = ", with network" * answer.network + ", outside the sandbox" * answer.unsandboxed
            self._screen.show([answered_line(ask.request, answer.action, reach, self._screen.columns)])


def _menu(ask: PermissionAsk, columns: int, rows: int) -> list[StyledLine]:
    """The request, and the keys that answer it: as much of the request as leaves its first line on the screen."""
    for some in range(LINES_SHOWN, FEWEST_LINES - 1, -1):
        ask.lines = some
        shown = _as_shown(ask)
        lines = permission_lines(shown, choices(shown), columns)
        if ask.shown_whole or len(lines) < rows:  # one more for the prompt
            break
    return lines


def _as_shown(ask: PermissionAsk) -> PermissionShown:
    return PermissionShown(ask.shown.split("\n"), ask.request, is_cut=ask.is_cut)


class _Modes:
    """How the terminal gives what is typed: by lines, as it was before; by lines and unseen; or key by key and unseen.

    It belongs to whoever is in the foreground: from the background it is not touched, which would stop us.
    """

    def __init__(self, terminal: int) -> None:
        self._terminal = terminal
        self._before: list[Any] | None = None
        """As we found it; None while that is what it is."""

    @property
    def is_ours(self) -> bool:
        try:
            return os.tcgetpgrp(self._terminal) == os.getpgrp()
        except OSError:
            return False

    def hide(self) -> bool:
        return self._without(termios.ECHO)

    def take_keys(self) -> bool:
        """Says whether it can be done. Signals such as Ctrl-C stay what they are."""
        return self._without(termios.ICANON | termios.ECHO)

    def restore(self) -> None:
        if self._before is not None and self._set(self._before):
            self._before = None

    def _without(self, flags: int) -> bool:
        try:
            before = self._before or termios.tcgetattr(self._terminal)
        except termios.error:
            return False
        self._before = before
        return self._set([*before[:3], before[3] & ~flags, *before[4:]])

    def _set(self, modes: list[Any]) -> bool:
        if not self.is_ours:
            return False
        try:
            termios.tcsetattr(self._terminal, termios.TCSANOW, modes)
        except termios.error:
            return False
        return True
