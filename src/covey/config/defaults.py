"""Which model is used: what the configuration says, and what there is without one. Does no I/O of its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import msgspec

from covey.config.check import check
from covey.config.schema import Config, ConfigError, ModelChoice, ModelSettings, ProviderSettings, Url

Role = Literal["large", "small"]
Probe = Callable[[str], Awaitable[list[str] | None]]
"""The ids of the models at a base URL; None when nothing there answers like a model server."""

# It takes at most 272,000 tokens in, whatever it may add to them: that is the number after which to summarise.
OPENAI_MODEL = ModelSettings(id="gpt-5.1", context_window=272_000)

LOCAL_SERVERS = {
    "ollama": ProviderSettings(type="openai-compatible", name="Ollama", base_url="http://127.0.0.1:11434/v1"),
    "llamacpp": ProviderSettings(type="openai-compatible", name="llama.cpp", base_url="http://127.0.0.1:8080/v1"),
    "lmstudio": ProviderSettings(type="openai-compatible", name="LM Studio", base_url="http://127.0.0.1:1234/v1"),
}
"""By their default ports; the first that answers is preferred."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """A model that can be asked."""

    provider_id: str
    provider: ProviderSettings
    model: ModelSettings


async def with_defaults(config: Config, environ: Mapping[str, str], probe: Probe) -> Config:
    """`config` as it is when it names a provider, else with whatever `discover` finds."""
    if config.providers:
        return config
    found = await discover(environ, probe)
    models = config.models if config.models.large else found.models
    return msgspec.structs.replace(config, providers=found.providers, models=models)


async def discover(environ: Mapping[str, str], probe: Probe) -> Config:
    """What is there without configuration: OpenAI with a key, else local servers that answer, else nothing."""
    if api_key := environ.get("OPENAI_API_KEY"):
        chosen = environ.get("OPENAI_MODEL")
        model = ModelSettings(id=chosen) if chosen else OPENAI_MODEL
        base_url = environ.get("OPENAI_BASE_URL", "")
        check(base_url, Url, "$OPENAI_BASE_URL")
        openai = ProviderSettings(type="openai", name="OpenAI", api_key=api_key, base_url=base_url, models=(model,))
        return Config(providers={"openai": openai}, models=ModelChoice(large=f"openai/{model.id}"))

    import asyncio  # late: who has a configuration never comes here

    answers = await asyncio.gather(*(probe(server.base_url) for server in LOCAL_SERVERS.values()))
    providers: dict[str, ProviderSettings] = {}
    for (provider_id, server), ids in zip(LOCAL_SERVERS.items(), answers, strict=True):
        # Local servers list their embedding models too, often first; those cannot hold a conversation.
        models = tuple(ModelSettings(id=id) for id in ids or () if "embed" not in id.lower())
        if models:
            providers[provider_id] = msgspec.structs.replace(server, models=models)
    first = next((f"{provider_id}/{provider.models[0].id}" for provider_id, provider in providers.items()), "")
    return Config(providers=providers, models=ModelChoice(large=first))


def resolve(config: Config, role: Role) -> Resolved | None:
    """The model for a role: the one chosen, else (for small) the large one, else the first that is listed."""
    for key in ("small", "large") if role == "small" else ("large",):
        if reference := getattr(config.models, key):
            try:
                return find(config, reference)
            except ConfigError as error:
                raise ConfigError(f"models.{key}: {error}") from None
    return next(
        (Resolved(id, provider, provider.models[0]) for id, provider in config.providers.items() if provider.models),
        None,
    )


def find(config: Config, reference: str) -> Resolved:
    """The model meant by `provider/model`, listed or not, or by a bare id that only one provider can mean."""
    provider_id, _, model_id = reference.partition("/")
    if model_id and provider_id in config.providers:
        return _of_provider(config, provider_id, model_id)
    owners = [id for id, provider in config.providers.items() if any(m.id == reference for m in provider.models)]
    if not owners and len(config.providers) == 1 and "/" not in reference:
        (only,) = config.providers
        if not config.providers[only].models:  # it lists none, so no listed one can have been meant
            owners = [only]
    if len(owners) == 1:
        return _of_provider(config, owners[0], reference)
    if owners:
        raise ConfigError(f'"{reference}" is ambiguous; write ' + " or ".join(f"{id}/{reference}" for id in owners))
    raise ConfigError(f'no model is known as "{reference}"; {_what_exists(config)}')


def _of_provider(config: Config, provider_id: str, model_id: str) -> Resolved:
    provider = config.providers[provider_id]
    listed = (model for model in provider.models if model.id == model_id)
    return Resolved(provider_id, provider, next(listed, ModelSettings(id=model_id)))


def _what_exists(config: Config) -> str:
    if not config.providers:
        return "no provider is configured"
    known = [f"{id}/{model.id}" for id, provider in config.providers.items() for model in provider.models]
    known += [f"{id}/<model>" for id, provider in config.providers.items() if not provider.models]
    return f"known: {', '.join(known)} (write provider/model for one that is not listed)"
