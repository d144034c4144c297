"""Every mistake is named by its full key and what was expected, and no message repeats a value."""

from __future__ import annotations

from typing import Any, get_args, get_origin

import msgspec
import pytest

from covey.config.check import _expected, check, dotted
from covey.config.schema import AllowRule, Config, ConfigError, ProviderSettings, Sections

PROVIDER_TYPES = '"openai", "anthropic", "google", "openai-compatible", "embedded", "scripted"'


def provider(**settings: Any) -> dict[str, Any]:
    return {"providers": {"local": {"type": "openai", **settings}}}


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ({"permisions": {}}, 'permisions: unknown key; did you mean "permissions"?'),
        (
            {"zzz": 1},
            "zzz: unknown key; known here: mcp, lsp, hooks, models, providers, permissions, limits, retention, "
            "context, tools, server, cluster, notify, search",
        ),
        ({"models": {"larg": "x"}}, 'models.larg: unknown key; did you mean "large"?'),
        (provider(baseurl="x"), 'providers.local.baseurl: unknown key; did you mean "base_url"?'),
        (
            provider(models=[{"id": "a"}, {"idd": "b"}]),
            'providers.local.models[1].idd: unknown key; did you mean "id"?',
        ),
        (provider(models=[{}]), "providers.local.models[0].id: missing; expected a string"),
        (provider(models=[1]), "providers.local.models[0]: expected a table"),
        (provider(models="a"), "providers.local.models: expected a list of tables"),
        (provider(type="opanai"), f"providers.local.type: expected one of {PROVIDER_TYPES}"),
        (provider(headers={"X-Y": 1}), "providers.local.headers.X-Y: expected a string"),
        (provider(headers=[]), "providers.local.headers: expected a table"),
        (provider(api_key=12345), "providers.local.api_key: expected a string"),
        (provider(base_url="ftp://x"), 'providers.local.base_url: expected a URL such as "http://127.0.0.1:8080/v1"'),
        (
            provider(base_url="user:pw@host"),
            'providers.local.base_url: expected a URL such as "http://127.0.0.1:8080/v1"',
        ),
        (provider(max_attempts=0), "providers.local.max_attempts: expected a whole number, 1 or more"),
        (
            provider(idle_timeout_s=0),
            "providers.local.idle_timeout_s: expected seconds, above 0 and at most 86400 (a day)",
        ),
        (
            provider(idle_timeout_s=float("nan")),
            "providers.local.idle_timeout_s: expected seconds, above 0 and at most 86400 (a day)",
        ),
        ({"providers": {"a/b": {"type": "openai"}}}, 'providers."a/b": expected a name without slashes and spaces'),
        ({"providers": {"local": {}}}, f"providers.local.type: missing; expected one of {PROVIDER_TYPES}"),
        ({"providers": []}, "providers: expected a table"),
        ({"models": "local/a"}, "models: expected a table"),
        ({"notify": {"on": "ended"}}, 'notify.on: expected a list of "ended" or "asked"'),
        ({"notify": {"on": ["ended", "begun"]}}, 'notify.on: expected a list of "ended" or "asked"'),
        *(
            ({"notify": {"webhook": url}}, 'notify.webhook: expected a URL such as "https://hooks.example/covey"')
            for url in (
                "hooks.example",
                "ftp://a/b",
                "https://",
                "https://u:p@a/b",
                "https://a b/",
                "http://a:b/",
                "x\n",
            )
        ),
        ({"limits": {"queue_per_session": True}}, "limits.queue_per_session: expected a whole number, 1 or more"),
        ({"limits": {"queue_per_session": 1.5}}, "limits.queue_per_session: expected a whole number, 1 or more"),
        ({"permissions": {"deny": ["a", 1]}}, "permissions.deny: expected a list of strings"),
        ({"\x1b[2J": 1}, '"\\u001b[2J": unknown key; known here: ' + ", ".join(Sections.__struct_fields__)),
    ],
)
def test_a_mistake_is_named(table: dict[str, Any], expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check(table, Sections)
    assert str(caught.value) == expected


@pytest.mark.parametrize(
    "table",
    [
        {},
        provider(base_url=""),
        provider(base_url="https://gateway.example/v1", headers={"a b": "c"}, idle_timeout_s=5),
        provider(models=[{"id": "a", "price_prompt": 1, "context_window": 0}]),
        {"permissions": {"allow": [], "deny": ["bash:rm *"]}},
    ],
)
def test_what_is_right_passes_and_converts(table: dict[str, Any]) -> None:
    check(table, Sections)
    assert isinstance(msgspec.convert(table, Sections), Sections)


def test_every_setting_can_say_what_it_expects() -> None:
    """A new kind of setting needs words for its mistakes."""

    def visit(kind: Any) -> None:
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            for setting in msgspec.structs.fields(kind):
                visit(setting.type)
            return
        if kind == tuple[str | AllowRule, ...]:  # whose words depend on what is wrong
            return
        if get_origin(kind) is dict:
            visit(get_args(kind)[1])
            return
        inner = [arg for arg in get_args(kind) if isinstance(arg, type) and issubclass(arg, msgspec.Struct)]
        if inner:
            visit(inner[0])
        else:
            assert _expected(kind)

    visit(Sections)


@pytest.mark.parametrize(
    ("key", "name", "expected"),
    [("", "a", "a"), ("a", "b-1", "a.b-1"), ("a", "b.c", 'a."b.c"'), ("a", "", 'a.""'), ("a", "\n", 'a."\\n"')],
)
def test_keys_are_written_as_toml_writes_them(key: str, name: str, expected: str) -> None:
    assert dotted(key, name) == expected


def test_a_provider_never_shows_its_secrets_when_printed() -> None:
    secret = ProviderSettings(
        type="openai", api_key="s3cret", headers={"x": "s3cret"}, base_url="https://u:s3cret@h/v1?k=s3cret"
    )
    assert "s3cret" not in repr(Config(providers={"a": secret}))
