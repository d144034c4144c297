"""`covey logout`: forget keys that `covey login` keeps."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from covey.cli import common, exits
from covey.cli.listing import tell
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
            tell(f"Forgot the key of {account.provider}, account {account.name}.")
            if not args.all and account.is_default and (now := left.find(account.provider)):
                tell(f"{account.provider}: the account {now.name} is the default now.")
    except CredentialsError as error:
        common.complain(str(error))
        return exits.FAILED
    return common.reload_servers(args)


def _meant(accounts: Accounts, provider: str | None, name: str | None) -> tuple[Account, ...]:
    """The one account that was named, that is the only one, or that a person at the terminal chooses."""
    found = accounts.of(provider) if provider else accounts.accounts
    if name:
        found = tuple(account for account in found if account.name == name)
    if len(found) < 2:
        return found
    if sys.stdin.isatty() and sys.stderr.isatty():
        return _chosen(found)
    names = ", ".join(f"{account.provider} --account {account.name}" for account in found)
    raise exits.UsageError(f"there are several; say which: {names}")


def _chosen(found: tuple[Account, ...]) -> tuple[Account, ...]:
    for number, account in enumerate(found, 1):
        print(f"  {number}. {account.provider}, account {account.name}", file=sys.stderr)
    print(f"Which key is to be forgotten? [1-{len(found)}, or Enter for none] ", end="", file=sys.stderr, flush=True)
    answer = sys.stdin.readline().strip()
    if answer.isascii() and answer.isdigit() and 1 <= int(answer) <= len(found):
        return (found[int(answer) - 1],)
    raise exits.CommandFailed("nothing was forgotten.")
