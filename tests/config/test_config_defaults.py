"""Which model is used with little or no configuration, and how a reference to one is read."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from covey.config import local_model
from covey.config.defaults import (
    KNOWN,
    OPENAI_MODEL,
    Role,
    discover,
    environment_key,
    find,
    resolve,
    why_no_prompt,
    with_defaults,
    with_keys,
)
from covey.config.schema import Config, ConfigError, LimitSettings, ModelChoice, ModelSettings, ProviderSettings

OLLAMA, LLAMACPP, LMSTUDIO = (f"http://127.0.0.1:{port}/v1" for port in (11434, 8080, 1234))


class Servers:
    """A probe that answers from a table. It answers nobody before all three have been asked."""

    def __init__(self, answers: dict[str, list[str]]) -> None:
        self.answers = answers
        self.asked: list[str] = []
        self.all_asked = asyncio.Event()

    async def __call__(self, base_url: str) -> list[str] | None:
        self.asked.append(base_url)
        if len(self.asked) == 3:
            self.all_asked.set()
        async with asyncio.timeout(30):
            await self.all_asked.wait()
        return self.answers.get(base_url)


async def nobody(base_url: str) -> list[str] | None:
    raise AssertionError(f"{base_url} must not be asked")


def provider(*ids: str) -> ProviderSettings:
    return ProviderSettings(type="openai-compatible", models=tuple(ModelSettings(id=id, max_tokens=7) for id in ids))


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("variable", "provider_id"),
    [
        ("OPENAI_API_KEY", "openai"),
        ("ANTHROPIC_API_KEY", "anthropic"),
        ("GEMINI_API_KEY", "google"),
        ("GOOGLE_API_KEY", "google"),
        ("OPENROUTER_API_KEY", "openrouter"),
        ("GROQ_API_KEY", "groq"),
        ("DEEPSEEK_API_KEY", "deepseek"),
    ],
)
async def test_a_key_in_the_environment_is_enough(variable: str, provider_id: str) -> None:
    config = await discover({variable: " k\n"}, nobody)
    assert list(config.providers) == [provider_id]
    found, known = config.providers[provider_id], KNOWN[provider_id]
    assert (found.type, found.api_key, found.base_url) == (known.provider.type, "", known.provider.base_url)
    assert environment_key(provider_id, found, {variable: " k\n"}) == (variable, "k")
    large, small = resolve(config, "large"), resolve(config, "small")
    assert large is not None and (large.provider_id, large.model) == (provider_id, known.large)
    assert small is not None and (small.provider_id, small.model) == (provider_id, known.small)


@pytest.mark.parametrize("provider_id", KNOWN)
def test_the_page_names_the_keys_and_the_models(provider_id: str) -> None:
    page = (Path(__file__).parents[2] / "docs" / "CONFIGURATION.md").read_text("utf-8")
    known = KNOWN[provider_id]
    small = "the same" if known.small == known.large else f"`{known.small.id}`"
    keys = ", else ".join(f"`{key}`" for key in known.keys)
    assert f"| {keys} | {known.provider.name} | `{known.large.id}` | {small} |" in page


@pytest.mark.anyio
async def test_of_several_keys_the_first_is_used_and_all_can_be_chosen() -> None:
    keys = {known.keys[0]: provider_id for provider_id, known in reversed(KNOWN.items())}
    config = await discover(keys, nobody)
    assert list(config.providers) == ["openai", "anthropic", "google", "openrouter", "groq", "deepseek"]
    assert config.models.large == f"openai/{OPENAI_MODEL.id}"
    assert find(config, f"anthropic/{KNOWN['anthropic'].large.id}").provider_id == "anthropic"
    del keys["OPENAI_API_KEY"]
    assert (await discover(keys, nobody)).models.large.startswith("anthropic/")
    google = {"GOOGLE_API_KEY": "second", "GEMINI_API_KEY": "first"}
    provider = (await discover(google, nobody)).providers["google"]
    assert environment_key("google", provider, google) == ("GEMINI_API_KEY", "first")


@pytest.mark.anyio
async def test_a_provider_that_was_logged_in_to_comes_before_those_of_the_environment() -> None:
    config = await discover({"OPENAI_API_KEY": "k"}, nobody, logged_in={"groq", "anthropic", "elsewhere"})
    assert list(config.providers) == ["anthropic", "groq", "openai"]
    assert config.models.large.startswith("anthropic/")


@pytest.mark.parametrize(
    ("provider_id", "settings", "variable"),
    [
        ("openai", {"type": "openai"}, "OPENAI_API_KEY"),
        ("mine", {"type": "openai", "base_url": "https://api.openai.com/v1"}, "OPENAI_API_KEY"),
        ("openai", {"type": "openai", "base_url": "https://api.openai.com.evil.example/v1"}, ""),
        ("openai", {"type": "openai", "base_url": "http://api.openai.com/v1"}, ""),
        ("openai", {"type": "openai-compatible", "base_url": "http://127.0.0.1:1"}, ""),
        ("groq", {"type": "openai-compatible", "base_url": "https://api.groq.com/openai/v1"}, "GROQ_API_KEY"),
        ("groq", {"type": "openai-compatible", "base_url": "https://elsewhere.example/v1"}, ""),
        ("local", {"type": "openai-compatible", "base_url": "http://127.0.0.1:1"}, ""),
        ("odd", {"type": "anthropic", "base_url": "http://[odd"}, ""),
    ],
)
def test_a_key_of_the_environment_goes_to_its_own_address_only(
    provider_id: str, settings: dict[str, Any], variable: str
) -> None:
    environ = {"OPENAI_API_KEY": "o", "GROQ_API_KEY": "g", "ANTHROPIC_API_KEY": "a"}
    assert environment_key(provider_id, ProviderSettings(**settings), environ)[0] == variable


def test_with_another_address_in_the_environment_the_key_goes_there_and_nowhere_else() -> None:
    environ = {"OPENAI_API_KEY": "o", "OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}
    there = ProviderSettings(type="openai", base_url="http://127.0.0.1:1/other")
    assert environment_key("openai", there, environ)[1] == "o"
    assert environment_key("openai", ProviderSettings(type="openai"), environ)[1] == ""


@pytest.mark.anyio
async def test_the_environment_may_choose_model_and_url() -> None:
    environ = {"OPENAI_API_KEY": "k", "OPENAI_MODEL": "org/m", "OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}
    resolved = resolve(await discover(environ, nobody), "large")
    assert resolved is not None
    assert (resolved.provider_id, resolved.model.id, resolved.provider.base_url) == (
        "openai",
        "org/m",
        "http://127.0.0.1:1/v1",
    )
    assert resolved == resolve(await discover(environ, nobody), "small"), "there may be no other model at that address"
    with pytest.raises(ConfigError, match=r"^\$OPENAI_BASE_URL: expected a URL"):
        await discover(environ | {"OPENAI_BASE_URL": "elsewhere"}, nobody)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("answers", "large", "providers"),
    [
        ({OLLAMA: ["a", "b"]}, "ollama/a", ["ollama"]),
        ({LLAMACPP: ["x.gguf"]}, "llamacpp/x.gguf", ["llamacpp"]),
        ({LMSTUDIO: ["qwen/q"]}, "lmstudio/qwen/q", ["lmstudio"]),
        ({LMSTUDIO: ["l"], LLAMACPP: ["m"]}, "llamacpp/m", ["llamacpp", "lmstudio"]),
        ({OLLAMA: [], LMSTUDIO: ["text-embedding-x", "chat"]}, "lmstudio/chat", ["lmstudio"]),
        ({LMSTUDIO: ["text-embedding-x"]}, "", []),
        ({}, "", []),
    ],
)
async def test_local_servers_are_asked_all_at_once(
    answers: dict[str, list[str]], large: str, providers: list[str]
) -> None:
    servers = Servers(answers)
    config = await discover({"OPENAI_API_KEY": "", "GROQ_API_KEY": " "}, servers, lambda: False)
    assert sorted(servers.asked) == sorted([OLLAMA, LLAMACPP, LMSTUDIO])
    assert config.models.large == large
    assert list(config.providers) == providers
    resolved = resolve(config, "large")
    assert (f"{resolved.provider_id}/{resolved.model.id}" if resolved else "") == large


@pytest.mark.anyio
async def test_the_embedded_model_comes_last() -> None:
    config = await discover({}, Servers({}), lambda: True)
    assert config.providers == {"embedded": local_model.PROVIDER}
    assert config.models.large == "embedded/smollm2-135m"
    assert list((await discover({}, Servers({OLLAMA: ["a"]}), lambda: True)).providers) == ["ollama"]
    assert "embedded" not in (await discover({"GROQ_API_KEY": "k"}, nobody, lambda: True)).providers


@pytest.mark.anyio
async def test_discovery_fills_gaps_and_overrules_nothing() -> None:
    configured = Config(providers={"mine": provider("a")})
    assert await with_defaults(configured, {}, nobody) is configured

    bare = Config(models=ModelChoice(large="openai/m", small="openai/s"), limits=LimitSettings(steps_per_run=3))
    filled = await with_defaults(bare, {"OPENAI_API_KEY": "k"}, nobody)
    assert (filled.models, filled.limits, list(filled.providers)) == (bare.models, bare.limits, ["openai"])
    assert (await with_defaults(Config(), {"OPENAI_API_KEY": "k"}, nobody)).models.large == f"openai/{OPENAI_MODEL.id}"


KEYS = {"OPENAI_API_KEY": "k"}
SOL = OPENAI_MODEL.id


@pytest.mark.anyio
async def test_keys_at_hand_are_known_beside_the_providers_of_files_and_nobody_is_searched_for() -> None:
    mine = provider("a")
    known = await with_defaults(Config(providers={"mine": mine}), KEYS, nobody, logged_in={"anthropic"})
    assert list(known.providers) == ["mine", "anthropic", "openai"]
    assert find(known, f"openai/{SOL}").provider_id == find(known, SOL).provider_id == "openai"
    assert find(known, "anthropic/a-new-one").model.id == "a-new-one"
    assert all(not found.api_key for found in known.providers.values()), "where keys come from is decided elsewhere"
    chosen = Config(providers={"mine": mine}, models=ModelChoice(large=f"openai/{SOL}"))
    large = resolve(await with_defaults(chosen, KEYS, nobody), "large")
    assert large and large.provider_id == "openai"


@pytest.mark.parametrize("role", ["large", "small"])
def test_a_key_at_hand_is_never_the_default_beside_a_provider_of_a_file(role: Role) -> None:
    found = resolve(with_keys(Config(providers={"mine": provider("a")}), KEYS, ()), role)
    assert found and (found.provider_id, found.model.id) == ("mine", "a")
    assert resolve(with_keys(Config(providers={"mine": provider()}), KEYS, ()), role) is None


def test_what_a_file_says_of_a_provider_wins_over_its_key_at_hand() -> None:
    elsewhere = ProviderSettings(type="openai-compatible", base_url="http://127.0.0.1:1/v1")
    config = with_keys(Config(providers={"openai": elsewhere}), {**KEYS, "OPENAI_BASE_URL": "no address"}, {"openai"})
    assert config.providers == {"openai": elsewhere} and config.at_hand == ()


@pytest.mark.parametrize(
    ("listed", "reference"),
    [((SOL,), SOL), (("openai/gpt",), "openai/gpt"), ((), SOL), ((), "anything")],
    ids=["listed by both", "a listed name that begins like a provider", "the only one lists none", "any name"],
)
def test_a_key_at_hand_does_not_change_where_a_model_of_the_files_is(listed: tuple[str, ...], reference: str) -> None:
    files = Config(providers={"mine": provider(*listed)})
    assert find(files, reference) == find(with_keys(files, KEYS, ()), reference)


def test_an_address_in_the_environment_matters_only_with_its_key() -> None:
    files = Config(providers={"mine": provider("a")})
    assert with_keys(files, {"OPENAI_BASE_URL": "no address"}, ()) is files


@pytest.mark.parametrize(
    ("providers", "keys", "models", "said"),
    [
        ({}, {}, {}, ""),
        ({}, {}, {"large": "openai/m"}, ""),
        ({}, {}, {"large": "ollama/m"}, ""),
        ({}, {}, {"large": "a-bare-name"}, ""),
        ({}, {}, {"large": "opnai/m"}, "models.large: .* no provider opnai; did you mean openai/m[?] no provider is"),
        (
            {},
            KEYS,
            {"large": "ollama/m"},
            "models.large: .* no provider ollama .it is looked for only ",
        ),
        ({}, KEYS, {"large": "groq/m"}, "models.large: .* no key for groq .`covey login groq`, or [$]GROQ_API_KEY.; "),
        ({"mine": provider("a")}, KEYS, {"large": "openai/m", "small": "groq/m"}, ""),
        ({"mine": provider("a")}, {}, {"large": "openai/m"}, "models.large: .* no key for openai .*; known: mine/a "),
        ({"mine": provider("a")}, {}, {"large": "mien/b"}, "models.large: .* no provider mien; did you mean mine/b[?]"),
        ({"mine": provider("a")}, {}, {"small": "mien/b"}, "models.small: .* no provider mien; did you mean mine/b[?]"),
        ({"mine": provider("a")}, {}, {"large": "b"}, "models.large: no model is known as .b.; known: mine/a"),
        ({"mine": provider("a")}, {}, {"large": "b", "aliases": {"b": "mine/c"}}, ""),
    ],
)
def test_it_is_known_without_a_server_that_no_prompt_is_taken(
    providers: dict[str, ProviderSettings], keys: dict[str, str], models: dict[str, Any], said: str
) -> None:
    why = why_no_prompt(with_keys(Config(providers=providers, models=ModelChoice(**models)), keys, ()))
    assert re.match(said, why) if said else why == ""


PROVIDERS = {"one": provider("a", "both", "org/x"), "two": provider("b", "both"), "three": provider()}


@pytest.mark.parametrize(
    ("large", "small", "role", "expected"),
    [
        ("one/a", "two/b", "large", ("one", "a", 7)),
        ("one/a", "two/b", "small", ("two", "b", 7)),
        ("one/a", "", "small", ("one", "a", 7)),
        ("", "two/b", "large", ("one", "a", 7)),
        ("", "", "large", ("one", "a", 7)),
        ("", "", "small", ("one", "a", 7)),
        ("one/unknown", "", "large", ("one", "unknown", 0)),
        ("three/org/model", "", "large", ("three", "org/model", 0)),
        ("b", "", "large", ("two", "b", 7)),
        ("org/x", "", "large", ("one", "org/x", 7)),
        ("one/org/x", "", "large", ("one", "org/x", 7)),
    ],
)
def test_a_role_has_a_model(large: str, small: str, role: Role, expected: tuple[str, str, int]) -> None:
    resolved = resolve(Config(providers=PROVIDERS, models=ModelChoice(large=large, small=small)), role)
    assert resolved is not None
    assert (resolved.provider_id, resolved.model.id, resolved.model.max_tokens) == expected
    assert resolved.provider is PROVIDERS[expected[0]]


@pytest.mark.parametrize("providers", [{}, {"three": provider()}])
def test_without_any_model_there_is_none(providers: dict[str, ProviderSettings]) -> None:
    assert resolve(Config(providers=providers), "large") is None
    assert resolve(Config(providers=providers), "small") is None


def test_the_models_of_a_company_are_known_without_a_list() -> None:
    config = Config(providers={"mine": ProviderSettings(type="anthropic", api_key="k")})
    large, small = resolve(config, "large"), resolve(config, "small")
    assert large and small and (large.provider_id, small.provider_id) == ("mine", "mine")
    assert large.model.id.startswith("claude-") and small.model.id.startswith("claude-")
    elsewhere = ProviderSettings(type="anthropic", base_url="http://127.0.0.1:9/v1")
    assert resolve(Config(providers={"mine": elsewhere}), "large") is None


LISTED = "one/a, one/both, one/org/x, two/b, two/both, three/<model>"


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("both", '"both" is ambiguous; write one/both or two/both'),
        ("c", f'no model is known as "c"; known: {LISTED} (write provider/model for one that is not listed)'),
        (
            "on/a",
            f'no model is known as "on/a": there is no provider on; did you mean one/a? known: {LISTED} '
            "(write provider/model for one that is not listed)",
        ),
        (
            "one/",
            f'no model is known as "one/"; did you mean one/a? known: {LISTED} '
            "(write provider/model for one that is not listed)",
        ),
    ],
)
def test_a_wrong_reference_says_what_there_is(reference: str, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        find(Config(providers=PROVIDERS), reference)
    assert str(caught.value) == expected


@pytest.mark.parametrize(("large", "small", "key"), [("c", "", "large"), ("one/a", "c", "small")])
def test_a_wrong_choice_names_its_key(large: str, small: str, key: str) -> None:
    with pytest.raises(ConfigError, match=rf'^models\.{key}: no model is known as "c"'):
        resolve(Config(providers=PROVIDERS, models=ModelChoice(large=large, small=small)), "small")


def test_a_bare_id_is_clear_when_the_only_provider_lists_nothing() -> None:
    assert find(Config(providers={"three": provider()}), "new").model.id == "new"
    with pytest.raises(ConfigError, match="known: one/a "):
        find(Config(providers={"one": provider("a")}), "new")
    with pytest.raises(ConfigError, match="no provider is configured"):
        find(Config(), "new")
