"""Routes about custom commands: what can be asked for by name, and what it says. v1 clients know only skills."""

from __future__ import annotations

from covey.protocol.custom import CustomCommand, ExpandCommand, ExpandedCommand
from covey.protocol.v1 import ReadSkill, SkillContent, SkillInfo
from covey.server.endpoint import Call, Endpoint


async def list_commands(call: Call, _body: None) -> list[CustomCommand]:
    workspace = await call.workspace()
    return await workspace.custom.all()


async def expand_command(call: Call, body: ExpandCommand) -> ExpandedCommand:
    workspace = await call.workspace()
    return await workspace.custom.expand(body)


async def list_skills(call: Call, _body: None) -> list[SkillInfo]:
    workspace = await call.workspace()
    return await workspace.custom.v1_skills()


async def read_skill(call: Call, body: ReadSkill) -> SkillContent:
    workspace = await call.workspace()
    return await workspace.custom.v1_skill(body.skill_id)


C = "/v1/workspaces/{id}/commands"

ENDPOINTS = (
    Endpoint("GET", C, list_commands, "What can be asked for with `/name`: commands, skills, agents.",
             answer=list[CustomCommand]),
    Endpoint("POST", C + "/expand", expand_command, "What a prompt that begins with `/name` stands for, to be shown.",
             ExpandCommand, answer=ExpandedCommand, needs="read"),
)  # fmt: skip

S = "/v1/workspaces/{id}/skills"

V1_ENDPOINTS = (
    Endpoint("GET", S, list_skills, "The skills that there are.", answer=list[SkillInfo]),
    Endpoint("POST", S + "/read", read_skill, "What a skill says.", ReadSkill, answer=SkillContent, needs="read"),
)
