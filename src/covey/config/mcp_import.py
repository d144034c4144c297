"""MCP servers as other agents write them down, as entries of ours; and what of them was not taken over.

Reads `.mcp.json` (also Cursor's and VS Code's), `opencode.json` and `crush.json`. Nothing is executed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from covey.config.load import read_text
from covey.config.schema import ConfigError

_NAME = re.compile(r"[^A-Za-z0-9_-]+")
_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_KNOWN = {
    *("command", "args", "env", "environment", "url", "headers", "type", "enabled", "disabled", "timeout"),
    *("disabled_tools", "cwd"),
}
_SERVERS = ("mcpServers", "mcp", "servers")
_ELSEWHERE = {
    "lsp": "see [lsp]",
    "permission": "see [permissions]",
    "permissions": "see [permissions]",
    "provider": "see [providers]",
    "providers": "see [providers]",
    "model": "see [models]",
    "models": "see [models]",
    "hooks": "see [hooks]",
    "agent": "files in .opencode/agents are read where they are",
    "command": "files in .opencode/commands are read where they are",
    "instructions": "see context.files",
}
"""Other sections of such files, and where the same is said here."""
PLACES = (".mcp.json", "opencode.json", "crush.json", ".crush.json", ".cursor/mcp.json", ".vscode/mcp.json")


@dataclass(slots=True)
class Imported:
    """Entries by name, as they would be written into config.toml."""

    entries: dict[str, dict[str, Any]] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    """What was not taken over, and why."""


def read_foreign(path: Path) -> Imported:
    """What a file of another agent names. Raises ConfigError."""
    text = read_text(path)
    if text is None:
        raise ConfigError(f"{path}: there is no such file")
    try:
        content = json.loads(_COMMENT.sub(lambda match: match[1] or "", text))
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: is not valid JSON: {error}") from None
    tables = [content.get(key) for key in _SERVERS] if isinstance(content, dict) else []
    servers = next((table for table in tables if isinstance(table, dict)), None)
    if servers is None:
        raise ConfigError(f"{path}: names no MCP servers (mcpServers, mcp or servers)")
    found = Imported()
    for name, entry in servers.items():
        if isinstance(entry, dict):
            _take(found, str(name), entry, is_opencode=path.name.startswith("opencode"))
    for key in sorted(content.keys() - {*_SERVERS, "$schema"}):
        found.left_out.append(f"{key}: {_ELSEWHERE.get(key, 'of such a file, only MCP servers are taken over')}")
    return found


def _take(found: Imported, name: str, entry: Mapping[str, Any], *, is_opencode: bool) -> None:
    ours = _NAME.sub("-", name).strip("-_")[:32]
    if not ours or ours in found.entries:
        found.left_out.append(f"{name}: its name cannot be used here")
        return
    if entry.get("type") in ("sse", "ws"):
        found.left_out.append(f"{name}: it is reached by {entry['type']}, which has been replaced by streamable HTTP")
        return
    for key in sorted(entry.keys() - _KNOWN):
        found.left_out.append(f"{name}: {key} means nothing here")
    taken: dict[str, Any] = {}
    command = entry.get("command")
    words = [*command] if isinstance(command, list) else [command] if command else []
    words += entry["args"] if isinstance(entry.get("args"), list) else []
    if words:
        taken["command"], *rest = (_text(str(word), is_opencode) for word in words)
        taken |= {"args": rest} if rest else {}
    if url := entry.get("url"):
        taken["url"] = _text(str(url), is_opencode)
    for key, theirs in (("env", "env"), ("env", "environment"), ("headers", "headers")):
        if isinstance(table := entry.get(theirs), dict) and table:
            taken[key] = {str(each): _text(str(value), is_opencode) for each, value in table.items()}
    if isinstance(entry.get("cwd"), str):
        taken["cwd"] = entry["cwd"]
    if isinstance(tools := entry.get("disabled_tools"), list) and tools:
        taken["disabled_tools"] = [str(tool) for tool in tools]
    if entry.get("enabled") is False or entry.get("disabled") is True:
        taken["enabled"] = False
    if "timeout" in entry:
        found.left_out.append(f"{name}: timeout; see call_timeout_s and idle_timeout_s")
    if "$(" in json.dumps(taken):
        found.left_out.append(f"{name}: it has a shell command in its values, which is never executed")
        return
    if bool(taken.get("command")) == bool(taken.get("url")):
        found.left_out.append(f"{name}: it names neither a command nor a url, or both")
        return
    found.entries[ours] = taken


def _text(text: str, is_opencode: bool) -> str:
    """As we write variables: `${NAME}`. Any other dollar is one."""
    if is_opencode:
        return re.sub(r"\{env:(\w+)\}", r"${\1}", text.replace("$", "$$"))
    text = re.sub(r"\$\{env:(\w+)\}", r"${\1}", text)
    return re.sub(r"\$(?!\{[A-Za-z_]\w*(?::-[^}]*)?\}|[A-Za-z_]|\()", "$$", text)
