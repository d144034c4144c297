"""What a project's file may say before its directory is trusted. Pure: no file is read, and no variable looked up."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import msgspec

from covey.config.check import dotted
from covey.config.defaults import find
from covey.config.expand import expand
from covey.config.schema import Config, ConfigError

_STRICTER = ("off", "auto", "required")


def without_trust(raw: dict[str, Any], own: Config, sandbox: str = "auto") -> tuple[dict[str, Any], list[str]]:
    """What a project may say before it is trusted, and the keys that it may not set.

    `own` is what the user's files say; `sandbox` what they say about it here: a project can make it stricter, no more.
    """
    kept: dict[str, Any] = {}
    ignored: list[str] = []
    choice = _choice(raw, own)
    for section, table in raw.items():
        for name, value in table.items():
            chooses = section == "models" and name in choice
            stricter = (section, name) == ("permissions", "sandbox") and value in _STRICTER[_STRICTER.index(sandbox) :]
            if chooses or stricter or (section, name) == ("permissions", "deny"):
                kept.setdefault(section, {})[name] = value
            else:
                ignored.append(dotted(section, name))
    return kept, ignored


def _choice(raw: dict[str, Any], own: Config) -> dict[str, Any]:
    """What counts of a project's choice of models: one among those of the providers that the user's files name.

    Where they name none, it may be any that is found. A project that brings its own providers means one of those,
    which are not there yet.
    """
    if "providers" in raw:
        return {}
    models = dict(raw.get("models", {}))
    aliases = models.pop("aliases", {})
    choice: dict[str, Any] = {}
    if all(_may_choose(reference, own) for reference in aliases.values()):
        choice["aliases"] = aliases
        together = msgspec.structs.replace(own.models, aliases={**own.models.aliases, **aliases})
        own = msgspec.structs.replace(own, models=together)
    for name, value in models.items():
        if all(_may_choose(reference, own) for reference in ([value] if isinstance(value, str) else value)):
            choice[name] = value
    return choice


def _may_choose(reference: str, own: Config) -> bool:
    """A model's name is sent to its provider: it must not carry a variable."""
    if "$" in reference:
        return False
    if not own.providers:
        return True
    try:
        find(own, reference)
    except ConfigError:
        return False
    return True


def without_open_providers(raw: dict[str, Any]) -> dict[str, Any]:
    """`raw` without providers that have a variable in them: whether a URL is one cannot be known without its value."""
    providers = raw.get("providers")
    if not isinstance(providers, dict):
        return raw

    def has_variable(name: str) -> bool:
        found: list[str] = []
        expand(providers[name], None, found, dotted("providers", name))
        return bool(found)

    return {**raw, "providers": {name: table for name, table in providers.items() if not has_variable(name)}}


def how_to_trust(path: Path, project: Path, ignored: list[str]) -> str:
    return (
        f"{path}: ignored, as this directory is not trusted: {', '.join(ignored)}. "
        f"If you trust it, run: covey trust {shlex.quote(str(project.resolve()))}"
    )
