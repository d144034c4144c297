"""The configuration as clients may see it. It is built from what may be shown, so a new secret stays out by default."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from covey.config.defaults import Role, resolve
from covey.config.schema import Config, ConfigError, KeyState, ProviderSettings
from covey.protocol.requests import ConfigView, ModelInfo, Options, ProviderInfo, SelectedModel


def view(config: Config, data_dir: Path) -> ConfigView:
    """No key, no header, no script, and of URLs only what says where they lead."""
    roles: tuple[Role, ...] = ("large", "small")
    selected: dict[str, SelectedModel] = {role: model for role in roles if (model := _selected(config, role))}
    providers = {
        provider_id: _provider(provider_id, provider, config.keys.get(provider_id))
        for provider_id, provider in config.providers.items()
    }
    return ConfigView(models=selected, providers=providers, options=Options(data_directory=str(data_dir)))


def _selected(config: Config, role: Role) -> SelectedModel | None:
    try:
        resolved = resolve(config, role)
    except ConfigError:  # a prompt reports it; this view must work all the same
        return None
    return SelectedModel(model=resolved.model.id, provider=resolved.provider_id) if resolved else None


def _provider(provider_id: str, provider: ProviderSettings, key: KeyState | None) -> ProviderInfo:
    models = tuple(
        ModelInfo(
            id=model.id,
            name=model.name or model.id,
            context_window=model.context_window,
            default_max_tokens=model.max_tokens,
        )
        for model in provider.models
    )
    return ProviderInfo(
        id=provider_id,
        name=provider.name or provider_id,
        type=provider.type,
        base_url=_without_secrets(provider.base_url),
        models=models,
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
