"""Where a provider's key comes from: the one place that knows the order. Pure: nothing is looked up or run here.

1. api_key of the configuration
2. api_key_command of the configuration
3. what `covey login` keeps for the provider
4. the environment variable of a known provider
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

from covey.config.defaults import environment_key, origin
from covey.config.schema import ProviderSettings
from covey.credentials.accounts import Account, Accounts

KEYLESS = ("embedded", "scripted")
"""Types of providers that are asked nothing over a network."""


@dataclass(frozen=True, slots=True)
class NoKey:
    problem: str = ""
    """Why there is none, if one was meant."""


@dataclass(frozen=True, slots=True)
class FromConfig:
    pass


@dataclass(frozen=True, slots=True)
class FromCommand:
    pass


@dataclass(frozen=True, slots=True)
class FromLogin:
    account: Account


@dataclass(frozen=True, slots=True)
class FromEnvironment:
    variable: str


Source = NoKey | FromConfig | FromCommand | FromLogin | FromEnvironment


def source_of(provider_id: str, provider: ProviderSettings, accounts: Accounts, environ: Mapping[str, str]) -> Source:
    if provider.type in KEYLESS:
        return NoKey()
    if provider.api_key.strip():
        return FromConfig()
    if provider.api_key_command:
        return FromCommand()
    account = accounts.find(provider_id, provider.account)
    if account and account.origin == origin(provider):
        return FromLogin(account)
    if provider.account:
        return NoKey(_no_account(provider_id, provider, account))
    variable, _ = environment_key(provider_id, provider, environ)
    return FromEnvironment(variable) if variable else NoKey()


def _no_account(provider_id: str, provider: ProviderSettings, account: Account | None) -> str:
    login = f"`covey login {provider_id} --account {provider.account}`"
    if account is None:
        return f"there is no account {provider.account!r}: {login} makes it"
    return f"the key of the account {provider.account!r} is for {account.origin}, not for {origin(provider)}: {login}"


def describe(source: Source) -> str:
    """For people; empty if there is no key."""
    match source:
        case NoKey():
            return ""
        case FromConfig():
            return "api_key in the configuration"
        case FromCommand():
            return "api_key_command in the configuration"
        case FromLogin(account):
            return f"covey login, account {account.name}, in {WHERE[account.kept]}"
        case FromEnvironment(variable):
            return f"${variable}"
        case _:
            assert_never(source)


WHERE = {"keyring": "the system's keyring", "file": "credentials.json in your data directory"}
"""Where a login is kept, for people."""
