"""The tools of MCP servers as tools of ours, and two of our own: to look at definitions, and to read resources."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import msgspec

from covey.engine.extensions.mcp_definitions import cleaned
from covey.engine.extensions.mcp_server import McpServer
from covey.permissions.judge import Intent
from covey.protocol.effects import Effect
from covey.protocol.extensions import OfferedTool
from covey.tools.base import Tool, ToolContext, ToolFailed, ToolOutput, built_in
from covey.tools.live_output import LiveOutput
from covey.tools.mcp.results import marked, output_of, resource_words

SHOWN_AT_ONCE = 20
"""Definitions that one look shows."""
RESOURCES_SHOWN = 200

Servers = Callable[[], Mapping[str, McpServer]]


def server_tool(server: McpServer, tool: OfferedTool, name: str) -> Tool[dict[str, Any]]:
    """One tool of a server. What the server says of its harmlessness counts for nothing; the user's own file does."""
    reads = tool.name in server.settings.reads and server.judged.entry.is_users_own
    effect = Effect.LOOKS if reads else Effect.RUNS_COMMANDS
    subject = f"{server.name}/{tool.name}"
    words = f"[From the MCP server {server.name}] {tool.description}"
    if (about := server.catalogue.pins.instructions) and tool.name == next(iter(server.catalogue.offered)):
        words += f"\n[About all its tools it says] {about}"  # once for each server, and approved with its tools

    async def run(arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
        live = LiveOutput(context.open_sink())
        try:
            result = await server.call(
                tool.name, arguments, context, lambda line: live.add(f"{cleaned(line)}\n".encode())
            )
        finally:
            live.close()
        return output_of(server.name, result, sees=context.sees_images)

    return Tool(
        name=name,
        effect=effect,
        description=lambda: words,
        schema=dict(tool.schema),
        decode=lambda text: _arguments(name, text),
        intent=lambda _given, _context: Intent("mcp", "call", subject, harmless=reads, effect=effect),
        describe=lambda _given, _context: f"call {tool.name} of the MCP server {server.name}{_hint(tool)}",
        preview=lambda given, _context: {"server": server.name, "tool": tool.name, "arguments": given},
        run=run,
    )


def _hint(tool: OfferedTool) -> str:
    """What the server says of it, for whoever is asked: as hearsay."""
    said = [word for key, word in _HINTS.items() if tool.annotations.get(key) is True]
    return f" (it says that it {' and '.join(said)})" if said else ""


_HINTS = {"readOnlyHint": "only reads", "destructiveHint": "may destroy something"}


def _arguments(name: str, text: str) -> dict[str, Any]:
    try:
        arguments = msgspec.json.decode(text or "{}")
    except msgspec.DecodeError as error:
        raise ToolFailed(f"The input of {name} is not valid JSON: {error}. Correct it and call again.") from None
    if not isinstance(arguments, dict):
        raise ToolFailed(f"The input of {name} must be an object. Correct it and call again.")
    return arguments


class LookParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    names: Annotated[tuple[str, ...], msgspec.Meta(description="Full names of tools.")] = ()
    query: Annotated[str, msgspec.Meta(description="Words to find in names or descriptions.")] = ""


def look_tool(tools: Callable[[], Mapping[str, Tool[Any]]], reveal: Callable[[str, Sequence[str]], None]) -> Tool[Any]:
    """Shows definitions of tools that are too many to be told at once; what was shown can be called from then on."""

    async def run(params: LookParams, context: ToolContext) -> ToolOutput:
        known = {name: tool for name, tool in tools().items() if name not in OWN}
        words = [word for word in re.split(r"\W+", params.query.lower()) if word]
        found = [name for name in params.names if name in known]
        if words:
            texts = {name: f"{name} {tool.description()}".lower() for name, tool in known.items()}
            found += [name for name, text in texts.items() if all(word in text for word in words) and name not in found]
        if not found:
            raise ToolFailed(f"No tool fits. There are: {', '.join(known)}.")
        reveal(context.session_id, found[:SHOWN_AT_ONCE])
        definitions = [
            {"name": name, "description": known[name].description(), "input_schema": known[name].schema}
            for name in found[:SHOWN_AT_ONCE]
        ]
        left = f"\n{len(found) - SHOWN_AT_ONCE} more fit: be more specific." if len(found) > SHOWN_AT_ONCE else ""
        return ToolOutput("\n".join(msgspec.json.encode(each).decode() for each in definitions) + left)

    return built_in(
        "mcp_tools",
        Effect.LOOKS,
        LookParams,
        intent=lambda params, _: Intent("mcp_tools", "look", params.query or " ".join(params.names), harmless=True),
        run=run,
    )


class ResourceParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    server: Annotated[str, msgspec.Meta(description="The name of the MCP server.")]
    uri: Annotated[str, msgspec.Meta(description="The resource to read; empty: list them.")] = ""


def resource_tool(servers: Servers) -> Tool[Any]:
    """Lists and reads resources."""

    async def run(params: ResourceParams, context: ToolContext) -> ToolOutput:
        server = servers().get(params.server)
        if server is None:
            raise ToolFailed(f"There is no MCP server {params.server!r}. There are: {', '.join(servers())}.")
        if not params.uri:
            found = (await server.resources())[:RESOURCES_SHOWN]
            lines = [f"{item.get('uri')}  {item.get('name', '')}  {item.get('description', '')}" for item in found]
            return ToolOutput(marked(server.name, cleaned("\n".join(lines)) or "(no resources)"))
        result = await server.read(params.uri, context)
        contents = result.get("contents")
        texts = [
            resource_words(each) for each in (contents if isinstance(contents, list) else ()) if isinstance(each, dict)
        ]
        return ToolOutput(marked(server.name, "\n".join(texts) or "(nothing)"))

    return built_in(
        "mcp_resources",
        Effect.REACHES_OUT,
        ResourceParams,
        intent=lambda params, _: Intent("mcp", "read", f"{params.server}/resources", effect=Effect.REACHES_OUT),
        describe=lambda params, _: f"read {params.uri or 'the list of resources'} of the MCP server {params.server}",
        run=run,
    )


OWN = frozenset({"mcp_tools", "mcp_resources", "mcp_skill"})
