"""The keys of one process: looked up where they come from, and remembered, so that each program is run once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import assert_never

import msgspec

from covey.config.defaults import environment_key
from covey.config.schema import Config, KeyState, ProviderSettings
from covey.credentials.accounts import Account, Accounts, CredentialsError
from covey.credentials.sources import (
    FromCommand,
    FromConfig,
    FromEnvironment,
    FromLogin,
    NoKey,
    Source,
    describe,
    source_of,
)


@dataclass(frozen=True, slots=True)
class Surrounding:
    """Where keys are looked for."""

    project: Path
    """No program is taken out of it."""
    own: Mapping[str, str]
    """Our own environment: programs get it, and are found by its PATH."""
    environ: Mapping[str, str]
    """In which a variable may hold a key: ours, with what a client has sent along."""


class Keys:
    """What was looked up since the process began. Nothing of it is written anywhere."""

    def __init__(self) -> None:
        self._found: dict[Hashable, str] = {}
        self._locks: dict[Hashable, Lock] = {}
        """Two that need the same key at once run its program once."""

    def forget(self) -> None:
        """Look everything up again: a provider has refused a key, so there may be a newer one."""
        self._found.clear()

    async def fill(self, config: Config, accounts: Accounts, around: Surrounding) -> Config:
        """`config` with the key of each provider, and where it comes from.

        A key that cannot be had is no error before its provider is used: `keys` says what is wrong.
        """
        filled = await asyncio.gather(*(self._fill(*item, accounts, around) for item in config.providers.items()))
        return msgspec.structs.replace(
            config,
            providers={name: provider for name, (provider, _) in zip(config.providers, filled, strict=True)},
            keys={name: state for name, (_, state) in zip(config.providers, filled, strict=True)},
        )

    async def _fill(
        self, provider_id: str, provider: ProviderSettings, accounts: Accounts, around: Surrounding
    ) -> tuple[ProviderSettings, KeyState]:
        source = source_of(provider_id, provider, accounts, around.environ)
        problem = source.problem if isinstance(source, NoKey) else ""
        try:
            key = await self._key(source, provider_id, provider, around)
        except CredentialsError as error:
            key, problem = "", str(error)
        state = KeyState(describe(source), f"{provider_id}: {problem}" if problem else "")
        return msgspec.structs.replace(provider, api_key=key), state

    async def _key(self, source: Source, provider_id: str, provider: ProviderSettings, around: Surrounding) -> str:
        match source:
            case NoKey() | FromConfig():
                return provider.api_key
            case FromEnvironment():
                return environment_key(provider_id, provider, around.environ)[1]
            case FromCommand():
                return await asyncio.to_thread(self._of_command, provider, around)
            case FromLogin(account):
                return account.key or await asyncio.to_thread(self._of_login, account, around)
            case _:
                assert_never(source)

    def _of_command(self, provider: ProviderSettings, around: Surrounding) -> str:
        from covey.credentials.command import key_of_command, words_of

        try:
            words = words_of(provider.api_key_command)
            return self._once(words, lambda: key_of_command(words, around.own, around.project))
        except CredentialsError as error:
            raise CredentialsError(f"api_key_command {error}") from None

    def _of_login(self, account: Account, around: Surrounding) -> str:
        """By its revision: after another login it is another key."""
        return self._once(account.revision, lambda: look_up(account, around.own, around.project))

    def _once(self, name: Hashable, look: Callable[[], str]) -> str:
        """What was found under this name; else what is found now. A failure is not remembered."""
        with self._locks.setdefault(name, Lock()):
            if name not in self._found:
                self._found[name] = look()
            return self._found[name]


def look_up(account: Account, own: Mapping[str, str], project: Path) -> str:
    """The key of an account that the keyring keeps. Blocks."""
    from covey.credentials.keyring import find_keyring

    keyring = find_keyring(own, project)
    if keyring is None:
        raise CredentialsError(
            f"the key of the account {account.name!r} is in the system's keyring, and no program that could look there "
            f"was found on the server's PATH: `covey login {account.provider} --account {account.name} --file` keeps "
            "it in a file"
        )
    if key := keyring.get(account.provider, account.name):
        return key
    raise CredentialsError(
        f"the key of the account {account.name!r} is no longer in the system's keyring: "
        f"`covey login {account.provider} --account {account.name}` puts it there again"
    )
