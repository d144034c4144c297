"""`$VAR`, `${VAR}`, `${VAR:-default}` and `$$` in the strings of a table. Text in, text out: nothing is executed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from covey.config.check import dotted
from covey.config.schema import ConfigError

_NAME = "[A-Za-z_][A-Za-z0-9_]*"
_REFERENCE = re.compile(
    rf"\$(?:(?P<dollar>\$)|(?P<plain>{_NAME})|\{{(?P<braced>{_NAME})(?::-(?P<default>[^}}]*))?\}}|(?P<broken>\{{))"
)


_FOR_A_SHELL = re.compile(r"(?:projects\..+\.)?hooks\.\w+\[\d+\]\.hooks\[\d+\]\.(?:command|args|type)")
"""What a shell reads, whose variables are of the moment when it does."""


def references(text: str) -> set[str]:
    """The names of the variables in a text."""
    return {name for found in _REFERENCE.finditer(text) if (name := found["plain"] or found["braced"])}


def expand(value: Any, environ: Mapping[str, str] | None, unset: list[str], key: str = "") -> Any:
    """`value` with its strings expanded, keys as they are. Keys whose variables are not set are added to `unset`.

    Without an `environ` no variable is looked up: each stays as it is written, and its key is added to `unset` too.
    """
    if isinstance(value, dict):
        return {name: expand(item, environ, unset, dotted(key, name)) for name, item in value.items()}
    if isinstance(value, list):
        return [
            expand(item, environ, unset, key if isinstance(item, str) else f"{key}[{index}]")
            for index, item in enumerate(value)
        ]
    if not isinstance(value, str) or _FOR_A_SHELL.fullmatch(key):
        return value

    def replace(match: re.Match[str]) -> str:
        if match["broken"]:
            raise ConfigError(f"{key}: expected ${{NAME}} or ${{NAME:-default}} after a dollar sign and a brace")
        if match["dollar"]:
            return "$"
        found = None if environ is None else environ.get(match["plain"] or match["braced"])
        if environ is not None and match["default"] is not None:
            return found or match["default"]  # as in a shell: an empty variable gets the default too
        if found is None and unset[-1:] != [key]:
            unset.append(key)
        return match[0] if environ is None else found or ""

    return _REFERENCE.sub(replace, value)
