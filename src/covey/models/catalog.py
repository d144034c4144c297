"""What is known of well-known models: their sizes, their prices and what they can do. Read from `catalog.json`.

It knows nothing that must be known: a model that is not in it works, only its sizes and prices are not known. What a
user has set always counts more. docs/MODELS.md says how the file is kept.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from covey.config.schema import Count, Price, ProviderType

FILE = Path(__file__).with_name("catalog.json")

_SNAPSHOT = re.compile(r"[-@](?:20\d\d-?\d\d-?\d\d|\d{4})$")
"""What a dated version of a model has after its name."""


class ModelCard(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is known of one model. Prices are dollars for a million tokens; None and 0: not known."""

    id: str
    types: tuple[ProviderType, ...] = ()
    """Who serves it under this name; `openai-compatible` servers may serve any."""
    aliases: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    """Where the prices hold, for models that anybody may serve; empty: everywhere."""
    context_window: Count = 0
    """Tokens that fit in: without the answer, where that is known."""
    max_tokens: Count = 0
    """The longest answer."""
    price_prompt: Price | None = None
    price_completion: Price | None = None
    price_cached: Price | None = None
    price_cache_write: Price | None = None
    sees_images: bool | None = None
    reasons: bool | None = None
    sources: tuple[str, ...] = ()
    """Keys of the file's `sources`: where it is published, and when it was read."""
    note: str = ""


class Source(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    url: str
    read: str
    """The date, such as 2026-11-16."""


class Catalog(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole file."""

    about: str
    sources: dict[str, Source]
    models: tuple[ModelCard, ...]


def lookup(provider_type: str, model_id: str, base_url: str = "") -> ModelCard | None:
    """What is known of a model, by its name, the name of which it is a dated version, or that after a `vendor/`.

    `base_url` is that of the provider: some prices hold at one place only.
    """
    tail = model_id.rsplit("/", 1)[-1]
    for name in (model_id, _SNAPSHOT.sub("", model_id), tail, _SNAPSHOT.sub("", tail)):
        for card in _index().get(_key(name), ()):
            if provider_type in card.types or provider_type == "openai-compatible":
                return _without_prices(card) if card.hosts and _host(base_url) not in card.hosts else card
    return None


@cache
def load() -> Catalog:
    """The file, read once, when somebody first asks."""
    return msgspec.json.decode(FILE.read_bytes(), type=Catalog)


@cache
def _index() -> dict[str, list[ModelCard]]:
    index: dict[str, list[ModelCard]] = {}
    for card in load().models:
        for name in (card.id, *card.aliases):
            index.setdefault(_key(name), []).append(card)
    return index


def _key(name: str) -> str:
    """Some write claude-opus-5.5, some claude-opus-5-5."""
    return name.lower().replace(".", "-")


def _host(base_url: str) -> str:
    return urlsplit(base_url).hostname or ""


def _without_prices(card: ModelCard) -> ModelCard:
    return msgspec.structs.replace(
        card, price_prompt=None, price_completion=None, price_cached=None, price_cache_write=None
    )
