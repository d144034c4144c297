"""The configuration with the keys that are at hand here, as a server would have it before any search. Fetches none."""

from __future__ import annotations

import os

from covey.config.defaults import with_keys
from covey.config.schema import Config
from covey.credentials.accounts import CredentialsError
from covey.credentials.file import read_accounts


def with_keys_here(config: Config) -> Config:
    """With the providers that were logged in to, or whose key is in the environment. Raises ConfigError."""
    try:
        logged_in = read_accounts(os.environ).providers
    except CredentialsError:  # a server goes on without them as well; `covey doctor` says it among the keys
        logged_in = frozenset()
    return with_keys(config, os.environ, logged_in)
