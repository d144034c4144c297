"""What a session has seen of its files, read from what is stored of it: so that a restart does not make it forget.

The result of each call that showed or wrote a file holds which version that was. What a prompt brought along counts
too, if it is the whole file as it is now.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from covey.machine.regular import NotRegular, open_regular
from covey.protocol.messages import BinaryPart, Message
from covey.tools.files import FileStamp

ATTACHED_LIMIT = 1024 * 1024
"""Bytes of an attachment that is compared with its file. Larger ones are viewed once more."""


class _Metadata(msgspec.Struct, frozen=True):
    seen: tuple[tuple[str, int, int], ...] = ()


def seen_fact(*seen: tuple[Path, FileStamp]) -> dict[str, Any]:
    """For the metadata of a result that showed or wrote these versions of files."""
    facts = [[os.fspath(path), version.mtime_ns, version.size] for path, version in seen if _can_be_sent(path)]
    return {"seen": facts} if facts else {}


def _can_be_sent(path: Path) -> bool:
    """A name that is no UTF-8 cannot: such a file has to be viewed again after a restart."""
    try:
        os.fspath(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def seen_in(messages: Iterable[Message]) -> Iterator[tuple[Path, FileStamp]]:
    """What the calls in these messages have seen, the oldest first."""
    for message in messages:
        for result in message.tool_results:
            if '"seen"' in result.metadata:
                yield from _seen(result.metadata)


def _seen(metadata: str) -> Iterator[tuple[Path, FileStamp]]:
    try:
        facts = msgspec.json.decode(metadata, type=_Metadata).seen
    except msgspec.MsgspecError:  # of a tool that means something else by it
        return
    for path, mtime_ns, size in facts:
        yield Path(path), FileStamp(mtime_ns, size)


def brought_along(messages: Iterable[Message], root: Path) -> Iterator[tuple[Path, FileStamp]]:
    """Files of the workspace that prompts hold as they are now, whole. Blocks."""
    for message in messages:
        for part in message.parts:
            if isinstance(part, BinaryPart) and part.data.Path and (found := _same(part, root)):
                yield found


def _same(part: BinaryPart, root: Path) -> tuple[Path, FileStamp] | None:
    try:
        path = (root / part.data.Path).resolve()
        content = base64.b64decode(part.data.Data)
        if len(content) > ATTACHED_LIMIT or not path.is_relative_to(root):
            return None
        with open_regular(path) as (file, status):
            stored = file.read(ATTACHED_LIMIT + 1)
    except (OSError, ValueError, RuntimeError, binascii.Error, NotRegular):
        return None
    return (path, FileStamp(status.st_mtime_ns, status.st_size)) if stored == content else None
