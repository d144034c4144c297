"""Lines that a person types, or a program sends, read in a thread: `input` has a history, and can only wait."""

from __future__ import annotations

import asyncio
import atexit
import os
import select
import sys
import termios
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

LINES_KEPT = 1000
"""Of what was typed before."""


class LineReader:
    """`next` gives one line after the other, without its end; None when there are no more."""

    def __init__(self, prompt: str, history: Path | None, on_prompt: Callable[[], None]) -> None:
        """`history`: where typed lines are kept, if a person types them. `on_prompt`: it stands on the last row now."""
        self._on_prompt = on_prompt
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._prompt = prompt
        self.is_person = sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()
        self.is_prompting = False
        """The prompt was shown, and its line has not been ended."""
        self._is_wanted = False
        """The prompt is to be shown as soon as nobody types."""
        self._history = history if self.is_person else None
        self._invited, self._invite = os.pipe()
        self._modes = termios.tcgetattr(sys.stdin) if self.is_person and _has_readline() else None
        """Those of the terminal before; None: they are not changed."""
        atexit.register(self.close)  # again, as the thread may just have been about to begin with a line
        # It waits in `input` for ever, and must not keep the process.
        threading.Thread(target=self._read, daemon=True, name="lines").start()

    async def next(self) -> str | None:
        return await self._lines.get()

    def invite(self) -> None:
        """Show the prompt. Without it, it is shown as soon as somebody begins to type."""
        if not self.is_prompting:
            self._is_wanted = True
            os.write(self._invite, b"i")

    def close(self) -> None:
        """The terminal is as before, also if a line was being typed: `input` would have put that right in the end."""
        if self._modes is not None:
            with suppress(termios.error):
                termios.tcsetattr(sys.stdin, termios.TCSANOW, self._modes)
            if self.is_prompting and os.environ.get("TERM", "dumb") != "dumb":
                os.write(sys.stdout.fileno(), b"\x1b[?2004l")  # readline has marked pastes

    def typed(self) -> str:
        """What stands on the line that is being typed."""
        readline = sys.modules.get("readline")
        return str(readline.get_line_buffer()) if readline and self.is_person else ""

    def _read(self) -> None:
        self._load_history()
        with suppress(RuntimeError):  # the loop is closed: nobody reads any more
            while True:
                try:
                    line = input(self._wait()) if self.is_person else _piped()
                except (EOFError, OSError, ValueError, termios.error):
                    break
                self.is_prompting = self._is_wanted = False  # what becomes of this line decides what is next
                self._keep(line)
                self._loop.call_soon_threadsafe(self._lines.put_nowait, line)
            self._loop.call_soon_threadsafe(self._lines.put_nowait, None)

    def _wait(self) -> str:
        """Until the prompt is wanted, or somebody begins to type: then it is shown, and after it what is typed."""
        if self._modes is not None:
            _by_keys(echoes=False)
            while not self._is_wanted:
                ready, _, _ = select.select([self._invited, sys.stdin], [], [])
                if sys.stdin in ready:
                    break
                os.read(self._invited, 4096)
            _by_keys(echoes=True)
        self._is_wanted, self.is_prompting = False, True
        self._on_prompt()
        return self._prompt

    def _load_history(self) -> None:
        if self._history and _has_readline():
            import readline

            readline.set_history_length(LINES_KEPT)
            with suppress(OSError):
                readline.read_history_file(self._history)

    def _keep(self, line: str) -> None:
        if self._history and line.strip():
            with suppress(ImportError, OSError):
                import readline

                self._history.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                readline.write_history_file(self._history)
                self._history.chmod(0o600)


def _has_readline() -> bool:
    try:
        import readline
    except ImportError:  # Pythons without it: the system's own line editing is left as it is
        return False
    return bool(readline.__name__)


def _by_keys(*, echoes: bool) -> None:
    """Each key can be noticed. `echoes`: `input` shows what is typed; else it is kept until then."""
    modes = termios.tcgetattr(sys.stdin)
    modes[3] = modes[3] & ~(termios.ICANON | termios.ECHO) | (termios.ECHO if echoes else 0)
    termios.tcsetattr(sys.stdin, termios.TCSANOW, modes)


def _piped() -> str:
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line.rstrip("\r\n")
