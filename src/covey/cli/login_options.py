"""What `covey login` and `covey logout` take, and how they teach it. Nothing heavy: `--help` must answer at once."""

from __future__ import annotations

import argparse
import re

from covey.cli.undo_options import Command

LOGIN_EXAMPLES = """\
examples:
  covey login anthropic                   asks for the key, checks it with Anthropic, and keeps it
  covey login openai < key.txt            takes it from a pipe or a file; it is never an argument
  covey login openrouter --browser        agree on OpenRouter's own page instead: no key to copy
  covey login openai --account work       a second key; `account = "work"` under [providers.openai] chooses it
  covey login openai --account work --default    from now on the one that is meant without a name
  covey login --list                      which there are, and where each is kept; never the keys

A key is kept in the system's keyring if `secret-tool` (Linux) or `security` (macOS) can reach one, else in a file that
only you can read, in your data directory. It is sent to that provider's address alone. A key is looked for in this
order: api_key in the configuration, api_key_command, `covey login`, the environment. `covey models` says which it is.

Providers: openai, anthropic, google, openrouter, groq, deepseek, and those that your config.toml names.

exit codes:
  0 kept     1 refused by the provider, not checked, or not kept     2 wrong usage     130 Ctrl-C: nothing was changed
"""

LOGOUT_EXAMPLES = """\
examples:
  covey logout anthropic                  forget its key
  covey logout                            the only one there is, and say whose it was; of several, ask at a terminal
  covey logout openai --account work      this one, if there are several
  covey logout --all                      all of them

The key is removed from where it is kept on this machine. At the provider it stays valid: revoke it there if you must.

exit codes:
  0 forgotten     1 nothing was forgotten     2 wrong usage, or there are several
"""

_ACCOUNT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def _account(text: str) -> str:
    if not _ACCOUNT.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a name of letters, digits, dots, dashes and underscores")
    return text


def _add_login(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("provider", metavar="PROVIDER", nargs="?", help="whose key it is, such as openai")
    parser.add_argument("--account", metavar="NAME", type=_account, help="one of several keys for this provider")
    parser.add_argument("--default", action="store_true", help="use this account unless the configuration says another")
    parser.add_argument("--browser", action="store_true", help="log in on the provider's page (openrouter)")
    parser.add_argument("--file", action="store_true", help="keep it in a file, also if there is a keyring")
    parser.add_argument("--no-check", action="store_true", help="keep it without asking the provider")
    parser.add_argument("--list", action="store_true", help="show the accounts, and where each is kept")
    parser.add_argument("--json", action="store_true", help="with --list: JSON instead of text")


def _add_logout(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "provider", metavar="PROVIDER", nargs="?", help="whose key to forget; default: the only one that is kept"
    )
    parser.add_argument("--account", metavar="NAME", type=_account, help="which of several")
    parser.add_argument("--all", action="store_true", help="forget all keys of all providers")


COMMANDS = {
    "login": Command("keep the key of a provider, in the system's keyring", LOGIN_EXAMPLES, _add_login),
    "logout": Command("forget the key of a provider", LOGOUT_EXAMPLES, _add_logout),
}
