"""The tool by which a model is given a skill of an MCP server, or a further file of one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

import msgspec

from covey.context.catalogue import bounded_lines
from covey.context.clean_text import without_hidden
from covey.engine.extensions.mcp_server import McpServer
from covey.engine.extensions.mcp_skills import PinnedSkill, WrongSkill, labels, verified
from covey.permissions.judge import Intent
from covey.protocol.effects import Effect
from covey.tools.base import Tool, ToolContext, ToolFailed, ToolOutput, built_in
from covey.tools.mcp.results import marked


class McpSkillParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    server: Annotated[str, msgspec.Meta(description="The name of the MCP server.")]
    skill: Annotated[str, msgspec.Meta(description="The skill, by its name in the list.")]
    file: Annotated[str, msgspec.Meta(description="A further file of the skill, relative to its folder.")] = ""


def skill_tool(servers: Mapping[str, McpServer]) -> Tool[Any]:
    """Its description has the catalogue: name and description of each skill, under the server that has it."""
    known = {name: labels(server.skills) for name, server in servers.items() if server.skills}
    lines = [(f"{server}/{label}", skill.description) for server in known for label, skill in known[server].items()]
    catalogue = f"There are, in the words of their servers:\n{bounded_lines(lines, 0)}"

    async def run(params: McpSkillParams, context: ToolContext) -> ToolOutput:
        skill = known.get(params.server, {}).get(params.skill)
        if skill is None:
            listed = ", ".join(f"{server}/{label}" for server in known for label in known[server])
            raise ToolFailed(f"There is no skill {params.skill!r} of a server {params.server!r}. There are: {listed}.")
        return ToolOutput(await _given(servers[params.server], skill, params.file, context))

    tool = built_in(
        "mcp_skill",
        Effect.REACHES_OUT,
        McpSkillParams,
        intent=lambda params, _: Intent("mcp", "read", f"{params.server}/skills/{params.skill}"),
        describe=lambda params, _: f"read the skill {params.skill} of the MCP server {params.server}",
        run=run,
    )
    about = tool.description
    return replace(tool, description=lambda: f"{about()}\n{catalogue}")


async def _given(server: McpServer, skill: PinnedSkill, path: str, context: ToolContext) -> str:
    """What a file says, if it is the approved one. Raises ToolFailed."""
    try:
        file = skill.file(path)
        data = verified(skill, file, await server.read(file.uri, context))
    except WrongSkill as wrong:
        raise ToolFailed(f"The skill {skill.name} of the MCP server {server.name} is not used: {wrong}.") from None
    if b"\0" in data:
        raise ToolFailed(f"{path!r} is no text ({len(data)} bytes).")
    further = "" if path or not skill.further else f"\nIts further files: {', '.join(skill.further)}"
    title = f"The skill {skill.name} of the MCP server {server.name}{f', file {path}' if path else ''}{further}"
    return f"{title}\n\n{marked(server.name, without_hidden(data.decode('utf-8', 'replace')))}"
