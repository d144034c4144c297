"""From a provider's settings to a client that speaks its language. Each wire format is imported when it is needed."""

from __future__ import annotations

from typing import assert_never

import msgspec

from covey.config.schema import ProviderSettings
from covey.models.base import ModelClient, ModelFailed

OPENAI_URL = "https://api.openai.com/v1"

_INSTEAD = {
    "anthropic": 'use type = "openai-compatible" with base_url = "https://api.anthropic.com/v1"',
    "google": 'use type = "openai-compatible" with base_url = "https://generativelanguage.googleapis.com/v1beta/openai"',
    "embedded": 'use type = "openai-compatible" with a local server, such as Ollama (base_url = '
    '"http://127.0.0.1:11434/v1"), or type = "scripted" for a demonstration',
}
"""What serves until there is a client for the type."""


def open_client(provider_id: str, settings: ProviderSettings) -> ModelClient:
    """The client for a provider; raises ModelFailed if its settings cannot work."""
    match settings.type:
        case "openai":
            from covey.models.openai_compatible import OpenAICompatible

            base_url = settings.base_url or OPENAI_URL
            return OpenAICompatible(provider_id, msgspec.structs.replace(settings, base_url=base_url))
        case "openai-compatible":
            from covey.models.openai_compatible import OpenAICompatible

            return OpenAICompatible(provider_id, settings)
        case "scripted":
            from covey.models.scripted import Scripted

            return Scripted(provider_id, settings)
        case "anthropic" | "google" | "embedded":
            raise ModelFailed(
                f'{provider_id}: providers of type "{settings.type}" are not supported yet. '
                f"Instead, {_INSTEAD[settings.type]}."
            )
        case _:
            assert_never(settings.type)
