"""Pictures among lines: how large one is, and how many cells of a screen it takes. Draws nothing, and decodes none."""

from __future__ import annotations

from binascii import Error, a2b_base64, crc32
from dataclasses import dataclass
from functools import lru_cache

MOST_COLUMNS, MOST_ROWS = 80, 24
"""Of one picture: it stays in sight with what is said about it."""
LARGEST = 8 << 20
"""Characters of base64. More is not sent to a terminal."""
CELL = 10, 20
"""A cell in pixels, where nobody knows: they are about twice as high as wide."""
PIXELS_IN = 1 << 16
"""Characters in which the size is looked for."""


@dataclass(frozen=True, slots=True)
class PictureSource:
    name: str
    mime_type: str
    data: str
    """Base64."""


@dataclass(frozen=True, slots=True)
class ShownPicture:
    """One that is shown, in so many cells."""

    id: int
    """From 1 to 2^24 - 1: another one for other content, and for another size."""
    mime_type: str
    data: str
    columns: int
    rows: int


@dataclass(frozen=True, slots=True)
class PictureRow:
    """A row of cells of a picture."""

    picture: ShownPicture
    row: int


def fitted(source: PictureSource, columns: int) -> ShownPicture | None:
    """In at most so many columns, with its own proportions; None: its size is not known, or it is too much."""
    size = pixels(source.mime_type, source.data[:PIXELS_IN])
    if size is None or len(source.data) > LARGEST:
        return None
    width, height = size[0] / CELL[0], size[1] / CELL[1]
    share = min(1.0, min(columns, MOST_COLUMNS) / width, MOST_ROWS / height)
    across, down = max(round(width * share), 1), max(round(height * share), 1)
    return ShownPicture(_id(source.data, across, down), source.mime_type, source.data, across, down)


@lru_cache(maxsize=64)
def _id(data: str, columns: int, rows: int) -> int:
    return crc32(f"{columns}x{rows}".encode(), crc32(data.encode())) % 0xFFFFFF + 1


@lru_cache(maxsize=64)
def pixels(mime_type: str, beginning: str) -> tuple[int, int] | None:
    """Width and height, by the first characters of its base64."""
    try:
        data = a2b_base64(beginning[: len(beginning) // 4 * 4])
    except Error:
        return None
    read = {"image/png": _png, "image/gif": _gif, "image/jpeg": _jpeg}.get(mime_type)
    found = read(data) if read else None
    return found if found and all(found) else None


def _number(data: bytes, at: int, length: int) -> int:
    return int.from_bytes(data[at : at + length], "big")


def _png(data: bytes) -> tuple[int, int] | None:
    is_one = data[:8] == b"\x89PNG\r\n\x1a\n" and data[12:16] == b"IHDR" and len(data) >= 24
    return (_number(data, 16, 4), _number(data, 20, 4)) if is_one else None


def _gif(data: bytes) -> tuple[int, int] | None:
    if data[:4] != b"GIF8" or len(data) < 10:
        return None
    return int.from_bytes(data[6:8], "little"), int.from_bytes(data[8:10], "little")


def _jpeg(data: bytes) -> tuple[int, int] | None:
    """From marker to marker, until the one that begins the picture itself."""
    at = 2
    while data[:2] == b"\xff\xd8" and at + 9 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            return _number(data, at + 7, 2), _number(data, at + 5, 2)
        at += 2 + max(_number(data, at + 2, 2), 2)
    return None
