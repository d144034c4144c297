"""A terminal while it is ours: inputs come out of it, frames go in.

    async with Terminal() as terminal:
        terminal.show(draw(terminal.width, terminal.height))
        async for given in terminal:
            ...
            terminal.show(frame)

However the block is left, the terminal is as before. Iteration ends when the terminal is gone, or the process is told
to end; `ended_by` says by which signal. While nothing happens nothing runs and nothing is written.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Self, assert_never

from covey.lines.theme import DARK, LIGHT, VARIABLE, Theme, choose_theme
from covey.tui.frame import ScreenFrame
from covey.tui.inputs import Resize, TerminalInput
from covey.tui.terminal import modes, outside
from covey.tui.terminal.mode_guard import ModeGuard
from covey.tui.terminal.painter import ScreenLook, paint
from covey.tui.terminal.tty import Aside, Tty
from covey.tui.terminal.writer import TtyWriter

if TYPE_CHECKING:
    from covey.tui.terminal.decoder import Decoded, Decoder
    from covey.tui.terminal.facts import TerminalFact
    from covey.tui.terminal.pictures import Gallery, Pictures

READ_AT_ONCE = 1 << 20
"""Bytes, before somebody else gets his turn in the event loop."""
MOST_INPUTS = 4096
"""That wait to be taken; until then no more is read."""
RESIZE_EVERY_S = 0.05
"""While a window is dragged: each new size is laid out, and twenty in a second are enough to follow it."""
LAST_WORDS_S = 0.5
"""For a terminal that takes nothing, when we leave."""
_ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
_SIGNALS = (*_ENDING, signal.SIGWINCH, signal.SIGTSTP, signal.SIGCONT)
_CLIPBOARD = 52
"""In the device attributes of terminals that take what is copied (OSC 52)."""


class Terminal:
    def __init__(
        self,
        fd: int = 0,
        *,
        env: Mapping[str, str] = os.environ,
        log: str | os.PathLike[str] | None = None,
        mouse: bool = True,
        theme: Theme | None = None,
    ) -> None:
        """`log` takes what is printed meanwhile. `theme`: None leaves it to the environment and the terminal."""
        self.ended_by = 0
        """The signal that ended it; 0: none did."""
        self.name = ""
        """As the terminal calls itself, once it has said so."""
        self.knows_osc52 = False
        self.picture_types: frozenset[str] = frozenset()
        """Kinds of pictures that can be shown here."""
        self._fd, self._env, self._log, self._mouse = fd, env, log, mouse
        self._follows_background = theme is None and VARIABLE not in env
        self._theme = theme or choose_theme(env, is_terminal=True)
        self._inputs: deque[TerminalInput] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._watcher: Callable[[], None] | None = None
        self._frame: ScreenFrame | None = None
        """The newest."""
        self._shown: ScreenFrame | None = None
        """What the screen shows; None: it is not known."""
        self._is_flush_due = False
        self._expiry: asyncio.TimerHandle | None = None
        self._resizing: asyncio.TimerHandle | None = None
        self._guard: ModeGuard | None = None
        self._gallery: Gallery | None = None
        self._asking: asyncio.Task[None] | None = None
        self._is_ours = False
        self._has_ended = False
        self._has_asked = False

    # ── coming and going ──

    async def __aenter__(self) -> Self:
        """Raises OSError if there is no terminal."""
        self._loop = asyncio.get_running_loop()
        self._tty = Tty(self._fd)
        width, height = self._tty.size()
        self._look = ScreenLook(width, height, self._theme, has_links=self._env.get("TERM") not in modes.UNASKED)
        self._aside = Aside(self._log)
        self._writer = TtyWriter(self._tty.fd, self._schedule, self._end)
        self._handlers: dict[int, Any] = {number: signal.signal(number, self._signalled) for number in _SIGNALS}
        try:
            self._take()
        except BaseException:
            self._leave()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()

    def _leave(self) -> None:
        self._give_back()
        self._end()
        if self._asking:
            self._asking.cancel()
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._aside.end()
        if self._guard:
            self._guard.dismiss()
        self._tty.close()

    def _take(self) -> None:
        """The modes and the screen are ours."""
        self._tty.make_raw()
        self._writer.write(modes.on(mouse=self._mouse))
        self._loop.add_reader(self._tty.fd, self._read)
        self._is_ours = True
        self.redraw()
        self._measure()

    def _give_back(self) -> None:
        """Everything is as it was; what has not been shown is not shown any more."""
        if not self._is_ours:
            return
        self._is_ours = False
        self._loop.remove_reader(self._tty.fd)
        for timer in (self._expiry, self._resizing):
            if timer:
                timer.cancel()
        self._expiry = self._resizing = None
        pictures = self._gallery.empty() if self._gallery else b""
        self._writer.finish(pictures + modes.OFF, modes.BREAK, LAST_WORDS_S)
        self._tty.restore()

    def suspend(self) -> None:
        """To the shell; returns when it is continued. The whole job stops, as with ctrl+z in any program."""
        self._give_back()
        for number in (signal.SIGTSTP, signal.SIGCONT):
            signal.signal(number, signal.SIG_DFL)
        os.kill(0, signal.SIGTSTP)
        for number in (signal.SIGTSTP, signal.SIGCONT):
            signal.signal(number, self._signalled)
        self._take()

    async def run(self, command: Sequence[str]) -> int:
        """A program that has the terminal meanwhile, such as an editor. Gives its exit code; raises OSError."""
        self._give_back()
        own = self._tty.plain_fd
        try:
            process = await asyncio.create_subprocess_exec(*command, stdin=own, stdout=own, stderr=own)
            return await process.wait()
        finally:
            if not self._has_ended:
                self._take()

    # ── out ──

    @property
    def width(self) -> int:
        return self._look.width

    @property
    def height(self) -> int:
        return self._look.height

    @property
    def theme(self) -> Theme:
        return self._look.theme

    def use_theme(self, theme: Theme) -> None:
        self._follows_background = False
        self._set_look(replace(self._look, theme=theme))

    def use_mouse(self, is_on: bool) -> None:
        """Off: the terminal's own selection works again."""
        self._mouse = is_on
        if self._is_ours:
            self._writer.write(modes.MOUSE_ON if is_on else modes.MOUSE_OFF)

    def show(self, frame: ScreenFrame) -> None:
        """Returns at once. Of frames that come faster than the terminal takes them the newest is shown."""
        self._frame = frame
        self._schedule()

    def _use_pictures(self, form: Pictures) -> None:
        from covey.tui.terminal.pictures import Gallery, types  # late: few screens have one

        self._gallery, self.picture_types = Gallery(form), types(form)
        self._set_look(replace(self._look, pictures=form))

    def redraw(self) -> None:
        """Whatever is on the screen, draw all of it again."""
        self._shown = None
        self._schedule()

    def send(self, data: bytes) -> None:
        """Something that is not part of the screen, such as a notification."""
        if self._is_ours and data:
            self._writer.write(data)

    def notify(self, title: str, body: str) -> None:
        self.send(outside.notice(title, body, self.name, self._env))

    def _set_look(self, look: ScreenLook) -> None:
        if look != self._look:
            self._look = look
            self.redraw()

    def _schedule(self) -> None:
        if not self._is_flush_due and self._is_ours:
            self._is_flush_due = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._is_flush_due = False
        if self._writer.is_busy or not self._is_ours or not self._frame:
            return  # when it is free, this is called again
        before = self._gallery.hang(self._frame) if self._gallery else b""
        if data := before + paint(self._shown, self._frame, self._look):
            self._writer.write(data)
        self._shown = self._frame
        if not self._has_asked:
            self._has_asked = True
            self._ask()

    def _ask(self) -> None:
        """After the first frame, which waits neither for answers nor for the guard."""
        if self._env.get("TERM", "") not in modes.UNASKED:
            self._writer.write(modes.QUESTIONS)
        self._guard = ModeGuard(self._tty.plain_fd, self._tty.attributes)
        if self._env.get("TMUX"):
            self._asking = self._loop.create_task(self._ask_tmux())

    async def _ask_tmux(self) -> None:
        from covey.tui.terminal.pictures import asked_of_tmux

        self._use_pictures(await asked_of_tmux(self._env))

    # ── in ──

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> TerminalInput:
        while not self._inputs:
            if self._has_ended:
                raise StopAsyncIteration
            self._waiter = self._loop.create_future()
            await self._waiter
        if len(self._inputs) == MOST_INPUTS and self._is_ours:
            self._loop.add_reader(self._tty.fd, self._read)
        return self._inputs.popleft()

    @cached_property
    def _decoder(self) -> Decoder:
        from covey.tui.terminal.decoder import Decoder  # late: the first frame does not wait for it

        return Decoder()

    @property
    def waiting(self) -> Sequence[TerminalInput]:
        """Inputs that nobody has taken yet."""
        return tuple(self._inputs)

    def watch(self, watcher: Callable[[], None] | None) -> None:
        """Called when an input comes, which stays there to be taken."""
        self._watcher = watcher

    def _put(self, given: TerminalInput) -> None:
        self._inputs.append(given)
        self._wake()
        if self._watcher:
            self._watcher()

    def _wake(self) -> None:
        if self._waiter and not self._waiter.done():
            self._waiter.set_result(None)

    def _read(self) -> None:
        pieces: list[bytes] = []
        size = 0
        while size < READ_AT_ONCE:
            try:
                piece = os.read(self._tty.fd, 1 << 16)
            except (BlockingIOError, InterruptedError):
                break
            except OSError:
                piece = b""
            if not piece:
                self._loop.remove_reader(self._tty.fd)
                self._end()
                break
            pieces.append(piece)
            size += len(piece)
        self._decoded(self._decoder.feed(b"".join(pieces), self._loop.time()))

    def _expired(self) -> None:
        self._expiry = None
        self._decoded(self._decoder.expire())

    def _decoded(self, decoded: Sequence[Decoded]) -> None:
        for each in decoded:
            self._take_in(each)
        if self._expiry:
            self._expiry.cancel()
        patience_s = self._decoder.patience_s
        self._expiry = None if patience_s is None else self._loop.call_later(patience_s, self._expired)
        if len(self._inputs) >= MOST_INPUTS:
            self._loop.remove_reader(self._tty.fd)

    def _take_in(self, decoded: Decoded) -> None:
        if isinstance(decoded, TerminalInput):
            self._put(decoded)
        else:
            self._learn(decoded)

    def _learn(self, fact: TerminalFact) -> None:
        from covey.tui.terminal.facts import (  # late, as the decoder
            Background,
            DeviceAttributes,
            SynchronizedOutput,
            TerminalName,
        )
        from covey.tui.terminal.pictures import known_by

        match fact:
            case Background(is_light):
                if self._follows_background and self._look.theme in (DARK, LIGHT):
                    self._set_look(replace(self._look, theme=LIGHT if is_light else DARK))
            case SynchronizedOutput(is_there):
                self._look = replace(self._look, is_synchronized=is_there)
            case TerminalName(name):
                self.name = name
                self._use_pictures(known_by(name, self._env))
            case DeviceAttributes(numbers):
                self.knows_osc52 = _CLIPBOARD in numbers
            case _:
                assert_never(fact)

    # ── signals ──

    def _signalled(self, number: int, frame: FrameType | None) -> None:
        """In the main thread, between two steps of whatever runs."""
        if number not in _ENDING:
            self._loop.call_soon_threadsafe(self._asked, number)
        elif not self._is_ours and number == signal.SIGINT:
            return  # ctrl+c for the program that has the terminal
        elif self.ended_by:
            self._give_back()  # again: whatever goes on, it is over now
            os._exit(128 + number)
        else:
            self.ended_by = number
            self._loop.call_soon_threadsafe(self._end)

    def _asked(self, number: int) -> None:
        if number == signal.SIGWINCH:
            self._resizing = self._resizing or self._loop.call_later(0, self._measure)
        elif number == signal.SIGTSTP and self._is_ours:
            self.suspend()
        elif number == signal.SIGCONT and self._is_ours:
            # It was stopped without being asked, and a shell has set modes of its own meanwhile.
            self._give_back()
            self._take()

    def _measure(self) -> None:
        width, height = self._tty.size()
        if (width, height) != (self._look.width, self._look.height):
            self._look, self._shown = replace(self._look, width=width, height=height), None
            self._put(Resize(width, height))
            self._resizing = self._loop.call_later(RESIZE_EVERY_S, self._measure)
        else:
            self._resizing = None

    def _end(self) -> None:
        """No more inputs; what is there can still be taken."""
        self._has_ended = True
        self._wake()
