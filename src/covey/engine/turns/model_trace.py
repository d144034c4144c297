"""What a run sends to its model and what comes back, in a file for the user (`covey run --debug`).

Bodies only: headers hold keys, and are never written. The files have bounds, and only some are kept.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

MAX_BYTES = 16 * 1024 * 1024
"""Of one run: a conversation of a million tokens, a few times."""
KEPT = 20
"""Files of earlier runs; the oldest goes."""


class ModelTrace:
    """Writes at once, so that nothing is missing when a server is killed. A disk that is full ends it, not the run."""

    def __init__(self, path: Path, now: Callable[[], float]) -> None:
        self._path = path
        self._now = now
        self._descriptor: int | None = None
        self._left = MAX_BYTES

    def __call__(self, what: str, text: str) -> None:
        if self._left <= 0:
            return
        entry = f"=== {self._now():.3f} {what}\n{text}\n".encode("utf-8", "replace")
        self._left -= len(entry)
        if self._left <= 0:
            entry = f"=== more than {MAX_BYTES} bytes: the rest is left out\n".encode()
        try:
            if self._descriptor is None:
                self._descriptor = _opened(self._path)
            os.write(self._descriptor, entry)
        except OSError:
            self._left = 0

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _opened(path: Path) -> int:
    path.parent.mkdir(mode=0o700, exist_ok=True)
    older = sorted(path.parent.glob("*.txt"), key=lambda file: file.stat().st_mtime)
    for file in older[: max(0, len(older) + 1 - KEPT)]:
        with suppress(OSError):
            file.unlink()
    return os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
