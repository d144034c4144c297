"""The token for TCP: from the file that was named, the environment, or one that is made and kept for its user alone."""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from covey.machine.names import TOKEN_VARIABLE
from covey.machine.owned import why_not_ours
from covey.machine.regular import NotRegular, open_regular
from covey.machine.replace import replace_file
from covey.protocol.paths import token_file
from covey.server.listener import CannotServe

log = logging.getLogger(__name__)

SHORTEST = 16
"""Characters. Anybody on this machine can connect and guess as often as they like."""
MAX_BYTES = 4096


def find_token(data_dir: Path, named: Path | None, environ: Mapping[str, str]) -> str:
    """The token, long enough not to be guessed. Raises CannotServe."""
    if named:
        return _long_enough(_of_named_file(named), str(named))
    if token := environ.get(TOKEN_VARIABLE, "").strip():
        return _long_enough(token, f"${TOKEN_VARIABLE}")
    path = token_file(data_dir)
    return _long_enough(_kept(path) or _new(path), str(path))


def _long_enough(token: str, where: str) -> str:
    if len(token) < SHORTEST:
        raise CannotServe(
            f"the token in {where} has fewer than {SHORTEST} characters, so it could be guessed: use a longer one, "
            "such as `openssl rand -hex 32` prints, or none, and one is made for you"
        )
    return token


def _of_named_file(path: Path) -> str:
    """A file of the user's own choice: it may be a link, as secrets of containers are, or a pipe."""
    try:
        with path.open("rb") as file:
            token = file.read(MAX_BYTES).decode("utf-8", "replace").strip()
            status = os.fstat(file.fileno())
    except OSError as error:
        raise CannotServe(f"cannot read the token file {path}: {error.strerror}") from None
    if not token:
        raise CannotServe(f"the token file {path} is empty")
    if status.st_mode & 0o077:
        log.warning("others on this machine may use the token file %s: chmod 600 prevents it", path)
    return token


def _kept(path: Path) -> str:
    """The one that an earlier start has made; empty if there is none."""
    try:
        with open_regular(path) as (file, status):
            if why := why_not_ours(status):
                raise CannotServe(f"the token file {path} {why}: remove it, and a new one is made")
            if status.st_mode & 0o077:  # a copy or a backup may have opened it to others
                os.fchmod(file.fileno(), 0o600)
            return file.read(MAX_BYTES).decode("utf-8", "replace").strip()
    except FileNotFoundError:
        return ""
    except NotRegular:
        raise CannotServe(f"{path} is not a regular file: remove it, and a new token is made") from None
    except OSError as error:
        raise CannotServe(f"cannot read the token file {path}: {error.strerror}") from None


def _new(path: Path) -> str:
    token = secrets.token_urlsafe(32)
    try:
        replace_file(path, f"{token}\n".encode(), mode=0o600, keep_mode=False)
    except OSError as error:
        raise CannotServe(f"cannot write the token file {path}: {error.strerror}") from None
    return token
