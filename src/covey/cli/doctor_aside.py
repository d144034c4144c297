"""`covey doctor --set-aside` and `--restore`: where nothing can be saved, the file is kept under another name.

A new one is begun, or a backup takes its place.
"""

from __future__ import annotations

import shlex
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from covey.doctor.oracle import examine
from covey.doctor.oracle_file import NAME, NoStore
from covey.doctor.restoring import newest_backup
from covey.protocol.paths import default_data_dir


def command(data_dir: Path, *words: str) -> str:
    """A command about this store, as it is advised: followed to the letter, it must not touch another one."""
    given = [] if data_dir == default_data_dir() else ["--data-dir", str(data_dir)]
    return f"`{shlex.join(['covey', *words[:1], *given, *words[1:]])}`"


def offer(data_dir: Path) -> str:
    how = command(data_dir, "doctor", "--set-aside")
    return f"{how} renames it, and the next server begins anew, without the sessions in it."


def backup_offer(data_dir: Path) -> str:
    """That the newest backup could take the place of a damaged store; '' if there is none."""
    backup = newest_backup(data_dir)
    if backup is None:
        return ""
    how = command(data_dir, "doctor", "--restore")
    return f"{how} puts the backup of {made_at(backup)} in its place, {backup}: what was said since then is lost."


def made_at(backup: Path) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(backup.stat().st_mtime))


def is_healthy(data_dir: Path) -> bool:
    """Nothing is wrong with it: whoever sets it aside may have meant another one.

    Raises NoStore if there is none, or if it cannot be looked at for another reason than its own.
    """
    if not (data_dir / NAME).exists():
        raise NoStore(f"there is no store in {data_dir}: {NAME} is missing")
    try:
        return not examine(data_dir).findings
    except NoStore as error:
        if error.is_damaged:
            return False
        raise


def is_meant(question: str) -> bool | None:
    """The answer of whoever sits at a terminal; None: nobody does."""
    if sys.stdin is None or not sys.stdin.isatty() or not sys.stderr.isatty():
        return None
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # nothing else goes on: Ctrl-C just leaves
    try:
        print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
        answer = sys.stdin.readline()
    finally:
        signal.signal(signal.SIGINT, before)
    return answer.strip().lower() in ("y", "yes")


def set_aside(data_dir: Path, now: Callable[[], float] = time.time) -> Path:
    """Rename the store, with what belongs to it, and give its new path. Nothing is deleted. Raises NoStore, OSError."""
    path = data_dir / NAME
    if not path.exists():
        raise NoStore(f"there is no store in {data_dir}: {NAME} is missing")
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(now()))
    target = data_dir / f"{NAME}.aside-{stamp}"
    for ending in ("-wal", "-shm", ""):  # the store last: while it is there, it is not done
        part = data_dir / f"{NAME}{ending}"
        if part.exists():
            part.rename(f"{target}{ending}")
    return target
