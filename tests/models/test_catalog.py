"""The catalogue is well kept, and finds models under the names that people and gateways give them."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from covey.config.defaults import KNOWN
from covey.models import catalog
from covey.models.catalog import ModelCard, lookup

CARDS = catalog.load().models


@pytest.mark.parametrize(
    ("provider_type", "model_id", "found"),
    [
        ("anthropic", "claude-opus-5-5", "claude-opus-5-5"),
        ("anthropic", "claude-haiku-4-5-20251001", "claude-haiku-4-5"),
        ("openai", "gpt-5.1-2025-11-13", "gpt-5.1"),
        ("openai", "gpt-5.6", "gpt-5.6-sol"),
        ("openai-compatible", "openai/gpt-6.1-sol", "gpt-6.1-sol"),
        ("openai-compatible", "anthropic/claude-opus-5.5", "claude-opus-5-5"),
        ("openai-compatible", "deepseek/deepseek-v4-pro-0813", "deepseek-v4-pro"),
        ("openai-compatible", "some/gateway/gemini-3.8-flash", "gemini-3.8-flash"),
        ("google", "models/gemini-3.8-flash", "gemini-3.8-flash"),
        ("openai", "claude-opus-5-5", None),
        ("openai", "gpt-99", None),
        ("openai", "gpt-5.1-mini", None),
        ("openai", "", None),
        ("embedded", "smollm2-135m", None),
    ],
)
def test_a_model_is_found_by_its_name(provider_type: str, model_id: str, found: str | None) -> None:
    card = lookup(provider_type, model_id)
    assert (card.id if card else None) == found


def test_prices_that_hold_at_one_place_are_given_only_there() -> None:
    there = lookup("openai-compatible", "openai/gpt-oss-120b", "https://api.groq.com/openai/v1")
    here = lookup("openai-compatible", "openai/gpt-oss-120b", "http://127.0.0.1:1234/v1")
    assert there and there.price_prompt and here and here.price_prompt is None
    assert here.context_window == there.context_window


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.id)
def test_each_card_is_plausible_and_says_where_it_is_from(card: ModelCard) -> None:
    assert card.types and card.sources
    assert set(card.sources) <= set(catalog.load().sources)
    assert card.context_window == 0 or 1000 < card.context_window < 20_000_000
    assert card.max_tokens <= (card.context_window or card.max_tokens)
    assert (card.price_prompt is None) == (card.price_completion is None)
    if card.price_prompt is not None and card.price_completion is not None:
        assert 0 < card.price_prompt <= card.price_completion < 1000
        assert (card.price_cached or 0) < card.price_prompt
        assert card.price_cache_write is None or card.price_prompt < card.price_cache_write <= 2 * card.price_prompt


def test_names_are_used_once_and_sources_are_used() -> None:
    names = [(kind, name.lower()) for card in CARDS for kind in card.types for name in (card.id, *card.aliases)]
    assert len(names) == len(set(names))
    used = {source for card in CARDS for source in card.sources}
    assert used == set(catalog.load().sources)
    for source in catalog.load().sources.values():
        assert source.url.startswith("https://") and re.fullmatch(r"20\d\d-\d\d-\d\d", source.read)


@pytest.mark.parametrize("provider_id", KNOWN)
def test_the_models_that_are_used_without_configuration_are_known(provider_id: str) -> None:
    known = KNOWN[provider_id]
    for model in (known.large, known.small):
        card = lookup(known.provider.type, model.id, known.provider.base_url)
        assert card and card.price_prompt and card.context_window and card.sees_images is not None


def test_the_file_is_read_when_it_is_first_needed_and_that_is_quick() -> None:
    script = (
        "import time\n"
        "from covey.models import catalog\n"
        "assert catalog.load.cache_info().currsize == 0\n"
        "begun = time.process_time()\n"
        "catalog.lookup('openai', 'gpt-6.1-sol')\n"
        "assert (spent := time.process_time() - begun) < 0.02, spent\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
