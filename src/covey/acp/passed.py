"""MCP servers that an editor passes along → what the server is given. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from covey.protocol.passed_servers import MOST_PASSED, PassedServer, PassedServers

NAME_LENGTH = 32
_STRANGE = re.compile(r"[^A-Za-z0-9_-]+")


def servers_of(value: Any) -> tuple[list[PassedServer], list[str]]:
    """Those that can be used, and the names of the others: of those with a URL, only `http` is announced."""
    found: dict[str, PassedServer] = {}
    left_out: list[str] = []
    for each in value if isinstance(value, list) else ():
        match each:
            case {"type": "http", "name": str(name), "url": str(url)} if url and len(found) < MOST_PASSED:
                server = PassedServer(name=_name(name), url=url, headers=_named_values(each.get("headers")))
                found[server.name] = server
            case {"name": str(name), "command": str(command)} if command and len(found) < MOST_PASSED:
                variables = _named_values(each.get("env"))
                server = PassedServer(name=_name(name), command=command, args=_texts(each.get("args")), env=variables)
                found[server.name] = server
            case {"name": str(name)}:
                left_out.append(name)
    return list(found.values()), left_out


def not_used(names: Sequence[str]) -> str:
    return f"These MCP servers of the editor are not used: {', '.join(names)}."


def why_not(passed: PassedServers) -> str:
    """'' if all are there."""
    if not passed.left_out:
        return ""
    return f"{not_used(passed.left_out)} Your configuration has others of that name, or there are too many."


def _name(name: str) -> str:
    """As tools can be called: letters, digits, dashes and underscores."""
    return _STRANGE.sub("-", name).strip("-_")[:NAME_LENGTH] or "editor"


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(str(each) for each in value) if isinstance(value, list) else ()


def _named_values(value: Any) -> dict[str, str]:
    pairs = [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
    return {str(each.get("name")): str(each.get("value")) for each in pairs}
