"""What snapshots keep, in a directory of ours: contents of small files by their digest, and copies of git's index."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
from pathlib import Path

from covey.context.snapshot import SeenFile, Snapshot
from covey.context.stand_in import GitRepository
from covey.machine.regular import NotRegular, open_regular
from covey.machine.replace import create_new

KEPT_BYTES = 64 * 1024 * 1024
"""Of all contents together. Beyond it files are compared, but not kept."""

_INDEX_BYTES = 256 * 1024 * 1024
"""Of an index: two million files."""


def digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class Contents:
    """Everything here blocks; one thread at a time may call it."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._sizes: dict[str, int] = {}
        """By digest."""
        self._total = 0
        self._number = 0
        self.permissions = 0
        """Of a new file that may be executed, as the umask has it."""

    def open(self) -> None:
        if not self._number:  # what an earlier server has left
            shutil.rmtree(self._directory, ignore_errors=True)
        self._number += 1
        (self._directory / "contents").mkdir(mode=0o700, parents=True, exist_ok=True)
        if self._number == 1:
            with create_new(self._directory / "new", 0o777) as file:
                self.permissions = stat.S_IMODE(os.fstat(file.fileno()).st_mode)

    def clear(self) -> None:
        shutil.rmtree(self._directory, ignore_errors=True)
        self._sizes.clear()
        self._total = self._number = 0

    def keep(self, mode: int, content: bytes, permissions: int) -> SeenFile:
        digest = digest_of(content)
        if digest not in self._sizes and self._total + len(content) <= KEPT_BYTES:
            with create_new(self._path(digest), 0o600) as file:
                file.write(content)
            self._sizes[digest] = len(content)
            self._total += len(content)
        return SeenFile(mode, digest, len(content), is_kept=digest in self._sizes, permissions=permissions)

    def read(self, digest: str) -> bytes | None:
        with contextlib.suppress(OSError):
            content = self._path(digest).read_bytes()
            if digest_of(content) == digest:
                return content
        return None

    def _path(self, digest: str) -> Path:
        return self._directory / "contents" / digest

    def let_go(self, known: Snapshot | None, index: Path | None) -> None:
        """What this snapshot needs stays; the rest belongs to snapshots that nobody will compare any more."""
        needed = {loose.version.digest for loose in known.loose.values() if loose.version} if known else set()
        for digest in self._sizes.keys() - needed:
            self._path(digest).unlink(missing_ok=True)
            self._total -= self._sizes.pop(digest)
        stay = {index, known.index if known else None}
        for path in self._directory.glob("index-*"):
            if path not in stay:
                path.unlink(missing_ok=True)

    def copy_index(self, repository: GitRepository | None) -> tuple[Path | None, bytes]:
        """A copy that stays as it is, and what tells it from others; None if there is no index that can be read.

        It has the time of the original, by which git knows what may have changed since.
        """
        if repository is None:
            return None, b""
        try:
            with open_regular(repository.git_dir / "index") as (source, status):
                data = source.read(_INDEX_BYTES)
        except (NotRegular, OSError):
            return None, b""
        copy = self._directory / f"index-{self._number}"
        with create_new(copy, 0o600) as file:
            file.write(data)
        os.utime(copy, ns=(status.st_mtime_ns, status.st_mtime_ns))
        return copy, hashlib.sha256(data).digest()
