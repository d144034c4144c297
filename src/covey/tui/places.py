"""Where the terminal face keeps what is its own. Imports nothing: it is needed before the first frame."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def state_dir(env: Mapping[str, str]) -> Path:
    base = env.get("XDG_STATE_HOME") or os.path.join(env.get("HOME") or os.path.expanduser("~"), ".local", "state")
    return Path(base) / "covey" / "tui"


def log_file(env: Mapping[str, str]) -> Path | None:
    """What libraries and children print while the screen is ours; None: there is no place for it."""
    directory = state_dir(env)
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return None
    return directory / "printed.log"
