"""Does a table have the shape of the settings? The first thing that is wrong is named by its full key.

msgspec would refuse the same tables, but its errors leave out the names of table entries and repeat wrong values, which
may be secrets.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import cache
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec

from covey.config.schema import AllowRule, ConfigError, NotifyOn

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_WORDS: dict[Any, str] = {
    Any: "anything",
    str: "a string",
    bool: "true or false",
    tuple[str, ...]: "a list of strings",
    tuple[NotifyOn, ...]: "a list of " + " or ".join(json.dumps(choice) for choice in get_args(NotifyOn)),
}


def dotted(key: str, name: str) -> str:
    """`name` inside `key`, as TOML writes it. Quoting also keeps a stranger's control characters off the terminal."""
    name = name if _BARE_KEY.fullmatch(name) else json.dumps(name)
    return f"{key}.{name}" if key else name


def check(value: Any, kind: Any, key: str = "") -> None:
    """Raise ConfigError unless `value`, which stands at `key`, is one of `kind`."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        _check_settings(value, kind, key)
    elif get_origin(kind) is dict:
        name_kind, item_kind = get_args(kind)
        for name, item in _table(value, key).items():
            _check_plain(name, name_kind, dotted(key, name))
            check(item, item_kind, dotted(key, name))
    elif kind == tuple[str | AllowRule, ...]:
        _check_rules(value, key)
    elif get_origin(kind) is tuple and kind not in _WORDS:
        if not isinstance(value, list):
            raise ConfigError(f"{key}: expected a list of tables")
        for index, item in enumerate(value):
            check(item, get_args(kind)[0], f"{key}[{index}]")
    else:
        _check_plain(value, kind, key)


def _check_settings(value: Any, kind: type[msgspec.Struct], key: str) -> None:
    fields = _fields(kind)
    table = _table(value, key)
    for name in table:
        if name not in fields:
            raise ConfigError(f"{dotted(key, name)}: unknown key; {_suggest(name, fields)}")
    for name, field in fields.items():
        if name in table:
            check(table[name], field.type, dotted(key, name))
        elif field.required:
            raise ConfigError(f"{dotted(key, name)}: missing; expected {_expected(field.type)}")


def _check_rules(value: Any, key: str) -> None:
    if not isinstance(value, list) or not all(isinstance(entry, str | dict) for entry in value):
        raise ConfigError(f'{key}: expected a list of strings, or of tables such as {{ rule = "bash:npm ci" }}')
    for index, entry in enumerate(value):
        if isinstance(entry, dict):
            check(entry, AllowRule, f"{key}[{index}]")


@cache
def _fields(kind: type[msgspec.Struct]) -> dict[str, msgspec.structs.FieldInfo]:
    return {field.name: field for field in msgspec.structs.fields(kind)}


def _table(value: Any, key: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ConfigError(f"{key}: expected a table")
    return value


def _check_plain(value: Any, kind: Any, key: str) -> None:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        raise ConfigError(f"{key}: expected {_expected(kind)}") from None


def _expected(kind: Any) -> str:
    if type(None) in get_args(kind):  # TOML has no null, so it is the other one that is expected
        return _expected(get_args(kind)[0])
    if get_origin(kind) is Annotated:
        return str(get_args(kind)[1].description)
    if get_origin(kind) is Literal:
        return "one of " + ", ".join(json.dumps(choice) for choice in get_args(kind))
    return _WORDS[kind]


def _suggest(name: str, names: Iterable[str]) -> str:
    from difflib import get_close_matches  # only needed once something is wrong

    names = list(names)
    near = get_close_matches(name, names, n=1)
    return f'did you mean "{near[0]}"?' if near else f"known here: {', '.join(names)}"
