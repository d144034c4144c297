"""`covey logout`: forget keys that `covey login` keeps."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from covey.cli import common, exits
from covey.credentials.accounts import Account, Accounts, CredentialsError
from covey.credentials.file import read_accounts
from covey.credentials.login import forget


def main(args: argparse.Namespace) -> int:
    try:
        accounts = read_accounts(os.environ)
        meant = accounts.accounts if args.all else _meant(accounts, args.provider, args.account)
        if not meant:
            common.complain("There is nothing to forget; `covey login --list` shows what is kept.")
            return exits.FAILED
        for account in meant:
            left = forget(os.environ, Path.cwd(), account)
            print(f"{account.provider}: the key of the account {account.name} is forgotten.")
            if not args.all and account.is_default and (now := left.find(account.provider)):
                print(f"{account.provider}: the account {now.name} is the default now.")
    except CredentialsError as error:
        common.complain(str(error))
        return exits.FAILED
    return common.reload_servers(args)


def _meant(accounts: Accounts, provider: str | None, name: str | None) -> tuple[Account, ...]:
    """The one account that was named, or that is the only one."""
    found = accounts.of(provider) if provider else accounts.accounts
    if name:
        found = tuple(account for account in found if account.name == name)
    if len(found) > 1:
        names = ", ".join(f"{account.provider} --account {account.name}" for account in found)
        raise exits.UsageError(f"there are several; say which: {names}")
    return found
