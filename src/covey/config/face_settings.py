"""What the files of a user say about faces: how the terminal looks, and which key does what. No server reads it."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

KeyNames = Annotated[
    str | tuple[str, ...], Meta(description='a key such as "ctrl+k", or several: ["ctrl+k", "f2"]; [] for none')
]


class TuiSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the terminal face looks and behaves. No server reads it."""

    theme: Literal["", "dark", "light", "16", "none"] = ""
    """Empty: what the terminal says of itself."""
    mouse: bool = True
    """False: the mouse is the terminal's own."""
    busy: Literal["steer", "queue"] = "steer"
    """What Enter does while the session works."""
    notify: bool = True
    """Say through the terminal that a run has ended or asks, while its window is not looked at."""
    share_shell: bool = True
    """The model sees what a `!` command prints; `!!` is the other way round."""


class FaceSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the faces of a user read, and no server does."""

    tui: TuiSettings = TuiSettings()
    keys: dict[str, KeyNames] = {}
    """Which keys do what in the terminal face, by action."""
