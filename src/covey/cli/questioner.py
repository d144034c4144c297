"""Puts one question at a time to the person at the terminal: by single keys where that is possible, else by lines."""

from __future__ import annotations

import asyncio
import os
import signal
import termios
from collections.abc import Callable
from contextlib import suppress
from typing import assert_never

from covey.cli.asks import Answer, ApprovalAnswer, Ask, Heard, PermissionAnswer, PermissionAsk, QuestionAnswers
from covey.cli.screen import Screen
from covey.lines.line import StyledLine
from covey.lines.permission import PermissionShown, choices, help_lines, permission_lines
from covey.lines.plain_text import one_line
from covey.lines.request_text import FEWEST_LINES, LINES_SHOWN

QUIET_S = 0.4
"""So long nothing must be typed before a key counts: what was meant for something else is no answer."""
PROMPT = "Allow it? "
WORDS = "Your answer: "


class Questioner:
    """Owns the terminal's input while something is asked. `asked` is what the person looks at."""

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
        self._opening: asyncio.TimerHandle | None = None
        """Set while keys do not count yet."""

    def ask(self, ask: Ask) -> None:
        self.asked = ask
        # What was typed before the question was there is no answer to it.
        with suppress(termios.error):
            termios.tcflush(self._terminal, termios.TCIFLUSH)
        self._show(ask)
        loop = asyncio.get_running_loop()
        loop.add_reader(self._terminal, self._read)
        loop.add_signal_handler(signal.SIGCONT, self._resumed)

    def withdraw(self) -> None:
        """Nobody needs an answer any more."""
        if self.asked:
            self._screen.clear()
        self.asked = None
        self.close()

    def close(self) -> None:
        """Leave the terminal as it was."""
        self._stop_opening()
        self._modes.restore()
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._terminal)
        loop.remove_signal_handler(signal.SIGCONT)

    def restore(self) -> None:
        """The process ends at once: only what the next program on this terminal would notice."""
        self._modes.restore()

    def _resumed(self) -> None:
        """After Ctrl-Z and `fg`: the shell has set the terminal as it likes it, and the question is far above."""
        with suppress(OSError):
            if self.asked and os.tcgetpgrp(self._terminal) == os.getpgrp():
                self._modes.restore()
                self._show(self.asked)

    def _show(self, ask: Ask) -> None:
        self._takes_keys = isinstance(ask, PermissionAsk) and self._screen.moves_cursor and self._modes.take_keys()
        if isinstance(ask, PermissionAsk) and self._takes_keys:
            self._screen.ask("", _menu(ask, self._screen.columns, self._screen.rows))
            self._open_later()
        else:
            self._modes.restore()
            self._screen.ask(ask.text)

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
        self._screen.ask(PROMPT)

    def _key(self, ask: PermissionAsk, typed: str) -> None:
        if self._opening:
            self._open_later()
            return
        key = typed[:-1] if len(typed) == 2 and typed[-1] in "\r\n" else typed  # from whoever is used to Enter
        # Several keys at once were typed ahead, or pasted, or are one key that sends a sequence.
        heard = ask.press(key) if len(key) <= 1 else Heard.AGAIN
        self._screen.answered(one_line(key) if key.isprintable() and len(key) == 1 else " ")
        self._take(ask, heard)

    # ── what was typed ──

    def _read(self) -> None:
        """The end of input (Ctrl-D) is a no, but a terminal that is gone has said nothing."""
        typed = b""
        with suppress(OSError):
            typed = os.read(self._terminal, 4096)
        if not typed and not os.isatty(self._terminal):
            self.asked = None
            self.close()
            self._on_lost()
            return
        text, ask = typed.decode("utf-8", "replace"), self.asked
        if ask is None:
            return
        if isinstance(ask, PermissionAsk) and self._takes_keys:
            self._key(ask, text)
            return
        if text.endswith("\n"):
            self._screen.answered()
        else:
            self._screen.clear()
        self._take(ask, ask.hear(text) if text else ask.refusal)

    def _take(self, ask: Ask, heard: Answer | Heard) -> None:
        match heard:
            case Heard.AGAIN:
                self._screen.ask("One key, please (? says what they mean): " if self._takes_keys else ask.question)
            case Heard.MORE | Heard.WHOLE:
                self._show(ask)
            case Heard.HELP:
                assert isinstance(ask, PermissionAsk)
                self._screen.ask(PROMPT, help_lines(ask.request, self._screen.columns))
            case Heard.WORDS:
                self._takes_keys = False
                self._modes.restore()
                self._screen.ask(WORDS)
            case PermissionAnswer() | QuestionAnswers() | ApprovalAnswer():
                self.asked = None
                self._modes.restore()
                self._on_answer(ask, heard)
            case _:
                assert_never(heard)


def _menu(ask: PermissionAsk, columns: int, rows: int) -> list[StyledLine]:
    """The request, and the keys that answer it: as much of the request as leaves its first line on the screen."""
    for some in range(LINES_SHOWN, FEWEST_LINES - 1, -1):
        ask.lines = some
        shown = PermissionShown(ask.shown.split("\n"), ask.request, is_cut=ask.is_cut)
        lines = permission_lines(shown, choices(shown), columns)
        if ask.shown_whole or len(lines) < rows:  # one more for the prompt
            break
    return lines


class _Modes:
    """How the terminal gives what is typed: by lines, as it was before, or key by key and unseen."""

    def __init__(self, terminal: int) -> None:
        self._terminal = terminal
        self._before: list[object] | None = None

    def take_keys(self) -> bool:
        """Says whether it can be done. Signals such as Ctrl-C stay what they are."""
        if self._before is not None:
            return True
        try:
            before = termios.tcgetattr(self._terminal)
            modes = termios.tcgetattr(self._terminal)
            modes[3] &= ~(termios.ICANON | termios.ECHO)
            termios.tcsetattr(self._terminal, termios.TCSANOW, modes)
        except termios.error:
            return False
        self._before = before
        return True

    def restore(self) -> None:
        before, self._before = self._before, None
        if before is not None:
            with suppress(termios.error):
                termios.tcsetattr(self._terminal, termios.TCSANOW, before)  # type: ignore[arg-type]
