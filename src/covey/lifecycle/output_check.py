"""Does an answer fit the schema that came with its prompt? Pure; the schema has been through `check_schema`.

What does not fit is said in words that hold nothing but names and numbers: the model reads them as if a person had
said them, and whatever else stands in an answer may come from a file that somebody else wrote.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import msgspec

from covey.lifecycle.output_schema import normal_place

MAX_PROBLEMS = 8
MAX_CHARACTERS = 2_000
"""Of what is said about an answer."""
MAX_STEPS = 100_000
"""How many schemas are held against how many values: more would take longer than anybody expects of a check."""
_FENCE = re.compile(r"```[a-zA-Z]*\n(.*?)```", re.DOTALL)
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,39}")
_NAMES = {
    "null": "null", "array": "a list", "object": "an object", "integer": "a whole number", "boolean": "true or false",
}  # fmt: skip
_KINDS: dict[str, tuple[type, ...]] = {
    "null": (type(None),), "boolean": (bool,), "number": (int, float), "string": (str,), "array": (list,),
    "object": (dict,),
}  # fmt: skip
_MANY = "…"
SHOWN_CHARACTERS = 200
"""As much of the values that are allowed is repeated."""


class DoesNotFit(Exception):
    """The text says in what, for people and for the model."""


class TooCostly(DoesNotFit):
    """It cannot be said whether it fits: asking again would not help."""


def fitting_output(text: str, schema: dict[str, Any]) -> Any:
    """The value in an answer. Raises DoesNotFit."""
    value = _read(text)
    try:
        found = list(islice(_Check(schema).problems(schema, value, "$"), MAX_PROBLEMS + 1))
    except RecursionError:
        raise TooCostly("the schema is too deep to be checked") from None
    if found:
        words = "; ".join([*found[:MAX_PROBLEMS], *([_MANY] if len(found) > MAX_PROBLEMS else [])])
        raise DoesNotFit(words if len(words) <= MAX_CHARACTERS else words[:MAX_CHARACTERS] + _MANY)
    return value


def _read(text: str) -> Any:
    """The JSON of an answer: all of it, or the only block of code in it."""
    blocks = _FENCE.findall(text)
    for candidate in (text, *(blocks if len(blocks) == 1 else ())):
        try:
            return msgspec.json.decode(candidate)
        except (ValueError, RecursionError):
            continue
    raise DoesNotFit("it is not JSON, or there is more in it than one JSON value")


Problems = Iterator[str]


class _Check:
    """One answer against one schema."""

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._steps = 0
        self._allowed: dict[int, frozenset[Any]] = {}
        """The values of each `enum`, by the id of its list."""

    def problems(self, schema: Any, value: Any, path: str) -> Problems:
        self._spend(1)
        if schema is True or schema == {}:
            return
        if schema is False:
            yield f"{path} must not be there"
            return
        for keywords, check in _CHECKS:
            if not keywords.isdisjoint(schema):
                yield from check(self, schema, value, path)

    def _spend(self, steps: int) -> None:
        self._steps += steps
        if self._steps > MAX_STEPS:
            raise TooCostly("it takes too many steps to check the answer by this schema")

    def _fits(self, schema: Any, value: Any) -> bool:
        return next(self.problems(schema, value, "$"), None) is None

    def _canonical(self, value: Any) -> Any:
        """A value that is equal, and can be hashed, where the JSON is the same: 1 is 1.0, and is not true."""
        self._spend(1)
        match value:
            case bool():
                return "boolean", value
            case list():
                return "list", tuple(self._canonical(item) for item in value)
            case dict():
                return "object", frozenset((name, self._canonical(item)) for name, item in value.items())
        return value

    # ── any value ──

    def type(self, schema: Any, value: Any, path: str) -> Problems:
        names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        if not any(_has_type(name, value) for name in names):
            yield f"{path} must be {' or '.join(_NAMES.get(name, f'a {name}') for name in names)}"

    def enum(self, schema: Any, value: Any, path: str) -> Problems:
        values = schema["enum"]
        if id(values) not in self._allowed:
            self._allowed[id(values)] = frozenset(map(self._canonical, values))
        if self._canonical(value) not in self._allowed[id(values)]:
            yield f"{path} must be one of {_shown(values)}"

    def const(self, schema: Any, value: Any, path: str) -> Problems:
        if self._canonical(value) != self._canonical(schema["const"]):
            yield f"{path} must be {_shown(schema['const'])}"

    def ref(self, schema: Any, value: Any, path: str) -> Problems:
        target: Any = self._root
        for piece in normal_place(schema["$ref"]).split("/")[1:]:
            name = piece.replace("~1", "/").replace("~0", "~")
            target = target[int(name)] if isinstance(target, list) else target[name]
        yield from self.problems(target, value, path)

    def all_of(self, schema: Any, value: Any, path: str) -> Problems:
        for inner in schema["allOf"]:
            yield from self.problems(inner, value, path)

    def any_of(self, schema: Any, value: Any, path: str) -> Problems:
        closest: list[str] = []
        for inner in schema["anyOf"]:
            found = list(islice(self.problems(inner, value, path), MAX_PROBLEMS))
            if not found:
                return
            closest = found if not closest or len(found) < len(closest) else closest
        yield f"{path} fits none of the {len(schema['anyOf'])} forms that it may have (for one of them, {closest[0]})"

    def one_of(self, schema: Any, value: Any, path: str) -> Problems:
        fitting = sum(self._fits(inner, value) for inner in schema["oneOf"])
        if fitting == 0:
            yield from self.any_of({"anyOf": schema["oneOf"]}, value, path)
        elif fitting > 1:
            yield f"{path} must fit only one of its forms, and fits {fitting}"

    def not_(self, schema: Any, value: Any, path: str) -> Problems:
        if self._fits(schema["not"], value):
            yield f"{path} has the form that `not` excludes"

    def if_(self, schema: Any, value: Any, path: str) -> Problems:
        branch = "then" if self._fits(schema["if"], value) else "else"
        yield from self.problems(schema.get(branch, True), value, path)

    # ── numbers and texts ──

    def number(self, schema: Any, value: Any, path: str) -> Problems:
        if not _has_type("number", value):
            return
        for keyword, (words, is_right) in _BOUNDS.items():
            if keyword in schema and not is_right(value, schema[keyword]):
                yield f"{path} must be {words} {schema[keyword]}"

    def text(self, schema: Any, value: Any, path: str) -> Problems:
        if isinstance(value, str):
            yield from _counted(schema, "Length", len(value), f"{path} must have", "characters")

    # ── lists ──

    def items(self, schema: Any, value: Any, path: str) -> Problems:
        if not isinstance(value, list):
            return
        yield from _counted(schema, "Items", len(value), f"{path} must have", "items")
        first = schema.get("prefixItems", [])
        for number, item in enumerate(value):
            inner = first[number] if number < len(first) else schema.get("items", True)
            yield from self.problems(inner, item, f"{path}[{number}]")
        if schema.get("uniqueItems") and len({self._canonical(item) for item in value}) < len(value):
            yield f"{path} must not have the same item twice"
        if "contains" in schema:
            fitting = sum(self._fits(schema["contains"], item) for item in value)
            bounds = {"minContains": 1} | {k: v for k, v in schema.items() if k.endswith("Contains")}
            yield from _counted(bounds, "Contains", fitting, f"{path} must have", "items of the form in `contains`")

    # ── objects ──

    def properties(self, schema: Any, value: Any, path: str) -> Problems:
        if not isinstance(value, dict):
            return
        yield from (f"{path}.{name} is missing" for name in schema.get("required", ()) if name not in value)
        for given, names in schema.get("dependentRequired", {}).items():
            if given in value:
                yield from (f"{path}.{name} is missing" for name in names if name not in value)
        yield from _counted(schema, "Properties", len(value), f"{path} must have", "fields")
        known = schema.get("properties", {})
        for name, item in value.items():
            where = f"{path}.{name}" if name in known or _PLAIN_NAME.fullmatch(name) else f"{path}.{_MANY}"
            yield from self.problems(known.get(name, schema.get("additionalProperties", True)), item, where)
            if "propertyNames" in schema and not self._fits(schema["propertyNames"], name):
                yield f"{where} has a name that must not be there"


def _has_type(name: str, value: Any) -> bool:
    if name == "integer":
        return type(value) is int or (type(value) is float and value.is_integer())
    return type(value) in _KINDS[name]


def _shown(value: Any) -> str:
    """A value of the schema, cut."""
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + _MANY


def _counted(schema: Any, what: str, count: int, must: str, things: str) -> Problems:
    if count < (least := schema.get(f"min{what}", 0)):
        yield f"{must} at least {least} {things}"
    if count > (most := schema.get(f"max{what}", count)):
        yield f"{must} at most {most} {things}"


def _is_multiple(value: float, of: float) -> bool:
    if type(value) is int and type(of) is int:
        return value % of == 0
    try:
        times = value / of
        return abs(times - round(times)) < 1e-9
    except OverflowError:
        return False


_BOUNDS: dict[str, tuple[str, Callable[[float, float], bool]]] = {
    "minimum": ("at least", lambda value, bound: value >= bound),
    "maximum": ("at most", lambda value, bound: value <= bound),
    "exclusiveMinimum": ("more than", lambda value, bound: value > bound),
    "exclusiveMaximum": ("less than", lambda value, bound: value < bound),
    "multipleOf": ("a multiple of", _is_multiple),
}

_CHECKS: tuple[tuple[frozenset[str], Callable[[_Check, Any, Any, str], Problems]], ...] = tuple(
    (frozenset(keywords.split()), check)
    for keywords, check in (
        ("type", _Check.type),
        ("enum", _Check.enum),
        ("const", _Check.const),
        ("minimum maximum exclusiveMinimum exclusiveMaximum multipleOf", _Check.number),
        ("minLength maxLength", _Check.text),
        ("items prefixItems minItems maxItems uniqueItems contains", _Check.items),
        (
            "properties required additionalProperties propertyNames dependentRequired minProperties maxProperties",
            _Check.properties,
        ),
        ("$ref", _Check.ref),
        ("allOf", _Check.all_of),
        ("anyOf", _Check.any_of),
        ("oneOf", _Check.one_of),
        ("not", _Check.not_),
        ("if", _Check.if_),
    )
)
"""By keyword: what it says about a value."""
