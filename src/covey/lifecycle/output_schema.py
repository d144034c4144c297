"""Which JSON Schemas a prompt may come with. Pure, and wary: a schema comes from whoever may prompt.

What is checked later (`output_check.py`) is what is known here. A keyword that is not is refused: one that is mistyped,
or not supported, would otherwise let through what it was to keep out. Regular expressions are among these, since no
bound holds for how long one takes. A `$ref` leads to a place in the same schema, and nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from graphlib import CycleError, TopologicalSorter
from typing import Any

import msgspec

MAX_BYTES = 32 * 1024
"""It is stored with the run and sent with its events."""
MAX_DEPTH = 32
TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")

_ANNOTATIONS = frozenset(
    [
        "title",
        "description",
        "default",
        "examples",
        "deprecated",
        "readOnly",
        "writeOnly",
        "format",
        "$schema",
        "$id",
        "$comment",
    ]
)
"""What says nothing about whether a value fits."""
_ONE = frozenset(["additionalProperties", "items", "not", "if", "then", "else", "propertyNames", "contains"])
_SEVERAL = frozenset(["anyOf", "oneOf", "allOf", "prefixItems"])
_NAMED = frozenset(["properties", "$defs", "definitions"])
_ENCODED = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_IN_PLACE = frozenset(["not", "if", "then", "else", "anyOf", "oneOf", "allOf"])
"""Keywords whose schemas are about the same value as the schema that they stand in."""


class UnusableSchema(Exception):
    """The text says what is wrong, for people."""


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _are_types(value: Any) -> bool:
    names = value if isinstance(value, list) else [value]
    return bool(names) and all(isinstance(name, str) and name in TYPES for name in names)


_COUNTS = [
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "minProperties",
    "maxProperties",
    "minContains",
    "maxContains",
]
_BOUNDS = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]
_PLAIN: dict[str, tuple[Callable[[Any], bool], str]] = {
    "type": (_are_types, f"one of {', '.join(TYPES)}, or a list of them"),
    "enum": (lambda value: isinstance(value, list) and bool(value), "a list with at least one value"),
    "const": (lambda value: True, "anything"),
    "required": (_are_names, "a list of names"),
    "dependentRequired": (
        lambda value: isinstance(value, dict) and all(map(_are_names, value.values())),
        "a table of lists of names",
    ),
    "uniqueItems": (lambda value: isinstance(value, bool), "true or false"),
    "multipleOf": (lambda value: _is_number(value) and value > 0, "a number above 0"),
    "$ref": (
        lambda value: isinstance(value, str) and value.startswith("#"),
        "a place in this schema, such as #/$defs/x",
    ),
    **dict.fromkeys(_COUNTS, (_is_count, "a whole number, not below 0")),
    **dict.fromkeys(_BOUNDS, (_is_number, "a number")),
}
"""Keywords that hold no schema: whether their value is right, and what it has to be."""


def check_schema(schema: dict[str, Any]) -> None:
    """Raise UnusableSchema unless answers can be checked by it."""
    size = len(msgspec.json.encode(schema))
    if size > MAX_BYTES:
        raise UnusableSchema(f"it has {size} bytes, and may have {MAX_BYTES}")
    found = _Found()
    found.walk(schema, "#", 0)
    found.check_references()


class _Found:
    """The schemas inside of a schema, by their places."""

    def __init__(self) -> None:
        self._same_value: dict[str, set[str]] = {}
        """By place: other schemas that are about the same value."""
        self._references: list[tuple[str, str]] = []

    def walk(self, schema: Any, place: str, depth: int) -> None:
        self._same_value[place] = set()
        if isinstance(schema, bool):
            return
        if not isinstance(schema, dict):
            raise UnusableSchema(f"{place} must be a schema: a table, true or false")
        if depth > MAX_DEPTH:
            raise UnusableSchema(f"it is nested more than {MAX_DEPTH} levels deep")
        for keyword, value in schema.items():
            self._keyword(keyword, value, place, depth)

    def _keyword(self, keyword: str, value: Any, place: str, depth: int) -> None:
        if keyword in _PLAIN:
            is_right, words = _PLAIN[keyword]
            if not is_right(value):
                raise UnusableSchema(f"{keyword} at {place} must be {words}")
            if keyword == "$ref":
                self._references.append((place, normal_place(value)))
        elif keyword in _ONE | _SEVERAL | _NAMED:
            for inner_place, inner in _inner(keyword, value, f"{place}/{escaped(keyword)}"):
                self.walk(inner, inner_place, depth + 1)
                if keyword in _IN_PLACE:
                    self._same_value[place].add(inner_place)
        elif keyword not in _ANNOTATIONS and not keyword.startswith("x-"):
            raise UnusableSchema(f"the keyword {keyword[:60]!r} at {place} is not known or not supported here")

    def check_references(self) -> None:
        for place, target in self._references:
            if target not in self._same_value:
                raise UnusableSchema(f"the $ref at {place} leads to no schema in this one")
            self._same_value[place].add(target)
        try:
            TopologicalSorter(self._same_value).prepare()
        except CycleError:
            raise UnusableSchema("a $ref leads back to itself without an end") from None


def _inner(keyword: str, value: Any, place: str) -> Iterator[tuple[str, Any]]:
    """The schemas in the value of a keyword."""
    if keyword in _ONE:
        yield place, value
    elif keyword in _SEVERAL:
        if not isinstance(value, list) or not value:
            raise UnusableSchema(f"{place} must be a list of schemas")
        yield from ((f"{place}/{number}", schema) for number, schema in enumerate(value))
    else:
        if not isinstance(value, dict):
            raise UnusableSchema(f"{place} must be a table of schemas")
        yield from ((f"{place}/{escaped(name)}", schema) for name, schema in value.items())


def escaped(name: str) -> str:
    """A name as a piece of a JSON Pointer."""
    return name.replace("~", "~0").replace("/", "~1")


def normal_place(reference: str) -> str:
    """A `$ref` as the places here are written."""
    return _ENCODED.sub(lambda found: bytes.fromhex(found[0].replace("%", "")).decode("utf-8", "replace"), reference)
