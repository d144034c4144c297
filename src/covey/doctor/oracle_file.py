"""The file below the rows: opened to be looked at, found to be damaged, backed up, and copied as far as it can be read.

It knows tables, not what they mean. A file is never changed here: a new one takes its place.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import apsw

from covey.doctor.oracle_record import KEYS, TABLES, select, typed
from covey.store import schema

NAME = "covey.db"
HEADER = b"SQLite format 3\0"
PAGE_SIZES = [2**power for power in range(9, 16)]
COMPLAINTS = 5
"""How many of SQLite's complaints are shown: one damaged page can cause thousands."""
BUSY_MS = 5000
"""As long as a server waits for a lock."""
ROOM_BYTES = 64 * 1024
"""What SQLite wants to write beside a store before it reads the first row, twice over."""


class NoStore(Exception):
    """There is no store, or it cannot be opened; the text says why.

    `is_damaged`: it is the file that is at fault, so that another one could take its place. `may_be_saved`: some of its
    rows can still be read.
    """

    def __init__(self, message: str, *, is_damaged: bool = False, may_be_saved: bool = False) -> None:
        super().__init__(message)
        self.is_damaged = is_damaged
        self.may_be_saved = may_be_saved


@contextlib.contextmanager
def snapshot(data_dir: Path) -> Iterator[apsw.Connection]:
    """The store as it is at this moment, read-only; a server may go on writing meanwhile."""
    path = data_dir / NAME
    check_file(path)
    with contextlib.closing(open_to_read(path)) as connection:
        try:
            connection.execute("BEGIN")
            version = connection.pragma("user_version")
            tables = set(connection.execute("SELECT name FROM sqlite_schema"))
        except (apsw.Error, MemoryError, ValueError) as error:
            raise _cannot_open(path, error) from None
        if version > len(schema.STEPS):
            raise NoStore(f"{path} was written by a newer version of Covey (schema {version}): upgrade Covey")
        if not tables:
            raise NoStore(f"{path} holds nothing yet: no server has used it")
        yield connection


def check_file(path: Path) -> None:
    """Raise NoStore unless there is a database: what the system says about a file is clearer than what SQLite says."""
    if not path.parent.is_dir():
        raise NoStore(f"there is no directory {path.parent}: no server has kept its data there")
    try:
        with open(path, "rb") as file:
            beginning = file.read(len(HEADER))
    except FileNotFoundError:
        raise NoStore(f"there is no store in {path.parent}: {NAME} is missing") from None
    except OSError as error:
        raise NoStore(f"{path} cannot be read: {error.strerror}") from None
    if not beginning:
        raise NoStore(f"{path} is empty: no server has used it, or all of it was lost", is_damaged=True)
    if beginning != HEADER:
        raise NoStore(f"{path} is not a database, or its beginning was overwritten", is_damaged=True)


def no_room(directory: Path) -> str:
    """Why nothing more can be written there, in the words of the system; '' if something can."""
    try:
        with tempfile.TemporaryFile(dir=directory) as file:
            file.write(bytes(ROOM_BYTES))
            file.flush()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def open_to_read(path: Path) -> apsw.Connection:
    try:
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    except apsw.Error as error:
        raise _cannot_open(path, error) from None
    connection.set_busy_timeout(BUSY_MS)
    return connection


def _cannot_open(path: Path, error: Exception) -> NoStore:
    match error:
        case apsw.BusyError() | apsw.LockedError():
            return NoStore(f"{path} is locked by another program; try again when it has ended")
        case apsw.CantOpenError() | apsw.PermissionsError() | apsw.ReadOnlyError():
            return NoStore(f"{path} cannot be opened ({error}): you need to be allowed to write to {path.parent}")
    if why := no_room(path.parent):
        return NoStore(f"{path} cannot be opened ({error}), since there is no room in {path.parent} ({why}): make some")
    wrong = _size(path) or error
    return NoStore(f"{path} cannot be opened: {wrong}", is_damaged=True, may_be_saved=_has_rows(path))


def _size(path: Path) -> str:
    """How much of the file is missing, if its own beginning says that it was longer."""
    with open(path, "rb") as file:
        header = file.read(100)
    page_size = int.from_bytes(header[16:18], "big")
    wanted, found = page_size * int.from_bytes(header[28:32], "big"), path.stat().st_size
    if page_size not in PAGE_SIZES or found >= wanted:
        return ""
    return f"it is truncated, {found} of {wanted} bytes are there"


def _has_rows(path: Path) -> bool:
    with contextlib.closing(open_to_read(path)) as connection:
        try:
            return any(True for table in TABLES for _ in _readable(_forgiving(connection), table))
        except (apsw.Error, MemoryError, ValueError):
            return False


def complaints(connection: apsw.Connection) -> list[str]:
    """What SQLite finds wrong with the file, and tables that are not as a server makes them."""
    checked = connection.execute(f"PRAGMA integrity_check({COMPLAINTS})")
    wrong = [text for (text,) in checked if text != "ok"]
    missing = _layout(max(1, connection.pragma("user_version"))) - _objects(connection)
    return wrong or sorted(f"the {kind} {name} is missing, or is not as it should be" for kind, name, _ in missing)


