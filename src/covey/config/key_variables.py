"""Which environment variables hold providers' keys. They are for the server: what it runs does not get them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from covey.config.defaults import KNOWN
from covey.config.expand import references

PROVIDERS_KEYS = frozenset(name for known in KNOWN.values() for name in known.keys) | {
    "ANTHROPIC_AUTH_TOKEN",
    "AZURE_API_KEY",
    "AZURE_OPENAI_API_KEY",
    "BRAVE_API_KEY",
    "CEREBRAS_API_KEY",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "COHERE_API_KEY",
    "CO_API_KEY",
    "DASHSCOPE_API_KEY",
    "FIREWORKS_API_KEY",
    "MISTRAL_API_KEY",
    "MOONSHOT_API_KEY",
    "NVIDIA_API_KEY",
    "OPENAI_ADMIN_KEY",
    "PERPLEXITY_API_KEY",
    "TAVILY_API_KEY",
    "TOGETHER_API_KEY",
    "XAI_API_KEY",
    "ZAI_API_KEY",
}
"""Those that pay for a model and for nothing else. Keys of other services, such as GITHUB_TOKEN, AWS_* and HF_TOKEN,
are what the user's own commands need, and stay."""


def key_variables(raw: dict[str, Any]) -> set[str]:
    """The variables that become keys and headers of providers, the query of an address, a webhook, a search's key, or
    the URL of a database."""
    providers, notify, search = raw.get("providers", {}), raw.get("notify", {}), raw.get("search", {})
    texts = [text for provider in providers.values() for text in _secrets(provider)]
    texts += [notify.get("webhook", ""), notify.get("webhook_secret", ""), search.get("api_key", "")]
    texts.append(raw.get("cluster", {}).get("store", ""))
    return {name for text in texts for name in references(text)}


def _secrets(provider: dict[str, Any]) -> Iterator[str]:
    yield provider.get("api_key", "")
    yield from provider.get("headers", {}).values()
    yield provider.get("base_url", "").partition("?")[2]
