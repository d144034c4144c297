"""The accounts that `covey login` knows, as a value: one or more for each provider, of which one is the default."""

from __future__ import annotations

from typing import Literal

import msgspec

from covey.config.schema import AccountName, ProviderId

DEFAULT_NAME = "default"
"""The account that is meant when nobody has given it a name."""
MAX_KEY_CHARACTERS = 8192

Place = Literal["keyring", "file"]


class CredentialsError(Exception):
    """A key cannot be kept, found or used. The text is for people and holds no secret."""


class Account(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One key, and to whom it may be sent."""

    provider: ProviderId
    name: AccountName
    origin: str
    """The server that it was given for: scheme, host and port. It is sent to no other one."""
    kept: Place
    revision: str
    """Changes with each login, so that a key which was looked up before is not taken for the new one."""
    is_default: bool = False
    key: str = ""
    """Only if it is kept in the file; else the keyring has it."""

    def __repr__(self) -> str:
        return f"Account({self.provider!r}, {self.name!r}, kept={self.kept!r})"


class Accounts(msgspec.Struct, frozen=True):
    """All of them, in the order of their names."""

    accounts: tuple[Account, ...] = ()

    @property
    def providers(self) -> frozenset[str]:
        return frozenset(account.provider for account in self.accounts)

    def of(self, provider: str) -> tuple[Account, ...]:
        return tuple(account for account in self.accounts if account.provider == provider)

    def find(self, provider: str, name: str = "") -> Account | None:
        """The account of this name, or without a name the default one."""
        return next((a for a in self.of(provider) if (a.name == name if name else a.is_default)), None)

    def put(self, account: Account) -> Accounts:
        """With this account, which replaces one of the same name. The first of a provider is its default."""
        others = tuple(a for a in self.accounts if (a.provider, a.name) != (account.provider, account.name))
        if account.is_default:
            others = tuple(_as_default(a, a.is_default and a.provider != account.provider) for a in others)
        elif not any(a.is_default for a in others if a.provider == account.provider):
            account = _as_default(account, True)
        return Accounts(tuple(sorted((*others, account), key=lambda a: (a.provider, a.name))))

    def without(self, account: Account) -> Accounts:
        """Without it. If it was the default, the first one that is left takes its place."""
        left = Accounts(tuple(a for a in self.accounts if a != account))
        same = left.of(account.provider)
        return left.put(_as_default(same[0], True)) if same and account.is_default else left


def _as_default(account: Account, is_default: bool) -> Account:
    return msgspec.structs.replace(account, is_default=is_default)


def checked_key(text: str) -> str:
    """A key as it can be sent, without blanks around it. Raises CredentialsError, which does not quote it."""
    key = text.strip()
    if not key:
        raise CredentialsError("there is no key")
    if len(key) > MAX_KEY_CHARACTERS:
        raise CredentialsError(f"a key has at most {MAX_KEY_CHARACTERS} characters")
    if not all("!" <= character <= "~" for character in key):
        raise CredentialsError("a key is one word of plain characters, on one line")
    return key
