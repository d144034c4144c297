"""What a command or a page gives: shown in bounded memory, and kept whole in a file when it is too long to be shown."""

from __future__ import annotations

import codecs
import logging
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from covey.machine.replace import create_new
from covey.protocol.printed import SequenceFilter, overdrawn
from covey.tools.base import ToolContext
from covey.tools.live_output import LiveOutput
from covey.tools.spill import FILE_LIMIT, FILES_LIMIT

log = logging.getLogger(__name__)


class Spill:
    """A file for all of a result that is too long to show, written while it comes, up to `FILE_LIMIT`.

    A disk that refuses costs the file, never the result. Everything here blocks; one thread at a time may call it.
    """

    def __init__(self, directory: Path, name: str) -> None:
        self._directory = directory
        self._name = name
        self._file: BinaryIO | None = None
        self._size = 0
        self._failed = False
        self.path: Path | None = None
        """Where it is; None: nothing was written, or it could not be."""
        self.is_whole = True
        """Nothing had to be left out."""

    @property
    def is_full(self) -> bool:
        """What comes now need not be written any more."""
        return self._failed or self._size >= FILE_LIMIT

    def write(self, data: bytes) -> None:
        if self._failed or not data:
            return
        piece = data[: FILE_LIMIT - self._size]
        self.is_whole = self.is_whole and len(piece) == len(data)
        try:
            if self._file is None:
                self._open()
            assert self._file is not None
            self._file.write(piece)
            self._size += len(piece)
        except OSError as error:
            log.warning("a long result is not kept in %s: %s", self._directory, error)
            self._give_up()

    def close(self) -> None:
        if self._file is not None:
            try:
                self._file.close()
            except OSError as error:  # the last bytes found no room
                log.warning("a long result is not kept in %s: %s", self._directory, error)
                self._give_up()
            self._file = None

    def note(self) -> str:
        """A sentence for the model; empty if there is no file."""
        if self.path is None:
            return ""
        what = "All of it is" if self.is_whole else f"Its first {FILE_LIMIT // 1024 // 1024} MB are"
        return f"{what} in {self.path}: view it with offset, or search it."

    def _open(self) -> None:
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        _make_room(self._directory)
        path = self._directory / f"{self._name}-{secrets.token_hex(4)}.txt"
        self._file = create_new(path, 0o600)
        self.path = path

    def _give_up(self) -> None:
        self._failed = True
        if self.path is not None:
            with suppress(OSError):
                self.path.unlink()
            self.path = None


class Output:
    """The beginning and the end of a stream of any length, in not much more than `limit` bytes of memory.

    With a `spill`, what is longer goes there in full: `work` gives what has to be written, which must not be done on
    the event loop. With `live`, people see what comes at once: then `add` must be called on the event loop.
    """

    def __init__(self, limit: int, spill: Spill | None = None, live: LiveOutput | None = None) -> None:
        self.limit = limit
        self.spill = spill
        self._live = live
        self._head_limit = limit - limit // 2
        self._tail_limit = limit // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._cut = 0
        self._unspilled = bytearray()
        self._heir: Output | None = None

    @property
    def size(self) -> int:
        """All that ever came."""
        return len(self._head) + len(self._tail) + self._cut

    @property
    def dropped(self) -> int:
        return self._cut + max(0, len(self._tail) - self._tail_limit)

    def hand_over(self, heir: Output) -> None:
        """What comes from now on goes to `heir`, which also shows it to people."""
        self._heir, self._live = heir, None

    def add(self, data: bytes) -> None:
        if self._heir:
            self._heir.add(data)
            return
        if self._live:
            self._live.add(data)
        self._keep(data)

    def _keep(self, data: bytes) -> None:
        if self.spill and self.size + len(data) > self.limit:
            self._put_aside(data, self.spill)
        room = self._head_limit - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        if len(self._tail) > 2 * self._tail_limit:  # not with each read, so that each byte is moved only once
            self._cut_tail()

    def work(self) -> Callable[[], None] | None:
        """What has to be written now, if anything. Blocks."""
        if not self.spill or not self._unspilled:
            return None
        spill, data = self.spill, bytes(self._unspilled)
        self._unspilled.clear()
        return lambda: spill.write(data)

    def text(self) -> str:
        return self._bytes().decode("utf-8", "replace")

    def _put_aside(self, data: bytes, spill: Spill) -> None:
        if self.size <= self.limit:  # nothing has been dropped yet, and from here on all is put aside
            self._unspilled += self._head + self._tail
        if not spill.is_full:
            self._unspilled += data
        elif data:
            spill.is_whole = False

    def _bytes(self) -> bytes:
        self._cut_tail()
        note = f"\n[... {self._cut} bytes are left out here ...]\n" if self._cut else ""
        return bytes(self._head + note.encode() + self._tail)

    def _cut_tail(self) -> None:
        excess = max(0, len(self._tail) - self._tail_limit)
        del self._tail[:excess]
        self._cut += excess


class CommandOutput(Output):
    """What a command prints, for the model: without escape sequences, and each line as it was left.

    People who watch, by `live`, get all of it. What is put aside has each state of a line.
    """

    def __init__(self, limit: int, spill: Spill | None = None, live: LiveOutput | None = None) -> None:
        super().__init__(limit, spill, live)
        # Before anything is cut, so that no cut goes through a sequence.
        self._filter = SequenceFilter()

    def hand_over(self, heir: Output) -> None:
        super().hand_over(heir)
        heir._keep(self._filter.take_begun())

    def text(self) -> str:
        return overdrawn((self._bytes() + self._filter.rest()).decode("utf-8", "replace"))

    def _keep(self, data: bytes) -> None:
        super()._keep(self._filter.passed(data))


class Unread(CommandOutput):
    """What came since somebody last looked. `on_news` is called with each piece."""

    def __init__(self, limit: int, on_news: Callable[[bytes], None], live: LiveOutput | None = None) -> None:
        super().__init__(limit, live=live)
        self._on_news = on_news
        # A character may come in two pieces, and a look fall in between.
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def add(self, data: bytes) -> None:
        super().add(data)
        if data:
            self._on_news(data)

    def take(self, *, last: bool) -> str:
        """What is new; with `last`, nothing will come any more."""
        rest = self._filter.rest() if last else b""
        text = self._decoder.decode(self._bytes() + rest, last)
        self._head.clear()
        self._tail.clear()
        self._cut = 0
        if last:
            self._filter.take_begun()
        return overdrawn(text)


def spill_for(context: ToolContext, tool: str) -> Spill | None:
    """A file for the result of this call, if there is a place for it."""
    return Spill(context.spill_dir, f"{tool}-{context.safe_call_id}") if context.spill_dir else None


def _make_room(directory: Path) -> None:
    with suppress(OSError):
        files = sorted(directory.glob("*.txt"), key=lambda path: path.stat().st_mtime_ns)
        for path in files[: len(files) - FILES_LIMIT + 1]:
            path.unlink()
