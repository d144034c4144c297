"""Which file sets what, as people may see it: no key, no header, no password in a URL."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Union, get_args, get_origin

from msgspec import structs

from covey.config.check import check, dotted
from covey.config.load import load
from covey.config.schema import ConfigError, Files

MASK = "(not shown)"
_SECRETS = re.compile(r"(?:^|\.)(?:api_key|headers\..*|env\..*|webhook|webhook_secret|client_secret)$")
_PASSWORD = re.compile(r"(?<=//)[^/@\s]*@")
_VARIABLES = re.compile(r"(?:\$\w+|\$\{\w+\})+")
SETTABLE = ("models", "limits", "retention", "permissions", "server", "notify", "tui")
"""Sections with keys that hold one plain value."""
ALIASES = {"model": "models.large", "large": "models.large", "small": "models.small"}


@dataclass(frozen=True, slots=True)
class SettingOrigin:
    """One value, and the file that sets it."""

    key: str
    value: Any
    path: Path
    project: str = ""
    """The directory in which alone it holds, if the file says so in its `projects`."""


def origins(project: Path | None, extra: Path | None, environ: Mapping[str, str]) -> list[SettingOrigin]:
    """What counts in a directory, in the order of the keys. Of lists of rules, which add up, one for each place."""
    found: dict[tuple[str, tuple[Path, str] | None], SettingOrigin] = {}
    for layer in load(project, extra, environ).layers:
        for key, value in _leaves(layer.data):
            adds_up = key.startswith("permissions.") and isinstance(value, list)
            origin = SettingOrigin(key, _masked(key, value), layer.path, layer.project)
            found[key, (layer.path, layer.project) if adds_up else None] = origin
    return sorted(found.values(), key=lambda origin: origin.key)


def _leaves(table: Mapping[str, Any], key: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _leaves(value, dotted(key, name))
        else:
            yield dotted(key, name), value


def _masked(key: str, value: Any) -> Any:
    """A value that only names a variable is no secret; what the variable holds is not looked up."""
    if _SECRETS.search(key) and not (isinstance(value, str) and _VARIABLES.fullmatch(value)):
        return MASK
    if isinstance(value, list):
        return [_masked(key, item) for item in value]
    if isinstance(value, dict):  # in a list: hooks have variables, too
        return {name: _masked(dotted(key, name), item) for name, item in value.items()}
    return _PASSWORD.sub(f"{MASK}@", value) if isinstance(value, str) else value


def plain_key(name: str, text: str) -> tuple[str, str, str | float | bool]:
    """The section, the key and the value that are meant by what somebody typed. Raises ConfigError."""
    section, _, key = ALIASES.get(name, name).partition(".")
    known = _plain_keys()
    if f"{section}.{key}" not in known:
        from difflib import get_close_matches  # only needed once something is wrong

        near = get_close_matches(name, [*known, *ALIASES], n=1)
        hint = f"did you mean {near[0]}?" if near else "`covey config edit` changes all others"
        raise ConfigError(f"{name} cannot be set by this command; {hint}")
    value = _typed(name, known[f"{section}.{key}"], text)
    check({section: {key: value}}, Files)
    return section, key, value


def _typed(name: str, kind: type, text: str) -> str | float | bool:
    if kind is bool:
        if text not in ("true", "false"):
            raise ConfigError(f"{name} is true or false, not {text!r}")
        return text == "true"
    if kind is str:
        return text
    try:
        number = float(text)
    except ValueError:
        raise ConfigError(f"{name} is a number, not {text!r}") from None
    return int(number) if number.is_integer() else number


def plain_values() -> dict[str, tuple[str, ...]]:
    """What `plain_key` takes, also by another name: each with all values that it may have, if those are a few."""
    annotations = _annotations()
    found = {key: _values(annotations[key], kind) for key, kind in _plain_keys().items()}
    return found | {name: found[key] for name, key in ALIASES.items()}


def _values(annotation: Any, kind: type) -> tuple[str, ...]:
    return ("true", "false") if kind is bool else get_args(annotation)


def _plain_keys() -> dict[str, type]:
    """By key, whether a value is a text, a number or a bool."""
    return {key: kind for key, annotation in _annotations().items() if (kind := _kind(annotation))}


def _annotations() -> dict[str, Any]:
    """By key, the type of each setting of the sections that have plain ones, without what only describes it."""
    sections = {field.name: field.type for field in structs.fields(Files)}
    fields = [(f"{name}.{field.name}", field.type) for name in SETTABLE for field in structs.fields(sections[name])]
    return {key: given.__origin__ if hasattr(given, "__metadata__") else given for key, given in fields}


def _kind(annotation: Any) -> type | None:
    if annotation in (str, int, float, bool):
        return annotation if annotation in (str, bool) else float
    values = get_args(annotation)
    is_choice = get_origin(annotation) not in (tuple, dict, list, Union) and bool(values)
    return str if is_choice and all(isinstance(value, str) for value in values) else None
