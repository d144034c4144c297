"""Requests made from /openapi.json: some as it says, some not. And whether an answer is what it says.

Only as much of JSON Schema as the document uses; a word that is not known here is an error, not a pass.
"""

from __future__ import annotations

import base64
import json
import random
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

TEXTS = (
    "", "a", " ", "0", "-1", "null", "ünï 🐦 \u202e", "\u0000", "\n", "../..", "a/b", "%2e%2e%2f", "'; --", "{}",
    "x" * 5000,
)  # fmt: skip
"""Texts with which somebody once had trouble."""
NOT_JSON = (b"", b"{", b"nope", b"\xff\xfe", b'{"a": NaN}', b"[" * 5000, b'{"a":1}{"b":2}', b"\x00")
IGNORED = {
    "title", "description", "default", "discriminator", "contentEncoding", "format", "minimum", "maximum", "maxItems",
    "minLength",
}  # fmt: skip
"""Words that say nothing which another word does not say, or which only requests need."""
WRONG: dict[str, Any] = {"string": 7, "integer": "x", "number": "x", "boolean": "x", "array": {}, "object": [1]}


@dataclass(frozen=True)
class Operation:
    method: str
    path: str
    fields: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def needs_token(self) -> bool:
        return self.fields.get("security") != []

    @property
    def body(self) -> Any:
        """The schema of the body; None if there is none."""
        return self.fields.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")

    def answer(self, status: int) -> Any:
        """What is described for this status; None if nothing is."""
        responses = self.fields["responses"]
        return responses.get(str(status)) or responses.get(f"{status // 100}XX")


@dataclass(frozen=True)
class Made:
    """One request."""

    target: str
    body: bytes | None = None
    content_type: str = "application/json"
    is_wrong: bool = False
    """Its body or its query is not as the document says."""


def operations(document: Any) -> list[Operation]:
    return [
        Operation(method.upper(), path, fields)
        for path, methods in document["paths"].items()
        for method, fields in methods.items()
    ]


