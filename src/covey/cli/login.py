"""`covey login`: take a provider's key, check it, and keep it. It is never shown, logged or given as an argument."""

from __future__ import annotations

import argparse
import asyncio
import getpass
import os
import sys
from pathlib import Path

import msgspec

from covey.cli import common, exits
from covey.cli.listing import tell
from covey.config.defaults import KNOWN, known_provider, origin
from covey.config.load import load
from covey.config.schema import ConfigError, ProviderSettings
from covey.credentials.accounts import (
    DEFAULT_NAME,
    MAX_KEY_CHARACTERS,
    Account,
    CredentialsError,
    checked_key,
)
from covey.credentials.file import read_accounts
from covey.credentials.login import keep, make_default
from covey.credentials.sources import KEYLESS, WHERE

BROWSER_LOGINS = ("openrouter",)
"""Providers that document a login in the browser for programs of others."""


class LoginEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One account, as `--list --json` writes it."""

    provider: str
    account: str
    is_default: bool
    kept: str
    origin: str


def main(args: argparse.Namespace) -> int:
    try:
        if args.list:
            return _list(args.json)
        return _login(args)
    except (CredentialsError, ConfigError) as error:
        common.complain(str(error))
        return exits.FAILED


def _list(as_json: bool) -> int:
    entries = [
        LoginEntry(provider=a.provider, account=a.name, is_default=a.is_default, kept=a.kept, origin=a.origin)
        for a in read_accounts(os.environ).accounts
    ]
    if as_json:
        print(msgspec.json.encode(entries).decode())
        return exits.OK
    width = max((len(f"{entry.provider} {entry.account}") for entry in entries), default=0)
    for entry in entries:
        mark, name = "*" if entry.is_default else " ", f"{entry.provider} {entry.account}"
        tell(f"{mark} {name:<{width}}  in {WHERE[entry.kept]}, for {entry.origin}")
    if not entries:
        common.note("Nobody is logged in yet: `covey login PROVIDER` takes a key.")
    return exits.OK


def _login(args: argparse.Namespace) -> int:
    provider_id, provider = _provider(args.provider)
    accounts = read_accounts(os.environ)
    if args.default and args.account and accounts.find(provider_id, args.account) and sys.stdin.isatty():
        make_default(os.environ, provider_id, args.account)
        tell(f"{provider_id}: the account {args.account} is the default now.")
        return common.reload_servers(args)
    if args.browser and provider_id not in BROWSER_LOGINS:
        raise exits.UsageError(f"only {', '.join(BROWSER_LOGINS)} can be logged in to by --browser; give a key instead")
    key = asyncio.run(_in_browser(provider)) if args.browser else _given_key(provider_id, provider)
    if not args.no_check and not asyncio.run(_is_good(provider_id, provider, key)):
        return exits.FAILED
    current = accounts.find(provider_id)
    account = Account(
        provider=provider_id,
        name=args.account or (current.name if current else DEFAULT_NAME),
        origin=origin(provider),
        kept="file",
        revision="",
        is_default=args.default,
    )
    kept, why = keep(os.environ, Path.cwd(), account, key, in_file=args.file)
    if why:
        common.complain(f"{why}.")
    checked = "" if args.no_check else "The key is good. "
    default = "" if kept.is_default else f' It is used where [providers.{provider_id}] says account = "{kept.name}".'
    tell(f"{checked}{provider_id}: the account {kept.name} is kept in {WHERE[kept.kept]}.{default}")
    if provider.api_key or provider.api_key_command:
        set_by = "api_key" if provider.api_key else "api_key_command"
        common.complain(f"{set_by} of {provider_id} in your configuration comes first: remove it to use this login.")
    return common.reload_servers(args)


def _provider(name: str | None) -> tuple[str, ProviderSettings]:
    """As the user's own files have it: a project cannot say where a key goes."""
    configured = load(None, None, os.environ).config.providers
    usable = [*configured, *(id for id in KNOWN if id not in configured)]
    if not name:
        raise exits.UsageError(f"whose key is it? Name a provider: {', '.join(usable)}")
    if name not in usable:
        raise exits.UsageError(f"there is no provider {name!r}; known are {', '.join(usable)}")
    provider = configured[name] if name in configured else known_provider(name, os.environ)
    if provider.type in KEYLESS:
        raise exits.UsageError(f"{name} needs no key")
    return name, provider


def _given_key(provider_id: str, provider: ProviderSettings) -> str:
    if sys.stdin.isatty():
        return checked_key(getpass.getpass(f"API key of {provider.name or provider_id} (not shown): "))
    return checked_key(sys.stdin.read(MAX_KEY_CHARACTERS + 2))


async def _is_good(provider_id: str, provider: ProviderSettings, key: str) -> bool:
    """Whether the provider takes the key; if not, or if it cannot be asked, this is said here."""
    from covey.credentials.check import KeyRefused, check_key

    try:
        await check_key(provider_id, msgspec.structs.replace(provider, api_key=key))
    except KeyRefused as refused:
        common.complain(f"{refused}\nNothing was kept.")
        return False
    except CredentialsError as error:
        common.complain(f"The key could not be checked: {error}\nNothing was kept; with --no-check it would be.")
        return False
    return True


async def _in_browser(provider: ProviderSettings) -> str:
    from covey.credentials.oauth import browser_login, show_in_browser

    async with browser_login(provider) as login:
        print(f"Agree on this page, in a browser on this machine:\n  {login.address}", file=sys.stderr, flush=True)
        if sys.stdin.isatty():
            show_in_browser(login.address, os.environ, Path.cwd())
        return await login.key()
