"""Where the keys of providers come from, as `covey doctor` says it: without a server, and without fetching one."""

from __future__ import annotations

from collections.abc import Mapping

from covey.config.defaults import KNOWN, known_provider
from covey.config.load import load
from covey.config.schema import ConfigError
from covey.credentials.accounts import CredentialsError
from covey.credentials.file import read_accounts
from covey.credentials.sources import NoKey, describe, source_of


def look(environ: Mapping[str, str]) -> dict[str, str]:
    """By provider, where its key comes from, or what is wrong with that. Reads the user's own files; runs nothing."""
    try:
        named = load(None, None, environ).config.providers
        known = {name: known_provider(name, environ) for name in KNOWN if name not in named}
        accounts = read_accounts(environ)
    except ConfigError:  # reported where the configuration is read
        return {}
    except CredentialsError as error:
        return {"every provider": str(error)}
    sources = {name: source_of(name, provider, accounts, environ) for name, provider in {**named, **known}.items()}
    return {
        name: about
        for name, source in sources.items()
        if (about := source.problem if isinstance(source, NoKey) else describe(source))
    }
