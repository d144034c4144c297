"""The configuration as clients may see it. It is built from what may be shown, so a new secret stays out by default."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from covey.config.defaults import Role, resolve
from covey.config.schema import Config, ConfigError, KeyState, ModelSettings, ProviderSettings
from covey.protocol.requests import ConfigView, ModelInfo, Options, ProviderInfo, SelectedModel

Describe = Callable[[ProviderSettings, ModelSettings], ModelInfo]


def describe_model(model: ModelSettings, *, reasons: bool = False) -> ModelInfo:
    """A model, as its settings have it."""
    return ModelInfo(
        id=model.id,
        name=model.name or model.id,
        context_window=model.context_window,
        default_max_tokens=model.max_tokens,
        supports_attachments=bool(model.sees_images),
        can_reason=reasons,
        cost_per_1m_in=model.price_prompt or 0.0,
        cost_per_1m_out=model.price_completion or 0.0,
        cost_per_1m_in_cached=model.price_cache_write or 0.0,
        cost_per_1m_out_cached=model.price_cached or 0.0,
    )


def _as_configured(provider: ProviderSettings, model: ModelSettings) -> ModelInfo:
    del provider
    return describe_model(model)


def view(config: Config, data_dir: Path, describe: Describe = _as_configured) -> ConfigView:
    """No key, no header, no script, and of URLs only what says where they lead. `describe` may know of more models."""
    roles: tuple[Role, ...] = ("large", "small")
    selected: dict[str, SelectedModel] = {role: model for role in roles if (model := _selected(config, role))}
    providers = {
        provider_id: _provider(provider_id, provider, config.keys.get(provider_id), describe)
        for provider_id, provider in config.providers.items()
    }
    return ConfigView(
        models=selected,
        providers=providers,
        options=Options(data_directory=str(data_dir)),
        model_problem=_problem(config),
    )


def _problem(config: Config) -> str:
    try:
        resolve(config, "large")
    except ConfigError as error:
        return error.message
    return ""


def _selected(config: Config, role: Role) -> SelectedModel | None:
    try:
        resolved = resolve(config, role)
    except ConfigError:  # a prompt reports it; this view must work all the same
        return None
    return SelectedModel(model=resolved.model.id, provider=resolved.provider_id) if resolved else None


def _provider(provider_id: str, provider: ProviderSettings, key: KeyState | None, describe: Describe) -> ProviderInfo:
    return ProviderInfo(
        id=provider_id,
        name=provider.name or provider_id,
        type=provider.type,
        base_url=_without_secrets(provider.base_url),
        models=tuple(describe(provider, model) for model in provider.models),
        key_source=key.source if key else "",
        key_problem=key.problem if key else "",
    )


def _without_secrets(url: str) -> str:
    """The URL without user, password, query and fragment; empty when it cannot be known where those are."""
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
        _ = urlsplit(f"//{host}").port  # raises when a password with a slash was taken for host and port
    except ValueError:
        return ""
    if parts.scheme not in ("http", "https") or "@" in parts.path:
        return ""
    return urlunsplit((parts.scheme, host, parts.path, "", ""))