def lost_version(connection: apsw.Connection) -> bool:
    """Its version is lower than its tables show. A store of an older Covey has a lower version and fewer tables."""
    return bool(connection.pragma("user_version") < version_of_tables(connection))


def version_of_tables(connection: apsw.Connection) -> int:
    """The newest version whose tables are all there."""
    found = _objects(connection)
    return max((number for number in range(len(schema.STEPS) + 1) if _layout(number) <= found), default=0)


def _objects(connection: apsw.Connection) -> set[Any]:
    return set(connection.execute("SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL"))


def _layout(version: int) -> set[Any]:
    with contextlib.closing(apsw.Connection(":memory:")) as fresh:
        for step in schema.STEPS[:version]:
            fresh.execute(step)
        return _objects(fresh)


def _lay_out(connection: apsw.Connection) -> None:
    connection.pragma("auto_vacuum", "INCREMENTAL")
    for step in schema.STEPS:
        connection.execute(step)
    connection.pragma("user_version", len(schema.STEPS))


# ── a copy ──


def back_up(data_dir: Path, *, is_damaged: bool) -> Path:
    """A copy of the store beside it, on disk when this returns. No earlier one is overwritten."""
    source, target = data_dir / NAME, unused(data_dir / f"{NAME}.backup-{time.strftime('%Y%m%d-%H%M%S')}")
    try:
        if is_damaged:  # SQLite would read pages, and stumble: what counts now are the bytes
            copy_bytes(source, target)
            if (log := data_dir / f"{NAME}-wal").exists():
                copy_bytes(log, target.with_name(f"{target.name}-wal"))
        else:
            _copy_pages(source, target)
        flush(data_dir)
    except BaseException:
        target.unlink(missing_ok=True)
        raise
    return target


def unused(path: Path) -> Path:
    """The path, or one beside it, as an empty file that only this user can read."""
    for number in range(1, 1000):
        target = path if number == 1 else path.with_name(f"{path.name}-{number}")
        with contextlib.suppress(FileExistsError):
            os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            return target
    raise FileExistsError(path)


def _copy_pages(source: Path, target: Path) -> None:
    with (
        contextlib.closing(open_to_read(source)) as opened,
        contextlib.closing(apsw.Connection(str(target))) as copy,
        copy.backup("main", opened, "main") as backup,
    ):
        backup.step()
    flush(target)


def copy_bytes(source: Path, target: Path) -> None:
    shutil.copyfile(source, target)
    target.chmod(0o600)
    flush(target)


def flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# ── what can still be read ──


def salvage(data_dir: Path) -> dict[str, int]:
    """Put a new file in the place of a damaged one, with every row that can be read; how many there are by table.

    Newer events may be lost without a trace, so each workspace begins a new epoch.
    """
    path = data_dir / NAME
    new = unused(path.with_name(f"{NAME}.new"))
    counts = {}
    try:
        with contextlib.closing(open_to_read(path)) as damaged, contextlib.closing(apsw.Connection(str(new))) as fresh:
            _lay_out(fresh)
            with fresh:
                for table, columns in TABLES.items():
                    insert = f"INSERT OR IGNORE INTO {table} VALUES ({', '.join('?' * len(columns))})"  # noqa: S608
                    fresh.executemany(insert, _readable(_forgiving(damaged), table))
                    counts[table] = fresh.execute(f"SELECT count(*) FROM {table}").get  # noqa: S608 ours alone
                fresh.execute("UPDATE workspaces SET epoch = max(epoch + 1, ?)", (int(time.time()),))
        flush(new)
        for name in (f"{NAME}-wal", f"{NAME}-shm"):  # theirs are the pages of the old file: never apply them to another
            (data_dir / name).unlink(missing_ok=True)
        os.replace(new, path)
        flush(data_dir)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
    return counts


def _forgiving(connection: apsw.Connection) -> apsw.Connection:
    """With this SQLite reads a file also when it is shorter than it should be, or a table's definition is broken."""
    connection.pragma("writable_schema", "on")
    return connection


def _readable(connection: apsw.Connection, table: str) -> Iterator[tuple[Any, ...]]:
    """Rows from the front to the first damaged page, then from the back; of messages also those in between."""
    for direction in ("ASC", "DESC"):
        order = ", ".join(f"{column} {direction}" for column in KEYS[table].split(", "))
        try:
            yield from _valid(table, connection.execute(f"{select(table)} ORDER BY {order}"))
            return
        except (apsw.Error, MemoryError):
            continue
    if table == "messages":
        yield from _one_by_one(connection)


def _one_by_one(connection: apsw.Connection) -> Iterator[tuple[Any, ...]]:
    """What people wrote and were answered is worth trying every place that an index still knows."""
    positions = set()
    with contextlib.suppress(apsw.Error, MemoryError):
        for (position,) in connection.execute("SELECT position FROM messages INDEXED BY messages_by_session"):
            positions.add(position)
    for position in sorted(positions):
        with contextlib.suppress(apsw.Error, MemoryError):
            yield from _valid("messages", connection.execute(f"{select('messages')} WHERE position = ?", (position,)))


def _valid(table: str, rows: Iterable[Sequence[Any]]) -> Iterator[tuple[Any, ...]]:
    for row in rows:
        with contextlib.suppress(ValueError):
            yield typed(table, row)
