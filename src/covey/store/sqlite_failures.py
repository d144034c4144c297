"""What goes wrong inside SQLite, as the rest of Covey knows it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import apsw

from covey.store.base import StoreFailed

_PASSING = (
    apsw.FullError,
    apsw.IOError,
    apsw.BusyError,
    apsw.LockedError,
    apsw.CantOpenError,
    apsw.ReadOnlyError,
    OSError,
)


@contextlib.contextmanager
def failures(what: str) -> Iterator[None]:
    """Raise StoreFailed, with what was tried and where."""
    try:
        yield
    except apsw.FullError as error:
        hint = "make room on the disk of this data directory"
        raise StoreFailed(f"{what}: {error}: {hint}", passing=True) from error
    except (apsw.Error, OSError) as error:
        raise StoreFailed(f"{what}: {error}", passing=isinstance(error, _PASSING)) from error
