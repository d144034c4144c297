"""Pictures in terminals that can show them: which do, and in which form. As bytes; pure but for what was sent already.

The kitty protocol draws a picture wherever certain characters stand, which name it by their colour, and a cell of it by
their accents. So a picture is text to the painter, to tmux, and to whatever scrolls; only its content is sent before.
Elsewhere (OSC 1337) it is drawn over blanks when all of its rows are on the screen, and goes when these are written.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping
from typing import Literal

from covey.lines.pictures import PictureRow, ShownPicture
from covey.tui.frame import ScreenFrame
from covey.tui.terminal.cells import PLACEHOLDER
from covey.tui.terminal.outside import through_tmux

Pictures = Literal["", "kitty", "kitty in tmux", "iterm"]
"""How a terminal shows pictures; '': it does not, or nobody knows."""
VARIABLE = "COVEY_PICTURES"
"""`none`, or one of these by name, for a terminal that says nothing of itself."""
KEPT = 16
"""Pictures that a terminal keeps for us; those that were out of sight for the longest time are deleted."""
_CHUNK = 4096
_TYPES: Mapping[Pictures, frozenset[str]] = {
    "": frozenset(),
    "kitty": frozenset({"image/png"}),
    "kitty in tmux": frozenset({"image/png"}),
    "iterm": frozenset({"image/png", "image/jpeg", "image/gif"}),
}
_KITTY = re.compile(r"ghostty|kitty\((\d+)\.(\d+)")
_ITERM = ("iterm2", "wezterm", "mintty")
"""Names that terminals answer with. Others may say that they know the first protocol, and print its characters."""
_KITTY_SINCE = 0, 28
"""Older ones know the protocol, and not that characters may stand for a picture."""
_PASSES = ("1", "on", "all")
"""How tmux says that it hands on what is for the terminal around it: 3.3 says the first."""
_TMUX_QUESTION = ("tmux", "display-message", "-p", "#{client_termtype} #{allow-passthrough}")
_ACCENTS = "".join(
    map(
        chr,
        (
            *(0x305, 0x30D, 0x30E, 0x310, 0x312, 0x33D, 0x33E, 0x33F, 0x346, 0x34A, 0x34B, 0x34C, 0x350, 0x351, 0x352),
            *(0x357, 0x35B, *range(0x363, 0x370), *range(0x483, 0x488), *range(0x592, 0x596), *range(0x597, 0x59A)),
            *(*range(0x59C, 0x5A2), 0x5A8, 0x5A9, 0x5AB, 0x5AC, 0x5AF, 0x5C4, *range(0x610, 0x618)),
            *(*range(0x657, 0x65C), 0x65D, 0x65E, *range(0x6D6, 0x6DD)),
        ),
    )
)
"""In the order of the protocol: each is a number, of a row or of a column."""
MOST_CELLS = len(_ACCENTS)


def known_by(name: str, env: Mapping[str, str]) -> Pictures:
    """By what the terminal calls itself; in tmux that says nothing."""
    if chosen := _chosen(env):
        return chosen
    if VARIABLE in env or env.get("TMUX"):
        return ""
    if _draws_placeholders(name):
        return "kitty"
    return "iterm" if any(each in name.lower() for each in _ITERM) else ""


def _draws_placeholders(name: str) -> bool:
    found = _KITTY.search(name.lower())
    return found is not None and (not found[1] or (int(found[1]), int(found[2])) >= _KITTY_SINCE)


def _chosen(env: Mapping[str, str]) -> Pictures:
    wanted = env.get(VARIABLE, "")
    if wanted == "kitty":
        return "kitty in tmux" if env.get("TMUX") else "kitty"
    return "iterm" if wanted == "iterm" else ""


async def asked_of_tmux(env: Mapping[str, str]) -> Pictures:
    """Which terminal is around tmux, and whether it hands on what is for that one: only tmux can tell."""
    if VARIABLE in env:
        return _chosen(env)
    pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    try:
        process = await asyncio.create_subprocess_exec(*_TMUX_QUESTION, stdout=pipe, stderr=nothing, stdin=nothing)
    except OSError:
        return ""
    said, _ = await process.communicate()
    return known_by_tmux(said.decode("utf-8", "replace"))


def known_by_tmux(said: str) -> Pictures:
    """By its answer."""
    name, _, passes = said.strip().rpartition(" ")
    return "kitty in tmux" if passes in _PASSES and _draws_placeholders(name) else ""


def types(form: Pictures) -> frozenset[str]:
    """Kinds of pictures that can be shown so."""
    return _TYPES[form]


def in_frame(frame: ScreenFrame) -> Iterator[tuple[int, int, PictureRow]]:
    """Rows of pictures: on which row, from which column."""
    for number, row in enumerate(frame.rows):
        column = 0
        for span in row.spans:
            if span.picture:
                yield number, column, span.picture
            column += len(span.text)  # what stands before a picture is a margin


def placeholders(shown: PictureRow) -> str:
    """The characters that stand for a row of a picture. Each names its cell: any of them may be written alone."""
    row = _ACCENTS[shown.row]
    return "".join(f"{PLACEHOLDER}{row}{_ACCENTS[column]}" for column in range(shown.picture.columns))


def colour(picture: ShownPicture) -> str:
    """The parameters of SGR that name it."""
    return f"38;2;{picture.id >> 16};{picture.id >> 8 & 255};{picture.id & 255}"


class Gallery:
    """What the terminal has been sent of pictures, by the kitty protocol."""

    def __init__(self, form: Pictures) -> None:
        self._is_in_tmux = form == "kitty in tmux"
        self._is_needed = form.startswith("kitty")
        self._sent: dict[int, None] = {}
        """Those shown last are at the end."""

    def hang(self, frame: ScreenFrame) -> bytes:
        """What must be written before this frame: pictures that the terminal has not got, and the end of old ones."""
        if not self._is_needed:
            return b""
        out = b""
        for picture in {shown.picture.id: shown.picture for _, _, shown in in_frame(frame)}.values():
            if picture.id not in self._sent:
                out += self._sending(picture)
            else:
                del self._sent[picture.id]
            self._sent[picture.id] = None
        while len(self._sent) > KEPT:
            out += self._deleting(next(iter(self._sent)))
        return out

    def empty(self) -> bytes:
        """All of them are deleted."""
        return b"".join(self._deleting(each) for each in list(self._sent))

    def _sending(self, picture: ShownPicture) -> bytes:
        pieces = [picture.data[at : at + _CHUNK] for at in range(0, len(picture.data), _CHUNK)]
        size = f"c={picture.columns},r={picture.rows}"
        out = b""
        for number, piece in enumerate(pieces):
            first = f"a=T,U=1,f=100,i={picture.id},{size},q=2," if number == 0 else ""
            out += self._command(f"{first}m={int(number + 1 < len(pieces))};{piece}")
        return out

    def _deleting(self, picture_id: int) -> bytes:
        del self._sent[picture_id]
        return self._command(f"a=d,d=I,i={picture_id},q=2")

    def _command(self, text: str) -> bytes:
        sequence = f"\x1b_G{text}\x1b\\".encode()
        return through_tmux(sequence) if self._is_in_tmux else sequence


def drawn_over(frame: ScreenFrame, changed: set[int]) -> str:
    """By OSC 1337: the pictures of which all rows are there, and of which some were written."""
    out = ""
    rows = {number: (column, shown) for number, column, shown in in_frame(frame)}
    for number, (column, shown) in rows.items():
        picture = shown.picture
        below = range(number, number + picture.rows)
        is_whole = shown.row == 0 and all(
            each in rows and rows[each][1] == PictureRow(picture, each - number) for each in below
        )
        if is_whole and changed & set(below):
            size = f"width={picture.columns};height={picture.rows};preserveAspectRatio=1;doNotMoveCursor=1"
            out += f"\x1b[{number + 1};{column + 1}H\x1b]1337;File=inline=1;{size}:{picture.data}\x07"
    return out
