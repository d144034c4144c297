"""What a terminal says of itself when it is asked, as values. They stay with the driver: no face types them in."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Background:
    """The colour behind the text, or the colour scheme, is known now, or has changed."""

    is_light: bool


@dataclass(frozen=True, slots=True)
class SynchronizedOutput:
    """Whether it can hold back what it draws until a frame is complete (mode 2026)."""

    is_there: bool


@dataclass(frozen=True, slots=True)
class TerminalName:
    """Name and version, as it calls itself (XTVERSION)."""

    name: str


@dataclass(frozen=True, slots=True)
class DeviceAttributes:
    """What every terminal answers (DA1): whatever was asked before and is not answered by now, it does not know."""

    numbers: tuple[int, ...]


TerminalFact = Background | SynchronizedOutput | TerminalName | DeviceAttributes