class Generator:
    """Makes requests by chance, always the same ones. `known`: values that lead somewhere, by the name of a field."""

    def __init__(self, document: Any, seed: int, known: dict[str, list[str]]) -> None:
        self.document = document
        self.known = known
        self._chance = random.Random(seed)

    def request(self, operation: Operation) -> Made:
        wrong_query = self._chance.random() < 0.2
        target, is_wrong = self._target(operation, wrong_query)
        if operation.body is None:
            return Made(target, is_wrong=is_wrong)
        match self._chance.randrange(10):
            case 0:
                data = self._chance.choice(NOT_JSON)
                return Made(target, data, is_wrong=is_wrong or bool(data))
            case 1:
                return Made(target, b"{}", "text/plain", is_wrong=True)
            case 2 | 3:
                return Made(target, _encoded(self.broken(operation.body)), is_wrong=True)
            case 4:
                value = self.value(operation.body) | {"a field of the future": 1}
                return Made(target, _encoded(value), is_wrong=is_wrong)
        return Made(target, _encoded(self.value(operation.body)), is_wrong=is_wrong)

    def _target(self, operation: Operation, wrong: bool) -> tuple[str, bool]:
        path, query, is_wrong = operation.path, {}, False
        for parameter in operation.fields["parameters"]:
            name, schema = parameter["name"], parameter["schema"]
            value = self.value(schema, name)
            if parameter["in"] == "path":
                path = path.replace(f"{{{name}}}", quote(str(value), safe=""))
            elif wrong and schema != {"type": "string"}:
                strange = ["x", "-1", "nan", "-inf", "1 2", *(["0.5"] if schema["type"] == "integer" else [])]
                query[name], is_wrong = self._chance.choice(strange), True
            elif parameter["required"] or self._chance.random() < 0.5:
                query[name] = value
        return path + (f"?{urlencode(query)}" if query else ""), is_wrong

    def value(self, schema: Any, name: str = "") -> Any:
        """A value as the schema says."""
        if "$ref" in schema:
            return self.value(self._named(schema["$ref"]), name)
        if "anyOf" in schema:
            return self.value(self._chance.choice(schema["anyOf"]), name)
        if "enum" in schema:
            return self._chance.choice(schema["enum"])
        match schema.get("type"):
            case None:
                return self._chance.choice([None, 1, "x", ["x"], {"x": None}])  # whatever it is, it is right
            case "object":
                return self._object(schema)
            case "array":
                if first := schema.get("prefixItems"):
                    return [self.value(inner, name) for inner in first]
                return [self.value(schema["items"], name) for _ in range(self._chance.randrange(3))]
            case "string":
                return self._text(schema, name)
            case "integer":
                return self._chance.randint(schema.get("minimum", -(2**31)), min(schema.get("maximum", 2**31), 50))
            case "number":
                return self._chance.choice([0, 0.01, 1e-9])
            case "boolean":
                return self._chance.random() < 0.5
        assert schema["type"] == "null", schema
        return None

    def _object(self, schema: Any) -> dict[str, Any]:
        if more := schema.get("additionalProperties"):
            return {f"name{n}": self.value(more) for n in range(self._chance.randrange(3))}
        required = schema.get("required", ())
        chosen = [
            (name, inner)
            for name, inner in schema.get("properties", {}).items()
            if name in required or self._chance.random() < 0.7
        ]
        return {name: self.value(inner, name) for name, inner in chosen}

    def _text(self, schema: Any, name: str) -> str:
        if (known := self.known.get(name)) and self._chance.random() < 0.85:
            return self._chance.choice(known)
        if schema.get("format") == "uuid":
            return str(uuid.UUID(int=self._chance.getrandbits(128)))
        if schema.get("contentEncoding") == "base64":
            return base64.b64encode(self._chance.randbytes(10)).decode()
        return self._chance.choice(TEXTS)[: schema.get("maxLength")]

    def broken(self, schema: Any) -> Any:
        """A value that is not as the schema says, in one place."""
        while "$ref" in schema:
            schema = self._named(schema["$ref"])
        properties = schema.get("properties")
        if not properties or self._chance.random() < 0.2:
            return self._wrong(schema)
        value = self._object(schema)
        name = self._chance.choice([name for name, inner in properties.items() if not ANYTHING.issuperset(inner)])
        if name in schema.get("required", ()) and self._chance.random() < 0.4:
            del value[name]
        else:
            value[name] = self._wrong(properties[name])
        return value

    def _wrong(self, schema: Any) -> Any:
        if "$ref" in schema:
            return self._wrong(self._named(schema["$ref"]))
        if "anyOf" in schema:
            return next(value for value in ({"of": [7]}, 7.5, "none of these") if any(self.faults(schema, value)))
        return WRONG[schema["type"]] if "type" in schema else "none of these"

    def _named(self, reference: str) -> Any:
        return self.document["components"]["schemas"][reference.rpartition("/")[2]]

    # ── answers ──

    def faults(self, schema: Any, value: Any, where: str = "") -> Iterator[str]:
        """In what a value is not as the schema says."""
        assert not (unknown := set(schema) - IGNORED - KNOWN_WORDS), f"this test does not know {unknown}"
        if "$ref" in schema:
            yield from self.faults(self._named(schema["$ref"]), value, where)
        elif "anyOf" in schema:
            if all(any(self.faults(inner, value)) for inner in schema["anyOf"]):
                yield f"{where}: {value!r} is none of the forms it may have"
        elif "enum" in schema:
            if value not in schema["enum"]:
                yield f"{where}: {value!r} is not one of {schema['enum']}"
        elif ANYTHING.issuperset(schema):
            return
        elif not _has_type(schema["type"], value):
            yield f"{where}: {value!r} is not of type {schema['type']}"
        elif schema["type"] == "string":
            if len(value) > schema.get("maxLength", len(value)):
                yield f"{where}: {len(value)} characters are too many"
        elif schema["type"] == "array":
            first = schema.get("prefixItems", ())
            if len(value) < schema.get("minItems", 0) or (first and len(value) > schema.get("maxItems", len(value))):
                yield f"{where}: {len(value)} are too few or too many"
            for number, item in enumerate(value):
                inner = first[number] if number < len(first) else schema["items"]
                yield from self.faults(inner, item, f"{where}[{number}]")
        elif schema["type"] == "object":
            properties = schema.get("properties", {})
            yield from (f"{where}.{name} is missing" for name in schema.get("required", ()) if name not in value)
            for name, item in value.items():
                inner = properties.get(name) or schema.get("additionalProperties")
                if inner:
                    yield from self.faults(inner, item, f"{where}.{name}")
                elif properties:
                    yield f"{where}.{name} is not described"


ANYTHING = {"default", "title", "description"}
"""A schema with no other words lets everything pass."""
KNOWN_WORDS = {
    "$ref", "anyOf", "enum", "type", "items", "properties", "required", "additionalProperties", "maxLength",
    "prefixItems", "minItems", "maxItems",
}  # fmt: skip


def _has_type(name: str, value: Any) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    kinds = {
        "string": str, "integer": int, "number": int | float, "array": list, "object": dict, "null": type(None),
        "boolean": bool,
    }  # fmt: skip
    return isinstance(value, kinds[name])


def _encoded(value: Any) -> bytes:
    return json.dumps(value).encode()
