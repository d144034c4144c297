"""A QR code as text for a terminal: bytes, error correction L, versions 1 to 10, which is enough for any link of ours.

Our own, since what is needed of the standard (ISO/IEC 18004) fits here, and the libraries bring pictures with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

_LARGEST = 10
_EC_PER_BLOCK = (0, 7, 10, 15, 20, 26, 18, 20, 24, 30, 18)
"""By version: codewords of error correction in each block, at level L."""
_BLOCKS = (0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 4)
_CODEWORDS = (0, 26, 44, 70, 100, 134, 172, 196, 242, 292, 346)
"""All of them, with those of error correction."""
_ALIGNED = ((), (), (6, 18), (6, 22), (6, 26), (6, 30), (6, 34), (6, 22, 38), (6, 24, 42), (6, 26, 46), (6, 28, 50))

_MASKS: tuple[Callable[[int, int], bool], ...] = (
    lambda row, column: (row + column) % 2 == 0,
    lambda row, column: row % 2 == 0,
    lambda row, column: column % 3 == 0,
    lambda row, column: (row + column) % 3 == 0,
    lambda row, column: (row // 2 + column // 3) % 2 == 0,
    lambda row, column: row * column % 2 + row * column % 3 == 0,
    lambda row, column: (row * column % 2 + row * column % 3) % 2 == 0,
    lambda row, column: ((row + column) % 2 + row * column % 3) % 2 == 0,
)

Grid = list[list[bool | None]]


def qr_text(text: str, *, is_dark_on_light: bool = False) -> str:
    """The code in half blocks, with its quiet zone. By default light squares on the dark ground of a terminal."""
    grid = qr_squares(text)
    size = len(grid) + 8
    # A terminal is dark as a rule: there the light squares are drawn, and the dark ones left.
    light = [[not is_dark_on_light] * size for _ in range(size + size % 2)]
    for row, line in enumerate(grid):
        for column, is_dark in enumerate(line):
            light[row + 4][column + 4] = is_dark == is_dark_on_light
    halves = {(True, True): "█", (True, False): "▀", (False, True): "▄", (False, False): " "}
    return "\n".join(
        "".join(halves[pair] for pair in zip(light[row], light[row + 1], strict=True)) for row in range(0, size, 2)
    )


def qr_squares(text: str) -> list[list[bool]]:
    """Rows of dark squares. Raises ValueError for a text that is too long."""
    data = text.encode()
    version = next((v for v in range(1, _LARGEST + 1) if len(data) <= _capacity(v)), 0)
    if not version:
        raise ValueError("the text is too long for a QR code of this size")
    words = _with_correction(_codewords(data, version), version)
    candidates = [_drawn(words, version, mask) for mask in range(8)]
    return min(candidates, key=_penalty)


def _capacity(version: int) -> int:
    bits = 8 * (_CODEWORDS[version] - _EC_PER_BLOCK[version] * _BLOCKS[version])
    return (bits - 4 - _length_bits(version)) // 8


def _length_bits(version: int) -> int:
    return 8 if version < 10 else 16


def _codewords(data: bytes, version: int) -> list[int]:
    """The text as bits: its kind, its length, its bytes, an end, and filling."""
    room = 8 * (_CODEWORDS[version] - _EC_PER_BLOCK[version] * _BLOCKS[version])
    bits = f"0100{len(data):0{_length_bits(version)}b}" + "".join(f"{byte:08b}" for byte in data)
    bits += "0" * min(4, room - len(bits))
    bits += "0" * (-len(bits) % 8)
    words = [int(bits[at : at + 8], 2) for at in range(0, len(bits), 8)]
    return words + [(0xEC, 0x11)[at % 2] for at in range(room // 8 - len(words))]


# ── error correction, over GF(256) ──


def _multiply(a: int, b: int) -> int:
    product = 0
    for bit in range(7, -1, -1):
        product = (product << 1) ^ ((product >> 7) * 0x11D)
        product ^= (b >> bit & 1) * a
    return product


def _divisor(degree: int) -> list[int]:
    result, root = [0] * (degree - 1) + [1], 1
    for _ in range(degree):
        result = [_multiply(c, root) ^ after for c, after in zip(result, [*result[1:], 0], strict=True)]
        root = _multiply(root, 2)
    return result


def _remainder(words: list[int], divisor: list[int]) -> list[int]:
    result = [0] * len(divisor)
    for word in words:
        factor = word ^ result[0]
        result = [after ^ _multiply(c, factor) for after, c in zip([*result[1:], 0], divisor, strict=True)]
    return result


def _with_correction(words: list[int], version: int) -> list[int]:
    """In blocks of nearly the same length, each with its correction, and then one codeword of each in turn."""
    count, divisor = _BLOCKS[version], _divisor(_EC_PER_BLOCK[version])
    short, longer = divmod(len(words), count)
    blocks, at = [], 0
    for number in range(count):
        length = short + (number >= count - longer)
        blocks.append(words[at : at + length])
        at += length
    corrections = [_remainder(block, divisor) for block in blocks]
    woven = [block[i] for i in range(short + 1) for block in blocks if i < len(block)]
    return woven + [part[i] for i in range(len(divisor)) for part in corrections]


# ── drawing ──


def _drawn(words: list[int], version: int, mask: int) -> list[list[bool]]:
    grid = _frame(version)
    _note_format(grid, mask)
    if version >= 7:
        _note_version(grid, version)
    bits = "".join(f"{word:08b}" for word in words)
    hides = _MASKS[mask]
    for at, (row, column) in enumerate(_free(grid)):
        bit = at < len(bits) and bits[at] == "1"
        grid[row][column] = bit != hides(row, column)
    return [[bool(square) for square in line] for line in grid]


def _frame(version: int) -> Grid:
    """The parts by which a camera finds the code. None: free for what it says."""
    size = 17 + 4 * version
    grid: Grid = [[None] * size for _ in range(size)]
    for at in range(size):
        grid[6][at] = grid[at][6] = at % 2 == 0
    for row, column in ((3, 3), (3, size - 4), (size - 4, 3)):
        _rings(grid, row, column, 4, {2, 4})
    places = _ALIGNED[version]
    corners = {(6, 6), (6, size - 7), (size - 7, 6)}
    for row in places:
        for column in places:
            if (row, column) not in corners:
                _rings(grid, row, column, 2, {1})
    return grid


def _rings(grid: Grid, row: int, column: int, reach: int, light: set[int]) -> None:
    for r in range(max(0, row - reach), min(len(grid), row + reach + 1)):
        for c in range(max(0, column - reach), min(len(grid), column + reach + 1)):
            grid[r][c] = max(abs(r - row), abs(c - column)) not in light


def _note_format(grid: Grid, mask: int) -> None:
    """Level L and the mask, twice, with a correction of their own."""
    data, size = 0b01 << 3 | mask, len(grid)
    rest = data
    for _ in range(10):
        rest = rest << 1 ^ (rest >> 9) * 0x537
    bits = (data << 10 | rest) ^ 0x5412
    around = [(row, 8) for row in (0, 1, 2, 3, 4, 5, 7, 8)] + [(8, column) for column in (7, 5, 4, 3, 2, 1, 0)]
    apart = [(8, size - 1 - i) for i in range(8)] + [(size - 15 + i, 8) for i in range(8, 15)]
    for places in (around, apart):
        for i, (row, column) in enumerate(places):
            grid[row][column] = bool(bits >> i & 1)
    grid[size - 8][8] = True


def _note_version(grid: Grid, version: int) -> None:
    rest, size = version, len(grid)
    for _ in range(12):
        rest = rest << 1 ^ (rest >> 11) * 0x1F25
    bits = version << 12 | rest
    for i in range(18):
        a, b = size - 11 + i % 3, i // 3
        grid[a][b] = grid[b][a] = bool(bits >> i & 1)


def _free(grid: Grid) -> list[tuple[int, int]]:
    """The squares that are left, in columns of two from the right, up and down in turn."""
    size = len(grid)
    places = []
    for right in (*range(size - 1, 6, -2), 5, 3, 1):
        is_upward = (right + 1) & 2 == 0
        for at in range(size):
            row = size - 1 - at if is_upward else at
            places += [(row, column) for column in (right, right - 1) if grid[row][column] is None]
    return places


# ── which mask is read best ──


def _penalty(grid: list[list[bool]]) -> int:
    lines = [*grid, *(list(column) for column in zip(*grid, strict=True))]
    points = sum(length - 2 for line in lines for length in _lengths(line) if length >= 5)
    pattern = [True, False, True, True, True, False, True]
    for wanted in ([*pattern, *[False] * 4], [*[False] * 4, *pattern]):
        points += 40 * sum(line[at : at + 11] == wanted for line in lines for at in range(len(line) - 10))
    for above, below in pairwise(grid):
        pairs = zip(above, above[1:], below, below[1:], strict=False)
        points += 3 * sum(a == b == c == d for a, b, c, d in pairs)
    dark = sum(map(sum, grid))
    return points + 10 * (abs(20 * dark - 10 * len(grid) ** 2) // len(grid) ** 2)


def _lengths(line: list[bool]) -> Iterator[int]:
    start = 0
    for at in range(1, len(line) + 1):
        if at == len(line) or line[at] != line[start]:
            yield at - start
            start = at
