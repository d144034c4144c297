"""Where the terminal face keeps what is its own. Imports nothing, no paths either: needed before the first frame."""

from __future__ import annotations

import os
from collections.abc import Mapping


def state_dir(env: Mapping[str, str]) -> str:
    return os.path.join(_own_dir(env), "tui")


def plain_history(env: Mapping[str, str]) -> str:
    """The lines that were typed in plain mode."""
    return os.path.join(_own_dir(env), "plain_history")


def _own_dir(env: Mapping[str, str]) -> str:
    base = env.get("XDG_STATE_HOME") or os.path.join(env.get("HOME") or os.path.expanduser("~"), ".local", "state")
    return os.path.join(base, "covey")


def log_file(env: Mapping[str, str]) -> str | None:
    """What libraries and children print while the screen is ours; None: there is no place for it."""
    directory = state_dir(env)
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
    except OSError:
        return None
    return os.path.join(directory, "printed.log")
