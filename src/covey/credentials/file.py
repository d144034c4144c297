"""The file with the accounts, and with those keys that no keyring keeps: for this user alone, changed in one step.

It is in the user's data directory, which people do not put under version control as they do with configurations.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from covey.credentials.accounts import Accounts, CredentialsError
from covey.machine.locks import locked
from covey.machine.owned import why_not_our_directory, why_not_ours
from covey.machine.regular import NotRegular, open_regular
from covey.machine.replace import replace_file
from covey.protocol.paths import default_data_dir

NAME = "credentials.json"
MAX_BYTES = 1024 * 1024
LOCK_SECONDS = 5.0
"""A change takes milliseconds."""


def accounts_file(environ: Mapping[str, str]) -> Path:
    return default_data_dir(environ) / NAME


def read_accounts(environ: Mapping[str, str]) -> Accounts:
    """What is kept; nothing, if there is no file. Raises CredentialsError for one that cannot be relied on."""
    path = accounts_file(environ)
    try:
        with open_regular(path) as (file, status):
            _check_private(path, status)
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise CredentialsError(f"{path}: is larger than {MAX_BYTES} bytes")
        return msgspec.json.decode(content, type=Accounts)
    except (FileNotFoundError, NotADirectoryError):
        return Accounts()
    except NotRegular:
        raise CredentialsError(f"{path}: is not a regular file; links are not followed here") from None
    except OSError as error:
        raise CredentialsError(f"{path}: cannot be read: {error.strerror}") from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise CredentialsError(f"{path}: is damaged; remove it and log in again") from None


def change_accounts(environ: Mapping[str, str], change: Callable[[Accounts], Accounts]) -> Accounts:
    """Read, change and replace the file; two that come at once wait for each other. Blocks."""
    path = accounts_file(environ)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if why := why_not_our_directory(path.parent):
            raise CredentialsError(f"{path.parent} {why}, so no key can be kept there: `chmod go-w` prevents it")
        with locked(path.with_name(f".{NAME}.lock"), LOCK_SECONDS):
            old = read_accounts(environ)
            new = change(old)
            if new.accounts:
                replace_file(path, msgspec.json.encode(new), mode=0o600, keep_mode=False, sync=True)
            else:
                with suppress(FileNotFoundError):
                    path.unlink()
        return new
    except OSError as error:
        raise CredentialsError(f"{path}: cannot be changed: {error.strerror or error}") from None


def _check_private(path: Path, status: os.stat_result) -> None:
    """A key that somebody else could put there would send the user's prompts to an account of theirs."""
    why = why_not_ours(status)
    if not why and status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        why = "can be read by others"
    if why:
        raise CredentialsError(f"{path}: {why}, so it is not used; if it is yours, `chmod 600` it")
