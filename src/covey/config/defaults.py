"""Which model is used: what the configuration says, and what there is without one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from covey.config import local_model
from covey.config.check import check
from covey.config.schema import Config, ConfigError, ModelChoice, ModelSettings, ProviderSettings, Url

Role = Literal["large", "small"]
Probe = Callable[[str], Awaitable[list[str] | None]]
"""The ids of the models at a base URL; None when nothing there answers like a model server."""


@dataclass(frozen=True, slots=True)
class Known:
    """A provider of which only the key is missing, and the models that are meant without a further word."""

    keys: tuple[str, ...]
    """The variables that may hold the key; the first that does counts."""
    provider: ProviderSettings
    large: ModelSettings
    small: ModelSettings


OWN_URLS = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com/v1",
    "google": "https://generativelanguage.googleapis.com/v1beta",
}
"""Where a provider of this type is, unless its base_url says otherwise."""

OPENAI_MODEL = ModelSettings(id="gpt-6.1-sol")

# The sizes and prices of these models are in the catalogue. Each is one that every paying account has, and rather the
# middle of the range than its top: who wants more can say so, who pays too much may never notice.
KNOWN = {
    "openai": Known(
        ("OPENAI_API_KEY",),
        ProviderSettings(type="openai", name="OpenAI"),
        OPENAI_MODEL,
        ModelSettings(id="gpt-6-luna"),
    ),
    "anthropic": Known(
        ("ANTHROPIC_API_KEY",),
        ProviderSettings(type="anthropic", name="Anthropic"),
        ModelSettings(id="claude-sonnet-5-5"),
        ModelSettings(id="claude-haiku-5-5"),
    ),
    "google": Known(
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        ProviderSettings(type="google", name="Google"),
        ModelSettings(id="gemini-3.8-flash"),
        ModelSettings(id="gemini-3.5-flash-lite"),
    ),
    "openrouter": Known(
        ("OPENROUTER_API_KEY",),
        ProviderSettings(type="openai-compatible", name="OpenRouter", base_url="https://openrouter.ai/api/v1"),
        ModelSettings(id="anthropic/claude-sonnet-5.5"),
        ModelSettings(id="anthropic/claude-haiku-5.5"),
    ),
    "groq": Known(
        ("GROQ_API_KEY",),
        ProviderSettings(type="openai-compatible", name="Groq", base_url="https://api.groq.com/openai/v1"),
        ModelSettings(id="openai/gpt-oss-120b"),
        ModelSettings(id="openai/gpt-oss-20b"),
    ),
    "deepseek": Known(
        ("DEEPSEEK_API_KEY",),
        ProviderSettings(type="openai-compatible", name="DeepSeek", base_url="https://api.deepseek.com"),
        ModelSettings(id="deepseek-flash"),
        ModelSettings(id="deepseek-flash"),
    ),
}
"""In this order the first one with a key is used."""

LOCAL_SERVERS = {
    "ollama": ProviderSettings(type="openai-compatible", name="Ollama", base_url="http://127.0.0.1:11434/v1"),
    "llamacpp": ProviderSettings(type="openai-compatible", name="llama.cpp", base_url="http://127.0.0.1:8080/v1"),
    "lmstudio": ProviderSettings(type="openai-compatible", name="LM Studio", base_url="http://127.0.0.1:1234/v1"),
}
"""By their default ports; the first that answers is preferred."""


@dataclass(frozen=True, slots=True)
class ResolvedModel:
    """A model that can be asked."""

    provider_id: str
    provider: ProviderSettings
    model: ModelSettings


async def with_defaults(
    config: Config, environ: Mapping[str, str], probe: Probe, logged_in: Collection[str] = ()
) -> Config:
    """`config` with the providers whose key is at hand; where nobody names one, with whatever `discover` finds."""
    if config.providers:
        return with_keys(config, environ, logged_in)
    return _filled(config, await discover(environ, probe, logged_in=logged_in))


def with_keys(config: Config, environ: Mapping[str, str], logged_in: Collection[str]) -> Config:
    """`config` with the known providers that have a key: all that can be said without a search.

    What the files say of a provider wins, and so do their providers wherever a model is meant without a further word.
    Without any provider the result leaves open what a search would find.
    """
    found = _with_keys(environ, logged_in, named=config.providers)
    if found is None:
        return config
    if not config.providers:
        return _filled(config, found)
    providers = {**config.providers, **found.providers}
    return msgspec.structs.replace(config, providers=providers, at_hand=tuple(found.providers))


def _filled(config: Config, found: Config) -> Config:
    """`config`, which names no provider, with those that were found, and with their choice unless it has its own."""
    models = config.models
    if not models.large:
        models = msgspec.structs.replace(found.models, aliases=models.aliases)
    return msgspec.structs.replace(config, providers=found.providers, models=models)


async def discover(
    environ: Mapping[str, str],
    probe: Probe,
    has_embedded: Callable[[], bool] = local_model.is_installed,
    logged_in: Collection[str] = (),
) -> Config:
    """What is there without configuration: providers with a key, else local servers, else the embedded model.

    The keys themselves are not filled in: where each comes from is decided elsewhere, for all providers.
    """
    if found := _with_keys(environ, logged_in):
        return found
    if (local := await _local_servers(probe)).providers:
        return local
    if has_embedded():
        (model,) = local_model.PROVIDER.models
        choice = ModelChoice(large=f"{local_model.PROVIDER_ID}/{model.id}")
        return Config(providers={local_model.PROVIDER_ID: local_model.PROVIDER}, models=choice)
    return Config()


def _with_keys(environ: Mapping[str, str], logged_in: Collection[str], named: Collection[str] = ()) -> Config | None:
    """All known providers that have a key, but for those in `named`; the first is used, and the others can be chosen.

    Those to which the user has logged in come before those whose key merely is in the environment.
    """
    providers: dict[str, ProviderSettings] = {}
    choices: list[ModelChoice] = []
    for provider_id in sorted(KNOWN, key=lambda id: id not in logged_in):
        known = KNOWN[provider_id]
        if provider_id in named or (provider_id not in logged_in and not _key_in(environ, known)[1]):
            continue
        provider = known_provider(provider_id, environ)
        models = (known.large, known.small)
        if provider_id == "openai" and (chosen := environ.get("OPENAI_MODEL")):  # at that address may be no other
            models = (ModelSettings(id=chosen),) * 2
        listed = tuple({model.id: model for model in models}.values())
        providers[provider_id] = msgspec.structs.replace(provider, models=listed)
        choices.append(ModelChoice(large=f"{provider_id}/{models[0].id}", small=f"{provider_id}/{models[1].id}"))
    return Config(providers=providers, models=choices[0]) if choices else None


def known_provider(provider_id: str, environ: Mapping[str, str]) -> ProviderSettings:
    """A provider of KNOWN as it is without any file, and without its key."""
    provider = KNOWN[provider_id].provider
    if provider_id != "openai":
        return provider
    base_url = environ.get("OPENAI_BASE_URL", "")
    check(base_url, Url, "$OPENAI_BASE_URL")
    return msgspec.structs.replace(provider, base_url=base_url)


def environment_key(provider_id: str, provider: ProviderSettings, environ: Mapping[str, str]) -> tuple[str, str]:
    """The variable with the key for this provider, and the key; both empty if there is none.

    A key is for one address. Another server that goes by the same name does not get it, unless the environment itself
    says where that is.
    """
    known = KNOWN.get(provider_id) or KNOWN.get(provider.type)
    if known is None or known.provider.type != provider.type:
        return "", ""
    own = known.provider
    if provider.type == "openai" and (elsewhere := environ.get("OPENAI_BASE_URL")):
        own = msgspec.structs.replace(own, base_url=elsewhere)
    if origin(provider) != origin(own):
        return "", ""
    return _key_in(environ, known)


def _key_in(environ: Mapping[str, str], known: Known) -> tuple[str, str]:
    return next(((name, key) for name in known.keys if (key := environ.get(name, "").strip())), ("", ""))


def origin(provider: ProviderSettings) -> str:
    """Whose server a key is sent to: scheme, host and port; empty if there is none."""
    try:
        parts = urlsplit(provider.base_url or OWN_URLS.get(provider.type, ""))
    except ValueError:
        return ""
    host = parts.netloc.rpartition("@")[2].lower()
    return f"{parts.scheme}://{host}" if host else ""


async def _local_servers(probe: Probe) -> Config:
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


def resolve(config: Config, role: Role) -> ResolvedModel | None:
    """The model for a role: the one chosen, else (for small) the large one, else the first that is listed."""
    _check_read(config)
    for key in ("small", "large") if role == "small" else ("large",):
        if reference := getattr(config.models, key):
            try:
                return find(config, reference)
            except ConfigError as error:
                raise ConfigError(f"models.{key}: {error}") from None
    for provider_id, provider in _by_files(config).items():
        if provider.models:
            return ResolvedModel(provider_id, provider, provider.models[0])
        if provider.type in KNOWN and not provider.base_url:  # the company itself, so its models are known
            known = KNOWN[provider.type]
            return ResolvedModel(provider_id, provider, known.small if role == "small" else known.large)
    return None


def find(config: Config, reference: str) -> ResolvedModel:
    """The model meant by `provider/model`, listed or not, by another name for it, or by a bare id of one provider."""
    _check_read(config)
    reference = config.models.aliases.get(reference, reference)
    at_hand = {id: provider for id, provider in config.providers.items() if id in config.at_hand}
    for providers in (_by_files(config), at_hand):  # a key at hand must not change where a model of the files is found
        if found := _found_among(providers, reference):
            return found
    raise ConfigError(_unknown(config, reference))


def _check_read(config: Config) -> None:
    if config.mistake:
        raise ConfigError(config.mistake)


def why_unknown(config: Config, reference: str) -> str:
    """Why nobody knows a model by this name, as far as that can be said without a search; '' if somebody may.

    `config` has the keys that are at hand (`with_keys`).
    """
    if config.providers:
        try:
            find(config, reference)
        except ConfigError as error:
            return error.message
        return ""
    reference = config.models.aliases.get(reference, reference)
    provider_id, slash, _ = reference.partition("/")
    findable = {*KNOWN, *LOCAL_SERVERS, local_model.PROVIDER_ID}
    return _unknown(config, reference) if slash and provider_id not in findable else ""


def lacks_only_key(config: Config, reference: str) -> bool:
    """Whether it is a model of a provider that Covey knows, which will be there as soon as its key is."""
    provider_id, slash, _ = config.models.aliases.get(reference, reference).partition("/")
    return bool(slash) and provider_id in KNOWN and provider_id not in config.providers


def why_no_prompt(config: Config) -> str:
    """Why prompts are refused with what was configured; '' if they are not, or if only a search can tell.

    `config` has the keys that are at hand (`with_keys`). Small things are left undone while only their key is missing.
    """
    try:
        if config.providers:
            resolve(config, "large")
    except ConfigError as error:
        return error.message
    for role in ("large", "small"):
        reference: str = getattr(config.models, role)
        if reference and not lacks_only_key(config, reference) and (why := why_unknown(config, reference)):
            return f"models.{role}: {why}"
    return ""


def _by_files(config: Config) -> dict[str, ProviderSettings]:
    """The providers out of which a model is chosen by itself: all but those whose key merely is at hand."""
    return {id: provider for id, provider in config.providers.items() if id not in config.at_hand}


def _found_among(providers: Mapping[str, ProviderSettings], reference: str) -> ResolvedModel | None:
    provider_id, _, model_id = reference.partition("/")
    if model_id and provider_id in providers:
        return _of_provider(providers, provider_id, model_id)
    owners = [id for id, provider in providers.items() if any(m.id == reference for m in provider.models)]
    if not owners and len(providers) == 1 and "/" not in reference:
        (only,) = providers
        if not providers[only].models:  # it lists none, so no listed one can have been meant
            owners = [only]
    if len(owners) > 1:
        raise ConfigError(f'"{reference}" is ambiguous; write ' + " or ".join(f"{id}/{reference}" for id in owners))
    return _of_provider(providers, owners[0], reference) if owners else None


def _of_provider(providers: Mapping[str, ProviderSettings], provider_id: str, model_id: str) -> ResolvedModel:
    provider = providers[provider_id]
    listed = (model for model in provider.models if model.id == model_id)
    return ResolvedModel(provider_id, provider, next(listed, ModelSettings(id=model_id)))


def _unknown(config: Config, reference: str) -> str:
    """That no model is known by this name, why, and what is."""
    provider_id, _, model_id = reference.partition("/")
    why = ""
    if lacks_only_key(config, reference):
        why = f": there is no key for {provider_id} (`covey login {provider_id}`, or ${KNOWN[provider_id].keys[0]})"
    elif model_id:
        why = f": there is no provider {provider_id}"
        if provider_id in (*LOCAL_SERVERS, local_model.PROVIDER_ID):
            why += " (it is looked for only where no other provider is known; a file can name it)"
    return f'no model is known as "{reference}"{why}; {_near(config, reference)}{_what_exists(config)}'


def _near(config: Config, reference: str) -> str:
    """What was probably meant, as the beginning of a sentence."""
    from difflib import get_close_matches  # only needed once something is wrong

    names = {f"{id}/{model.id}": model.id for id, provider in config.providers.items() for model in provider.models}
    near = get_close_matches(reference, [*names, *names.values()], n=1, cutoff=0.7)
    provider_id, slash, model_id = reference.partition("/")
    if not near and slash and provider_id not in KNOWN:
        near = [f"{id}/{model_id}" for id in get_close_matches(provider_id, [*config.providers, *KNOWN], n=1)]
    return f"did you mean {near[0]}? " if near else ""


def _what_exists(config: Config) -> str:
    if not config.providers:
        return f"no provider is configured (`covey login` knows {', '.join(KNOWN)})"
    known = [f"{id}/{model.id}" for id, provider in config.providers.items() for model in provider.models]
    known += [f"{id}/<model>" for id, provider in config.providers.items() if not provider.models]
    return f"known: {', '.join(known)} (write provider/model for one that is not listed)"
