"""What is known of a model: as it is configured and, where that says nothing, as the catalogue has it."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from covey.config.schema import ModelSettings, ProviderSettings
from covey.config.view import describe_model
from covey.models.catalog import ModelCard, lookup
from covey.protocol.requests import ModelInfo

T = TypeVar("T")


def completed(provider: ProviderSettings, model: ModelSettings) -> ModelSettings:
    """The settings of a model, with what the catalogue knows of it. The longest answer is left to the provider."""
    known = _card(provider, model)
    return msgspec.structs.replace(
        model,
        context_window=model.context_window or known.context_window,
        price_prompt=_first(model.price_prompt, known.price_prompt),
        price_completion=_first(model.price_completion, known.price_completion),
        price_cached=_first(model.price_cached, known.price_cached),
        price_cache_write=_first(model.price_cache_write, known.price_cache_write),
        sees_images=_first(model.sees_images, known.sees_images),
    )


def model_info(provider: ProviderSettings, model: ModelSettings) -> ModelInfo:
    """A model, as clients see it."""
    return describe_model(completed(provider, model), reasons=bool(_card(provider, model).reasons))


def _card(provider: ProviderSettings, model: ModelSettings) -> ModelCard:
    return lookup(provider.type, model.id, provider.base_url) or ModelCard(id=model.id)


def _first(configured: T | None, catalogued: T | None) -> T | None:
    return catalogued if configured is None else configured
