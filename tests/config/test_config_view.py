"""What clients may see of the configuration: enough to choose a model, and no secret."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from covey.config.schema import Config, ModelChoice, ModelSettings, PermissionSettings, ProviderSettings
from covey.config.view import view
from covey.protocol.requests import ModelInfo, Options, ProviderInfo, SelectedModel

DATA = Path("/data")


def test_a_view_has_models_and_providers() -> None:
    model = ModelSettings(id="big", name="Big", context_window=9, max_tokens=4)
    local = ProviderSettings(
        type="openai-compatible", name="Local", base_url="http://127.0.0.1:8080/v1", models=(model,)
    )
    shown = view(Config(providers={"local": local}, models=ModelChoice(large="local/big")), DATA)
    chosen = SelectedModel(model="big", provider="local")
    assert shown.models == {"large": chosen, "small": chosen}
    assert shown.providers == {
        "local": ProviderInfo(
            id="local",
            name="Local",
            type="openai-compatible",
            base_url="http://127.0.0.1:8080/v1",
            models=(ModelInfo(id="big", name="Big", context_window=9, default_max_tokens=4),),
        )
    }
    assert shown.options == Options(data_directory="/data")


def test_names_default_to_ids() -> None:
    shown = view(Config(providers={"p": ProviderSettings(type="openai", models=(ModelSettings(id="m"),))}), DATA)
    assert (shown.providers["p"].name, shown.providers["p"].models[0].name) == ("p", "m")


@pytest.mark.parametrize("models", [ModelChoice(), ModelChoice(large="no/such", small="thing")])
def test_what_cannot_be_resolved_is_left_out(models: ModelChoice) -> None:
    assert view(Config(models=models), DATA).models == {}


@pytest.mark.parametrize(
    ("base_url", "shown"),
    [
        ("https://api.example/v1", "https://api.example/v1"),
        ("https://user:s3cret@api.example:8443/v1?key=s3cret#s3cret", "https://api.example:8443/v1"),
        ("https://s3cret@api.example", "https://api.example"),
        ("https://api.example/v1?mail=a@s3cret", "https://api.example/v1"),
        ("http://[::1]:8080/v1", "http://[::1]:8080/v1"),
        ("http://u:s3cret@[::1]/v1", "http://[::1]/v1"),
        ("http://user:s3cret/x@host/v1", ""),
        ("http://user:12/s3cret@host/v1", ""),
        ("http://[s3cret", ""),
        ("user:s3cret@host/v1", ""),
        ("", ""),
    ],
)
def test_no_secret_is_shown(base_url: str, shown: str) -> None:
    provider = ProviderSettings(
        type="scripted", base_url=base_url, api_key="s3cret", headers={"x": "s3cret"}, script="/s3cret"
    )
    config = Config(providers={"p": provider}, permissions=PermissionSettings(allow=("s3cret",)))
    value = view(config, DATA)
    assert value.providers["p"].base_url == shown
    assert b"s3cret" not in msgspec.json.encode(value)


def test_a_view_says_why_the_configured_model_cannot_be_asked() -> None:
    wrong = Config(models=ModelChoice(large="nope/x"))
    assert 'no model is known as "nope/x": there is no provider nope' in view(wrong, Path("/data")).model_problem
    assert view(Config(), Path("/data")).model_problem == ""
