"""Reading git's index: which content each file of a repository had when git last looked. Pure.

The format is git's own (gitformat-index): versions 2 to 4. What is meant for git alone, such as the stage of a merge,
is passed over. An index that is kept in two files cannot be read from one of them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

_HEADER = struct.Struct(">4sII")
_STAT = struct.Struct(">10I")
_LONG = 0x0FFF
"""A name is this long, or longer."""
_EXTENDED = 0x4000
_STAGE = 0x3000


class BadIndex(Exception):
    """Not an index, or not one that can be read by itself."""


class IndexEntry(NamedTuple):
    path: bytes
    """From the top of the work tree."""
    mode: int
    oid: str
    size: int
    """Of the file on the disk, when git last looked. Its content in git has another size if git converts it."""


def entries(data: bytes, oid_size: int) -> Iterator[IndexEntry]:
    """All files, in the order of their paths. `oid_size`: bytes of an object's id, 20 or 32."""
    try:
        signature, version, count = _HEADER.unpack_from(data)
        if signature != b"DIRC" or version not in (2, 3, 4):
            raise BadIndex
        offset, path = _HEADER.size, b""
        for _ in range(count):
            start = offset
            *_, mode, _uid, _gid, size = _STAT.unpack_from(data, offset)
            offset += _STAT.size
            oid = data[offset : offset + oid_size]
            flags = int.from_bytes(data[offset + oid_size : offset + oid_size + 2], "big")
            offset += oid_size + (4 if flags & _EXTENDED and version > 2 else 2)
            if version == 4:
                removed, offset = _number(data, offset)
                end = data.index(b"\0", offset)
                path = path[: len(path) - removed] + data[offset:end]
                offset = end + 1
            else:
                length = flags & _LONG
                end = offset + length if length < _LONG else data.index(b"\0", offset)
                path = data[offset:end]
                offset = start + (end - start + 8 & ~7)
            if not flags & _STAGE:
                yield IndexEntry(path, mode, oid.hex(), size)
        _check_extensions(data, offset, oid_size)
    except (struct.error, ValueError, IndexError):
        raise BadIndex from None


def _number(data: bytes, offset: int) -> tuple[int, int]:
    byte = data[offset]
    value = byte & 0x7F
    while byte & 0x80:
        offset += 1
        byte = data[offset]
        value = ((value + 1) << 7) | (byte & 0x7F)
    return value, offset + 1


def _check_extensions(data: bytes, offset: int, oid_size: int) -> None:
    end = len(data) - oid_size
    while offset + 8 <= end:
        name, size = data[offset : offset + 4], int.from_bytes(data[offset + 4 : offset + 8], "big")
        if name == b"link":
            raise BadIndex  # most of its files are in another one
        offset += 8 + size
