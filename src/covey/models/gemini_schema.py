"""A JSON Schema → the part of it that Gemini accepts for the parameters of a tool. Pure.

Gemini refuses a whole request over one key that it does not know, so what it does not understand is left out: the tool
checks its input itself anyway.
"""

from __future__ import annotations

from typing import Any

_KEPT = frozenset(
    {
        "description",
        "maximum",
        "maxItems",
        "maxLength",
        "minimum",
        "minItems",
        "minLength",
        "nullable",
        "pattern",
    }
)
_FORMATS = {
    "string": frozenset({"date-time", "enum"}),
    "integer": frozenset({"int32", "int64"}),
    "number": frozenset({"float", "double"}),
}

_Json = dict[str, Any]


def clean_schema(schema: _Json) -> _Json:
    return _Cleaner(schema.get("$defs") or schema.get("definitions") or {}).clean(schema)


class _Cleaner:
    def __init__(self, definitions: _Json) -> None:
        self._definitions = definitions
        self._inside: list[str] = []
        """The definitions that are being followed: one inside of itself ends there."""

    def clean(self, schema: Any) -> _Json:
        if not isinstance(schema, dict):
            return {"type": "string"}
        if "$ref" in schema:
            return self._follow(schema)
        if "allOf" in schema:
            return self.clean(_joined(schema))
        cleaned = {key: value for key, value in schema.items() if key in _KEPT}
        if choices := schema.get("anyOf") or schema.get("oneOf"):
            self._clean_choices(choices, cleaned)
        else:
            self._clean_kind(schema, cleaned)
        return cleaned

    def _follow(self, schema: _Json) -> _Json:
        name = str(schema["$ref"]).rsplit("/", 1)[-1]
        if name in self._inside:
            return {"type": "object"}
        self._inside.append(name)
        cleaned = self.clean(self._definitions.get(name, {}))
        self._inside.pop()
        return cleaned | {key: value for key, value in schema.items() if key == "description"}

    def _clean_kind(self, schema: _Json, cleaned: _Json) -> None:
        """The type, and what goes with it."""
        kind = schema.get("type")
        if isinstance(kind, list):
            cleaned |= {"nullable": True} if "null" in kind else {}
            kind = next((one for one in kind if one != "null"), "string")
        values = schema.get("enum", [schema["const"]] if "const" in schema else None)
        if values is not None:
            kind = "string"  # Gemini knows no other enumerations
            cleaned["enum"] = [str(value) for value in values if value not in (None, "")]
            cleaned |= {"nullable": True} if None in values else {}
        kind = cleaned["type"] = kind or ("object" if "properties" in schema else "string")
        if schema.get("format") in _FORMATS.get(kind, ()):
            cleaned["format"] = schema["format"]
        if kind == "array":
            cleaned["items"] = self.clean(schema.get("items"))
        if kind == "object":
            properties = {name: self.clean(item) for name, item in schema.get("properties", {}).items()}
            required = [name for name in schema.get("required", ()) if name in properties]
            cleaned |= {"properties": properties} if properties else {}
            cleaned |= {"required": required} if required else {}

    def _clean_choices(self, choices: list[Any], cleaned: _Json) -> None:
        real = [choice for choice in choices if not (isinstance(choice, dict) and choice.get("type") == "null")]
        if len(real) < len(choices):
            cleaned["nullable"] = True
        options = [self.clean(choice) for choice in real]
        cleaned |= {**options[0], **cleaned} if len(options) == 1 else {"anyOf": options}


def _joined(schema: _Json) -> _Json:
    """One object instead of several that all hold."""
    joined = {key: value for key, value in schema.items() if key != "allOf"}
    for part in schema["allOf"]:
        properties = {**joined.get("properties", {}), **part.get("properties", {})}
        required = [*joined.get("required", ()), *part.get("required", ())]
        joined = {**joined, **part} | ({"properties": properties, "required": required} if properties else {})
    return joined
