"""What comes from a terminal, as values. Bytes become these in one place, and nothing else reaches the face."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Key:
    """A key press: what the key table knows it by, and what it would type."""

    name: str
    """`a`, `A`, `?`, `enter`, `shift+enter`, `ctrl+c`, `alt+up`, `space`. Modifiers: ctrl, alt, shift, so ordered;
    a printable character has no `shift`, and after ctrl or alt it is the lower-case letter of a Latin layout."""
    text: str = ""
    """What it types; '' for keys that type nothing."""


@dataclass(frozen=True, slots=True)
class Paste:
    """Text that came at once. It is never taken for keys."""

    text: str


@dataclass(frozen=True, slots=True)
class Mouse:
    """Row and column count from 0."""

    action: Literal["press", "release", "drag", "wheel_up", "wheel_down"]
    row: int
    column: int
    button: Literal["left", "middle", "right", "none"] = "left"
    with_shift: bool = False


@dataclass(frozen=True, slots=True)
class FocusChange:
    """The window got, or lost, the focus. Terminals that do not say so never send it."""

    is_focused: bool


@dataclass(frozen=True, slots=True)
class Resize:
    width: int
    height: int


TerminalInput = Key | Paste | Mouse | FocusChange | Resize
