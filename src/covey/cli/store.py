"""`covey store`: the PostgreSQL that several nodes share. Needs no server, and talks to none."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from covey.cli import common, exits
from covey.cli.screen import plain
from covey.lines.words import counted
from covey.machine.locks import open_lock, try_lock
from covey.machine.names import server_lock
from covey.store.base import StoreFailed

if TYPE_CHECKING:
    from covey.store.postgres.administration import Upgraded
    from covey.store.postgres.transfer import Copied

NAME = "covey.db"
SCHEMES = ("postgres://", "postgresql://")
NO_DRIVER = "PostgreSQL needs a driver that is not installed: pip install 'covey[postgres]'"


def main(args: argparse.Namespace) -> int:
    actions = {"migrate": _migrate, "copy": _copy, "new-epoch": _new_epoch}
    try:
        done = actions[args.action](args.stores, quiet=args.json)
    except StoreFailed as error:
        common.complain(error.message)
        return exits.UNREACHABLE if error.passing else exits.FAILED
    if args.json:
        print(json.dumps(done))
    return exits.OK


def postgres_url(text: str) -> str:
    """A URL of PostgreSQL; its driver is there. Raises UsageError."""
    if not text.startswith(SCHEMES):
        raise exits.UsageError(f"{text!r} is no store that nodes share: write postgres://USER@HOST/DATABASE")
    try:
        import asyncpg  # noqa: F401 only whether it is there
    except ImportError:
        raise exits.UsageError(NO_DRIVER) from None
    return text


def _only(stores: list[str], action: str) -> str:
    if len(stores) != 1:
        raise exits.UsageError(f"`covey store {action}` takes one store")
    return postgres_url(stores[0])


def _migrate(stores: list[str], *, quiet: bool) -> dict[str, Any]:
    url = _only(stores, "migrate")
    from covey.store.postgres.administration import upgrade

    done: Upgraded = upgrade(url)
    if not quiet:
        made = f"The tables are those of this version (step {done.after})"
        print(f"{made}, and were before." if done.before == done.after else f"{made}; they were at step {done.before}.")
    return done._asdict()


def _new_epoch(stores: list[str], *, quiet: bool) -> dict[str, Any]:
    url = _only(stores, "new-epoch")
    from covey.store.postgres.administration import new_epoch

    count = new_epoch(url)
    if not quiet:
        have = "has" if count == 1 else "have"
        print(f"{counted(count, 'workspace')} {have} a new epoch: clients load anew instead of resuming.")
    return {"workspaces": count}


def _copy(stores: list[str], *, quiet: bool) -> dict[str, Any]:
    if len(stores) != 2 or not stores[0].startswith("sqlite:"):
        raise exits.UsageError("write `covey store copy sqlite:PATH postgres://…`")
    file, url = _file(stores[0].removeprefix("sqlite:")), postgres_url(stores[1])
    from covey.store.postgres.administration import upgrade
    from covey.store.postgres.transfer import copy_in

    def told(table: str, rows: int) -> None:
        if not quiet and sys.stderr.isatty():
            print(plain(f"  {table}: {rows}"), file=sys.stderr)

    with _unused(file.parent):
        upgrade(url)
        done: Copied = copy_in(file, url, told)
    if not quiet:
        rows = {name: count for name, count in done.rows.items() if name in ("sessions", "messages", "runs", "events")}
        counted = ", ".join(f"{count} {name}" for name, count in rows.items())
        print(plain(f"{done.workspaces} workspaces were copied, and counted: {counted}. {file} is as it was."))
    return done._asdict()


def _file(text: str) -> Path:
    path = Path(text).expanduser().absolute()
    found = path / NAME if path.is_dir() else path
    if not found.is_file():
        raise exits.UsageError(f"there is no store at {path}")
    return found


@contextlib.contextmanager
def _unused(data_dir: Path) -> Iterator[None]:
    """No server writes to the file, and none can start meanwhile."""
    with open_lock(server_lock(data_dir)) as descriptor:
        if not try_lock(descriptor):
            raise exits.UsageError(f"a server uses {data_dir}: stop it with `covey stop`, else what it does is lost")
        yield
