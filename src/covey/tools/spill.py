"""Results that are too long for a model: it gets their beginning and end, and a file with all of it."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path

from covey.machine.replace import replace_file
from covey.tools.base import ToolContext
from covey.tools.files import printable

FILE_LIMIT = 10 * 1024 * 1024
"""Bytes kept of one result. Nobody pages through more."""
FILES_LIMIT = 50
"""Results kept for one session: with the limit above, 500 MB at the very worst. The oldest goes first."""


def bounded(content: str, context: ToolContext, limit: int) -> str:
    """`content` in about `limit` characters, and all of it in `context.spill_dir`. Writes: call it in a thread."""
    if len(content) <= limit:
        return content
    head, tail = _ends(content, limit)
    left_out = len(content) - len(head) - len(tail)
    return f"{head}\n[... {left_out} characters are left out here. {_kept(content, context)} ...]\n{tail}"


def _ends(content: str, limit: int) -> tuple[str, str]:
    """The beginning and the end, whole lines where lines are not long."""
    half = limit // 2
    head = content.rfind("\n", half - half // 4, half)
    tail = content.find("\n", len(content) - half, len(content) - half + half // 4)
    return content[: head if head >= 0 else half], content[tail + 1 if tail >= 0 else len(content) - half :]


def _kept(content: str, context: ToolContext) -> str:
    """A sentence about where the whole text is."""
    if context.spill_dir is None:
        return "Ask for less to see them."
    data = printable(content).encode()
    # Ids of calls come from models, and come again: the digest tells two results of one id apart.
    digest = hashlib.sha256(data).hexdigest()[:8]
    path = context.spill_dir / f"{context.safe_call_id}-{digest}.txt"
    try:
        write_private(path, data[:FILE_LIMIT])
    except OSError as error:
        return f"They could not be kept in a file ({error.strerror}): ask for less to see them."
    what = "The whole text is" if len(data) <= FILE_LIMIT else f"The first {FILE_LIMIT // 1024 // 1024} MB are"
    return printable(f"{what} in {path}: view it with offset, or search it with grep.")


def write_private(path: Path, data: bytes) -> None:
    """In one step, and for nobody else to read: results hold what the user's files hold."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    replace_file(path, data, mode=0o600, keep_mode=False)
    _forget_oldest(path.parent)


def _forget_oldest(directory: Path) -> None:
    with suppress(OSError):
        kept = sorted((entry.stat().st_mtime_ns, entry.name) for entry in os.scandir(directory))
        for _, name in kept[:-FILES_LIMIT]:
            with suppress(OSError):
                (directory / name).unlink()
