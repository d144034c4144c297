"""Arguments of a call as a model wrote them: by the names that we have for them, or what is wrong with them. Pure."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from covey.protocol.argument_names import with_own_names

_PLACE = re.compile(r" - at `\$([^`]*)`$")
_UNKNOWN = re.compile(r"unknown field `([^`]*)`")
_SIMILAR = 0.5
"""How alike two names must be (from 0 to 1) for one to be meant by the other: `file_nam` and `file_path` are."""


def own_names(text: str, schema: Mapping[str, Any]) -> str:
    """The input of a call, with our names for arguments instead of those of other agents; the same text if it is right.

    Whatever cannot be understood stays as it is: the decoder says what is wrong with it.
    """
    try:
        given = msgspec.json.decode(text or "{}")
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return text
    named = _named(given, schema)
    return text if named == given else msgspec.json.encode(named).decode()


def _named(given: Any, schema: Mapping[str, Any]) -> Any:
    if isinstance(given, list):
        return [_named(each, schema.get("items", {})) for each in given]
    fields = schema.get("properties", {})
    if not isinstance(given, dict) or not fields:
        return given
    return {name: _named(value, fields.get(name, {})) for name, value in with_own_names(given, fields).items()}


def explain(error: str, schema: Mapping[str, Any]) -> str:
    """The error of the decoder, and the fields that there are at the place which it is about."""
    place = _PLACE.search(error)
    fields = _at(schema, place[1] if place else "")
    if not fields:
        return f"{error}."
    names = list(fields["properties"])
    unknown = _UNKNOWN.search(error)
    near = difflib.get_close_matches(unknown[1], names, n=1, cutoff=_SIMILAR) if unknown else []
    hint = f"; did you mean `{near[0]}`?" if near else "."
    if choices := _choices(fields, place[1] if place else ""):
        hint = f"; it is one of {', '.join(choices)}."
    required = fields.get("required", ())
    listed = ", ".join(f"`{name}`" if name in required else f"`{name}` (optional)" for name in names)
    where = " there" if place and place[1] else ""
    return f"{error}{hint} The fields{where} are: {listed}."


def _choices(fields: Mapping[str, Any], place: str) -> list[str]:
    """What a field that the place ends in may be, if it is one of a few values."""
    field = fields["properties"].get(place.rpartition(".")[2], {})
    return [json.dumps(value) for value in field.get("enum", ())]


def _at(schema: Mapping[str, Any], place: str) -> Mapping[str, Any]:
    """The schema of the object at a place such as `.edits[...]`, or of what holds it; empty if there is none."""
    found: Mapping[str, Any] = schema if "properties" in schema else {}
    for name in re.findall(r"[A-Za-z_]\w*|\[", place):
        schema = schema.get("items", {}) if name == "[" else schema.get("properties", {}).get(name, {})
        if "properties" in schema:
            found = schema
    return found
