"""`covey logs`: the end of what the user's server has written, and what it adds."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import BinaryIO

from covey.cli import common, exits
from covey.protocol.paths import default_data_dir

NAME = "server.log"
TAIL_BYTES = 4 * 1024 * 1024
"""How far back lines are looked for: further than a log gets before it is put aside."""
LOOK_S = 0.3


def main(args: argparse.Namespace) -> int:
    path = (common.data_dir(args) or default_data_dir()) / NAME
    try:
        file = path.open("rb")
    except OSError as error:
        common.complain(f"{path} cannot be read: {error.strerror}. A server that was started for you writes there.")
        return exits.FAILED
    with file:
        _write(_last_lines(path, file, args.lines))
        if args.follow:
            _follow(path, file)
    return exits.OK


def _last_lines(path: Path, file: BinaryIO, count: int) -> bytes:
    """Of the file, and of the one before it if that is not enough."""
    lines = _tail(file)
    if len(lines) < count:
        before = path.with_name(f"{NAME}.1")
        if before.is_file():
            with before.open("rb") as older:
                lines = _tail(older) + lines
    return b"".join(lines[-count:] if count else ())


def _tail(file: BinaryIO) -> list[bytes]:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - TAIL_BYTES, 0))
    return file.read().splitlines(keepends=True)


def _follow(path: Path, file: BinaryIO) -> None:
    """Until Ctrl-C. When the log was put aside, a file of the same name takes its place."""
    while True:
        if added := file.read():
            _write(added)
            continue
        try:
            replaced = path.stat().st_ino != os.fstat(file.fileno()).st_ino
        except OSError:
            replaced = False
        if replaced:
            file = path.open("rb")
            continue
        if file.tell() > os.fstat(file.fileno()).st_size:
            file.seek(0)  # started over
        time.sleep(LOOK_S)


def _write(text: bytes) -> None:
    """By way of stdout, which keeps what a model or a file said from driving the terminal."""
    sys.stdout.write(text.decode("utf-8", "replace"))
    sys.stdout.flush()
