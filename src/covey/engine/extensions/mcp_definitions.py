"""What a server says of its tools, as it may be shown and offered: checked, cleaned, bounded, with a digest and a name.

Descriptions, names of parameters and values of enums are written by a stranger, and read by the model.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from covey.context.clean_text import without_hidden
from covey.protocol.extensions import OfferedTool
from covey.tools.mcp.http import header_problem

TEXT_LIMIT = 2_000
"""Characters of a description, and of a server's instructions."""
SCHEMA_LIMIT = 64 * 1024
"""Bytes of one schema: more than any tool needs, and all of it is sent with each step."""
DEPTH_LIMIT = 40
NAME_LIMIT = 64
"""What providers allow for the name of a tool."""

_NAME = re.compile(r"[A-Za-z0-9_./-]{1,128}")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_DROPPED = frozenset({"$schema", "$id"})


class WrongTool(Exception):
    """A tool that cannot be used. The text says why."""


def usable_tools(items: Iterable[Mapping[str, Any]]) -> tuple[dict[str, OfferedTool], list[str]]:
    """The tools of a list by name, and what was left out of it, and why. One bad tool is no reason to lose others."""
    found: dict[str, OfferedTool] = {}
    left_out: list[str] = []
    for item in items:
        try:
            tool = _tool(item)
            if tool.name in found:
                raise WrongTool("there are two of this name")
            found[tool.name] = tool
        except WrongTool as wrong:
            left_out.append(f"{cleaned(str(item.get('name', '?')))[:NAME_LIMIT]}: {wrong}")
    return found, left_out


def _tool(item: Mapping[str, Any]) -> OfferedTool:
    name, schema, annotations = item.get("name"), item.get("inputSchema"), item.get("annotations")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise WrongTool("its name is none: letters, digits, _ . / and -, 128 at most")
    if not isinstance(schema, dict) or schema.get("type") != "object":
        raise WrongTool('its schema has no "type": "object"')
    if problem := header_problem(schema):
        raise WrongTool(problem)
    if len(msgspec.json.encode(schema)) > SCHEMA_LIMIT:
        raise WrongTool(f"its schema is larger than {SCHEMA_LIMIT // 1024} KiB")
    return OfferedTool(
        name=name,
        description=cleaned(str(item.get("description") or item.get("title") or ""))[:TEXT_LIMIT],
        schema=_schema(schema),
        annotations=cleaned_tree(annotations) if isinstance(annotations, dict) else {},
    )


def _schema(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema that providers take: references lead into it, or nowhere."""
    clean: dict[str, Any] = cleaned_tree({key: value for key, value in schema.items() if key not in _DROPPED})
    for reference in _references(clean):
        if not reference.startswith("#"):
            raise WrongTool("its schema refers to something outside of it, which is not followed")
    properties = clean.get("properties", {})
    if not isinstance(properties, dict) or not all(isinstance(each, dict | bool) for each in properties.values()):
        raise WrongTool("the properties of its schema are no schemas")
    required = clean.get("required", [])
    if not isinstance(required, list) or not all(isinstance(each, str) for each in required):
        raise WrongTool("`required` in its schema is no list of names")
    return {**clean, "properties": properties}


def _references(tree: Any) -> Iterable[str]:
    if isinstance(tree, dict):
        if isinstance(reference := tree.get("$ref"), str):
            yield reference
        for value in tree.values():
            yield from _references(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from _references(value)


def cleaned_tree(tree: Any, depth: int = 0) -> Any:
    if depth > DEPTH_LIMIT:
        raise WrongTool("its schema is nested too deeply")
    match tree:
        case str():
            return cleaned(tree)
        case dict():
            return {cleaned(str(key)): cleaned_tree(value, depth + 1) for key, value in tree.items()}
        case list():
            return [cleaned_tree(value, depth + 1) for value in tree]
        case _:
            return tree


def cleaned(text: str) -> str:
    """Without control, bidirectional and zero-width characters."""
    return without_hidden(text).strip()


def digest_of_tool(tool: OfferedTool) -> str:
    """What is pinned: SHA-256 of all that the model or a person reads of it."""
    content = {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": tool.schema,
        "annotations": tool.annotations,
    }
    return hashlib.sha256(msgspec.json.encode(content, order="sorted")).hexdigest()


def model_names(server: str, tools: Iterable[str]) -> dict[str, str]:
    """By the server's name of each tool: what the model calls it. Unique, also if two differ by a character only.

    Where a server ends and its tool begins can be read in two ways only if a server has a `__` in its own name.
    """
    is_plain = "__" not in f"{server}_"
    plain = {tool: f"mcp__{server}__{_NOT_IN_NAMES.sub('_', tool)}" for tool in tools}
    taken = list(plain.values())
    names = {}
    for tool, name in plain.items():
        if not is_plain or len(name) > NAME_LIMIT or taken.count(name) > 1 or name != f"mcp__{server}__{tool}":
            suffix = hashlib.sha256(f"{server}/{tool}".encode()).hexdigest()[:8]
            name = f"{name[: NAME_LIMIT - 9]}_{suffix}"
        names[tool] = name
    return names
