"""Which directories can be workspaces."""

from __future__ import annotations

from pathlib import Path

from covey.protocol.errors import BadRequest


def resolve(path: str) -> str:
    """The directory that a path leads to. Raises BadRequest."""
    if not path or "\0" in path:
        raise BadRequest("path is missing")
    directory = Path(path)
    if not directory.is_absolute():
        raise BadRequest(f"path must be absolute, not {path!r}: the server may run in another directory than you")
    check_directory(path)
    return str(directory.resolve())


def check_directory(path: str) -> None:
    """Raise BadRequest unless there is such a directory here."""
    try:
        is_directory = Path(path).is_dir()
    except OSError as error:
        raise BadRequest(f"{path!r} cannot be opened: {error.strerror}") from None
    if not is_directory:
        raise BadRequest(f"{path!r} is not a directory")
