"""Keep a key, or forget one: in the system's keyring where there is one, else in a file of the user's. Blocks."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import structs

from covey.credentials.accounts import Account, Accounts, CredentialsError, Place
from covey.credentials.file import change_accounts, read_accounts
from covey.credentials.keyring import find_keyring

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""What can be part of a name in every keyring, and never looks like an option of a program."""


def keep(
    environ: Mapping[str, str], project: Path, account: Account, key: str, *, in_file: bool = False
) -> tuple[Account, str]:
    """Keep the key under this account, instead of the one that it had; raises CredentialsError.

    Gives the account as it is kept now, and why it is not in the keyring, if there is one that did not take it.
    """
    if not _PLAIN.fullmatch(account.provider):
        raise CredentialsError(f"no keyring takes the name {account.provider!r}; call the provider something simpler")
    read_accounts(environ)  # before anything is changed: a file that cannot be used is no place for one more
    place, why = ("file", "") if in_file else _into_keyring(environ, project, account, key)
    kept = structs.replace(account, kept=place, key=key if place == "file" else "", revision=secrets.token_hex(8))
    old: list[Account] = []

    def change(accounts: Accounts) -> Accounts:
        if before := accounts.find(account.provider, account.name):
            old.append(before)
        is_default = account.is_default or any(before.is_default for before in old)
        return accounts.put(structs.replace(kept, is_default=is_default))

    found = change_accounts(environ, change).find(account.provider, account.name)
    assert found
    if place == "file" and any(before.kept == "keyring" for before in old):
        with suppress(CredentialsError):  # the old key would only lie there
            _from_keyring(environ, project, account)
    return found, why


def make_default(environ: Mapping[str, str], provider: str, name: str) -> bool:
    """Let this account be the one that is meant without a name; False: there is no such account."""
    accounts = change_accounts(
        environ,
        lambda all: all.put(structs.replace(found, is_default=True)) if (found := all.find(provider, name)) else all,
    )
    return accounts.find(provider, name) is not None


def forget(environ: Mapping[str, str], project: Path, account: Account) -> Accounts:
    """Forget the key of an account, and give what is left. Raises CredentialsError, and then nothing is forgotten."""
    if account.kept == "keyring":
        _from_keyring(environ, project, account)
    return change_accounts(environ, lambda accounts: accounts.without(account))


def _into_keyring(environ: Mapping[str, str], project: Path, account: Account, key: str) -> tuple[Place, str]:
    """Where the key belongs after trying the keyring, and why that is the file although there is a keyring."""
    keyring = find_keyring(environ, project)
    if keyring is None:
        return "file", ""
    try:
        keyring.put(account.provider, account.name, key)
        if keyring.get(account.provider, account.name) == key:
            return "keyring", ""
        return "file", "the keyring did not keep it"
    except CredentialsError as error:
        return "file", str(error)


def _from_keyring(environ: Mapping[str, str], project: Path, account: Account) -> None:
    keyring = find_keyring(environ, project)
    if keyring is None:
        raise CredentialsError(
            f"the key of {account.provider} ({account.name}) is in the system's keyring, and no program that could "
            "remove it there was found on PATH"
        )
    keyring.remove(account.provider, account.name)
