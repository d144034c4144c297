"""What a server asks a person, as questions of ours, and the answers as the server wants them.

The question names the server. What looks like a secret is not asked for in a form; a URL is shown, and never opened.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from covey.engine.extensions.mcp_definitions import cleaned
from covey.tools.base import Choice, Question, ToolContext
from covey.tools.mcp.connection import unknown_method

log = logging.getLogger(__name__)

FIELDS_LIMIT = 12
CHOICES_LIMIT = 50
TEXT_LIMIT = 1_000
DECLINE: dict[str, Any] = {"action": "decline"}
_SECRET = re.compile(
    r"pass(?:word|phrase|wd)|secret|token|api[\s_-]?key|credential|private[\s_-]?key|\bpin\b|\botp\b|cvv|card[\s_-]?number",
    re.IGNORECASE,
)
_SECRET_FORMATS = ("password",)


async def answered(
    server: str, root: Path, calls: Sequence[ToolContext], method: str, params: dict[str, Any]
) -> dict[str, Any]:
    """What a server gets that asks. A person is asked for the newest of its calls; where there is none, nobody is."""
    if method == "roots/list":
        return {"roots": [{"uri": root.as_uri(), "name": root.name}]}
    if method != "elicitation/create":
        raise unknown_method(method)
    if not calls:
        return DECLINE
    try:
        questions = questions_of(server, params)
    except NotAsked as reason:
        log.warning("the MCP server %s was not let ask: %s", server, reason)
        return DECLINE
    return answer_of(params, await calls[-1].host.ask(calls[-1], questions))


class NotAsked(Exception):
    """Why nobody is asked this, in words for people."""


def questions_of(server: str, params: Mapping[str, Any]) -> list[Question]:
    """What a person is asked. Raises NotAsked."""
    said = cleaned(str(params.get("message", "")))[:TEXT_LIMIT]
    asks = f"The MCP server {server} asks: {said}"
    if params.get("mode") == "url":
        return [Question(asks, "yes_no", description=_where(str(params.get("url", ""))))]
    fields = fields_of(params)
    if not fields:
        return [Question(asks, "yes_no")]
    if len(fields) > FIELDS_LIMIT:
        raise NotAsked(f"it asks for more than {FIELDS_LIMIT} things at once")
    return [
        _question(f"{asks}\n{_title(name, field)}" if number == 0 else _title(name, field), name, field)
        for number, (name, field) in enumerate(fields.items())
    ]


def fields_of(params: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    schema = params.get("requestedSchema")
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict):
        return {}
    return {name: field for name, field in properties.items() if isinstance(field, dict)}


def answer_of(params: Mapping[str, Any], words: Sequence[str] | None) -> dict[str, Any]:
    """The answer as the server wants it. None: the person did not want to answer."""
    if words is None:
        return DECLINE
    fields = fields_of(params)
    if params.get("mode") == "url" or not fields:
        accepted = bool(words) and words[0].strip().lower().startswith("yes")
        return {"action": "accept"} if accepted else DECLINE
    content = {name: _value(field, word) for (name, field), word in zip(fields.items(), words, strict=False)}
    return {"action": "accept", "content": {name: value for name, value in content.items() if value is not None}}


def _where(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("https", "http") or not parts.hostname:
        raise NotAsked("it wants a page to be opened that is none")
    return f"It wants you to open a page of {parts.hostname} in your browser, yourself: {cleaned(url)[:TEXT_LIMIT]}"


def _title(name: str, field: Mapping[str, Any]) -> str:
    return cleaned(str(field.get("title") or name))[:TEXT_LIMIT]


def _question(text: str, name: str, field: Mapping[str, Any]) -> Question:
    description = cleaned(str(field.get("description", "")))[:TEXT_LIMIT]
    if _SECRET.search(f"{name} {field.get('title', '')} {description}") or field.get("format") in _SECRET_FORMATS:
        raise NotAsked(f"it asks for {cleaned(name)[:40]!r} in a form, which looks like a secret")
    choices = tuple(Choice(label) for label in _labels(field))[:CHOICES_LIMIT]
    if field.get("type") == "boolean":
        return Question(text, "yes_no", description=description)
    if choices and field.get("type") == "array":
        return Question(text, "multi_choice", description=description, choices=choices)
    if choices:
        return Question(text, "single_choice", description=description, choices=choices)
    if field.get("type") not in ("string", "number", "integer"):
        raise NotAsked("it asks for something that is no text, number or choice")
    return Question(text, "free_text", description=description)


def _options(field: Mapping[str, Any]) -> dict[str, Any]:
    """By what a person sees: what the server gets."""
    items = field.get("items")
    source = items if field.get("type") == "array" and isinstance(items, dict) else field
    for key in ("oneOf", "anyOf"):
        if isinstance(found := source.get(key), list):
            pairs = [each for each in found if isinstance(each, dict) and "const" in each]
            return {cleaned(str(each.get("title") or each["const"])): each["const"] for each in pairs}
    values = source.get("enum")
    names = source.get("enumNames")
    if not isinstance(values, list):
        return {}
    labels = names if isinstance(names, list) and len(names) == len(values) else values
    return {cleaned(str(label)): value for label, value in zip(labels, values, strict=True)}


def _labels(field: Mapping[str, Any]) -> list[str]:
    return list(_options(field))


def _value(field: Mapping[str, Any], word: str) -> Any:
    """What a person said, in the type that the server asked for; None: it cannot be understood."""
    options, kind = _options(field), field.get("type")
    if kind == "boolean":
        return word.strip().lower().startswith("yes")
    if kind == "array":
        return [options[label.strip()] for label in word.split(", ") if label.strip() in options]
    if options:
        return options.get(word.strip(), word.strip())
    if kind not in ("number", "integer"):
        return word
    try:
        return int(word) if kind == "integer" else float(word)
    except ValueError:
        return None
