"""The skill tool: what a skill says, and the further files that it has."""

from __future__ import annotations

from typing import Annotated

import msgspec

from covey.permissions.judge import Intent
from covey.protocol.effects import Effect
from covey.tools.base import Tool, ToolContext, ToolOutput, built_in


class SkillParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: Annotated[str, msgspec.Meta(max_length=300, description="Name of the skill, from the list.")]
    file: Annotated[
        str, msgspec.Meta(max_length=1000, description="A further file of the skill, relative to its folder.")
    ] = ""


def skill_tool() -> Tool[SkillParams]:
    return built_in("skill", Effect.LOOKS, SkillParams, intent=_intent, run=_run)


def _intent(params: SkillParams, context: ToolContext) -> Intent:
    # What the skill asks for is judged call by call; a deny rule can keep a skill away altogether.
    return Intent("skill", "read", params.name, harmless=True)


async def _run(params: SkillParams, context: ToolContext) -> ToolOutput:
    return await context.host.skill(context, params.name, params.file)
