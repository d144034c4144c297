"""From settings to a client."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from covey.config.defaults import OWN_URLS
from covey.config.schema import ProviderSettings
from covey.models.connect import open_client
from covey.models.openai_compatible import OpenAIChat, OpenAICompatible
from covey.models.openai_responses import OpenAIResponses
from covey.models.scripted import Scripted
from covey.models.wire import WireClient


def test_scripted() -> None:
    assert isinstance(open_client("demo", ProviderSettings(type="scripted")), Scripted)


def test_openai_compatible() -> None:
    settings = ProviderSettings(type="openai-compatible", base_url="http://127.0.0.1:1/v1")
    assert type(open_client("local", settings)) is OpenAICompatible


@pytest.mark.parametrize(
    ("fields", "kind", "address"),
    [
        ({}, OpenAIResponses, OWN_URLS["openai"]),
        ({"base_url": "https://api.openai.com/v1/"}, OpenAIResponses, OWN_URLS["openai"]),
        ({"base_url": "https://eu.api.openai.com/v1"}, OpenAIResponses, "https://eu.api.openai.com/v1"),
        ({"base_url": "https://gateway.example/v1"}, OpenAIChat, "https://gateway.example/v1"),
        ({"base_url": "https://notapi.openai.com.example/v1"}, OpenAIChat, "https://notapi.openai.com.example/v1"),
        ({"base_url": "https://gateway.example/v1", "api": "responses"}, OpenAIResponses, "https://gateway.example/v1"),
        ({"api": "chat"}, OpenAIChat, OWN_URLS["openai"]),
        ({"api": "responses"}, OpenAIResponses, OWN_URLS["openai"]),
    ],
)
def test_openai_has_two_apis_and_an_address_of_its_own(
    fields: dict[str, Any], kind: type[WireClient], address: str
) -> None:
    client = open_client("openai", ProviderSettings(type="openai", api_key="x", **fields))
    assert type(client) is kind
    assert client._address() == address


def test_the_key_of_a_provider_goes_where_it_wants_it() -> None:
    client = open_client("a", ProviderSettings(type="anthropic", api_key="sk-very-secret"))
    assert isinstance(client, WireClient)
    assert "sk-very-secret" in client._headers().values()


def test_google_has_an_address_of_its_own() -> None:
    client = open_client("g", ProviderSettings(type="google", api_key="x"))
    assert isinstance(client, WireClient)
    assert client._address().startswith("https://generativelanguage.googleapis.com/")


def test_only_what_is_needed_is_imported() -> None:
    code = (
        "import sys; from covey.models.connect import open_client; from covey.config.schema import ProviderSettings;"
        "open_client('demo', ProviderSettings(type='scripted'));"
        "open_client('local', ProviderSettings(type='openai-compatible', base_url='http://127.0.0.1:1/v1'));"
        "print([name for name in ('httpx2', 'ssl', 'uvloop', 'covey.models.anthropic', 'covey.models.google',"
        "'covey.models.embedded', 'covey.models.openai_responses') if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert "httpx2" not in result.stdout and "covey" not in result.stdout
