"""What `covey doctor` tells about skills, commands and agents of the current directory: those left out, and why."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from covey.config.load import is_trusted
from covey.config.schema import ConfigError
from covey.context.texts import read_texts

SHOWN = 20
"""Files that are written out; --json has them all."""


def look(directory: Path, environ: Mapping[str, str]) -> dict[str, Any]:
    """What there is, what is withheld until the directory is trusted, and what is left out."""
    try:
        trusted = is_trusted(directory, environ)
    except ConfigError:  # reported where the configuration is read
        trusted = False
    texts = read_texts(directory, environ, trusted=trusted)
    return {
        "used": [{"kind": file.kind, "name": file.name, "path": str(file.path)} for file in texts.files],
        "withheld": [{"kind": file.kind, "name": file.name, "path": str(file.path)} for file in texts.withheld],
        "left_out": [{"path": str(left.path), "why": left.why} for left in texts.left_out],
    }


def lines(found: dict[str, Any]) -> list[str]:
    """The same for people; nothing, where there is nothing to say."""
    said = [f"Left out: {left['path']}: {left['why']}." for left in found["left_out"][:SHOWN]]
    if (more := len(found["left_out"]) - SHOWN) > 0:
        said.append(f"And {more} more are left out: `covey doctor --json` names them.")
    if withheld := found["withheld"]:
        names = ", ".join(f"{file['kind']} {file['name']}" for file in withheld[:SHOWN])
        said.append(f"Of this directory, which is not trusted, nothing is used: {names}. See `covey trust`.")
    return said
