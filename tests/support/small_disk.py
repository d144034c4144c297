"""A disk that is small enough to be filled. Without the right to mount one, tests that need it are skipped."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

DISK = "4m"


@contextlib.contextmanager
def mounted(directory: Path) -> Iterator[Path]:
    """The directory, on a disk of its own."""
    directory.mkdir(mode=0o700)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK},mode=0700", "none", str(directory)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("may not mount a small disk")
    try:
        yield directory
    finally:
        subprocess.run(["umount", "--lazy", str(directory)], check=True)


@contextlib.contextmanager
def full(disk: Path) -> Iterator[None]:
    """Meanwhile there is no byte left."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))
    try:
        yield
    finally:
        filler.unlink()
