"""Is this key good? Asked of the provider itself, by its own client."""

from __future__ import annotations

import msgspec

from covey.config.schema import ProviderSettings
from covey.credentials.accounts import CredentialsError
from covey.models.base import ModelFailed
from covey.models.connect import open_client
from covey.models.wire import WireClient

PATIENCE_S = 20.0
"""Somebody waits for it at a terminal."""


class KeyRefused(CredentialsError):
    """The provider was asked, and does not take it."""


async def check_key(provider_id: str, settings: ProviderSettings) -> None:
    """One cheap request with the key of the settings. Raises KeyRefused, or CredentialsError if it cannot be known."""
    try:
        client = open_client(provider_id, msgspec.structs.replace(settings, idle_timeout_s=PATIENCE_S))
        try:
            if isinstance(client, WireClient):
                await client.check_key()
        finally:
            await client.aclose()
    except ModelFailed as failure:
        raise (KeyRefused if failure.auth else CredentialsError)(str(failure)) from None
