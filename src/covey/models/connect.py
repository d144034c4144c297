"""From a provider's settings to a client that speaks its language. Each wire format is imported when it is needed."""

from __future__ import annotations

from typing import assert_never
from urllib.parse import urlsplit

from covey.config.schema import ProviderSettings
from covey.models.base import ModelClient

OLLAMA_PORT = 11434
LOOPBACK = ("127.0.0.1", "localhost", "::1")


def open_client(provider_id: str, settings: ProviderSettings) -> ModelClient:
    """The client for a provider; raises ModelFailed if its settings cannot work."""
    match settings.type:
        case "openai" if _speaks_responses(settings):
            from covey.models.openai_responses import OpenAIResponses

            return OpenAIResponses(provider_id, settings)
        case "openai":
            from covey.models.openai_compatible import OpenAIChat

            return OpenAIChat(provider_id, settings)
        case "openai-compatible" if _is_openrouter(provider_id, settings):
            from covey.models.openrouter import OpenRouter

            return OpenRouter(provider_id, settings)
        case "openai-compatible" if _is_ollama(provider_id, settings):
            from covey.models.ollama import Ollama

            return Ollama(provider_id, settings)
        case "openai-compatible":
            from covey.models.openai_compatible import OpenAICompatible

            return OpenAICompatible(provider_id, settings)
        case "anthropic":
            from covey.models.anthropic import Anthropic

            return Anthropic(provider_id, settings)
        case "google":
            from covey.models.google import Google

            return Google(provider_id, settings)
        case "embedded":
            from covey.models.embedded import Embedded

            return Embedded(provider_id, settings)
        case "scripted":
            from covey.models.scripted import Scripted

            return Scripted(provider_id, settings)
        case _:
            assert_never(settings.type)


def _speaks_responses(settings: ProviderSettings) -> bool:
    """As the settings say; else OpenAI itself does, and other servers rather not."""
    if settings.api:
        return settings.api == "responses"
    host = _host(settings)
    return not settings.base_url or host == "api.openai.com" or host.endswith(".api.openai.com")


def _is_openrouter(provider_id: str, settings: ProviderSettings) -> bool:
    """By its address, or by its name where something stands before it."""
    return provider_id == "openrouter" or _host(settings) == "openrouter.ai"


def _is_ollama(provider_id: str, settings: ProviderSettings) -> bool:
    """By its port or its name, and on this machine: other servers are asked nothing but what they are there for."""
    own = provider_id == "ollama" or urlsplit(settings.base_url).port == OLLAMA_PORT
    return own and _host(settings) in LOOPBACK


def _host(settings: ProviderSettings) -> str:
    return urlsplit(settings.base_url).hostname or ""
