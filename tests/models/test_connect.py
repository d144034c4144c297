"""From settings to a client."""

from __future__ import annotations

import subprocess
import sys

import pytest

from covey.config.schema import ProviderSettings, ProviderType
from covey.models.base import ModelFailed
from covey.models.connect import OPENAI_URL, open_client
from covey.models.openai_compatible import OpenAICompatible
from covey.models.scripted import Scripted


def test_scripted() -> None:
    assert isinstance(open_client("demo", ProviderSettings(type="scripted")), Scripted)


def test_openai_compatible() -> None:
    settings = ProviderSettings(type="openai-compatible", base_url="http://127.0.0.1:1/v1")
    assert isinstance(open_client("local", settings), OpenAICompatible)


@pytest.mark.parametrize(
    ("base_url", "used"), [("", OPENAI_URL), ("https://gateway.example/v1", "https://gateway.example/v1")]
)
def test_openai_has_an_address_of_its_own(base_url: str, used: str) -> None:
    client = open_client("openai", ProviderSettings(type="openai", base_url=base_url, api_key="x"))
    assert isinstance(client, OpenAICompatible)
    assert client._settings.base_url == used and client._max_tokens_field == "max_completion_tokens"


@pytest.mark.parametrize("kind", ["anthropic", "google", "embedded"])
def test_what_is_not_supported_yet_says_what_to_use(kind: ProviderType) -> None:
    with pytest.raises(ModelFailed, match=f'p: providers of type "{kind}" are not supported yet. Instead, use type = '):
        open_client("p", ProviderSettings(type=kind))


def test_only_what_is_needed_is_imported() -> None:
    code = (
        "import sys; from covey.models.connect import open_client; from covey.config.schema import ProviderSettings;"
        "open_client('demo', ProviderSettings(type='scripted'));"
        "open_client('local', ProviderSettings(type='openai-compatible', base_url='http://127.0.0.1:1/v1'));"
        "print([name for name in ('httpx2', 'ssl', 'uvloop') if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert "httpx2" not in result.stdout
