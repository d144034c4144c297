"""The agent tool: let a read-only agent in a session of its own look into something."""

from __future__ import annotations

from typing import Annotated

import msgspec

from covey.permissions.judge import Intent
from covey.protocol.effects import Effect
from covey.tools.base import Tool, ToolContext, ToolFailed, ToolOutput, built_in

PROMPT_LIMIT = 50_000
"""Characters: a long task with what it needs to know, not a copy of the conversation."""


class AgentParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    prompt: Annotated[
        str, msgspec.Meta(max_length=PROMPT_LIMIT, description="What to find out, and what to report back.")
    ]


def agent_tool() -> Tool[AgentParams]:
    return built_in("agent", Effect.TALKS, AgentParams, intent=_intent, describe=_described, run=_run, independent=True)


def _intent(params: AgentParams, context: ToolContext) -> Intent:
    # It can only do what nobody need be asked about; whatever else it tries is decided there.
    return Intent("agent", "delegate", params.prompt, harmless=True)


def _described(params: AgentParams, context: ToolContext) -> str:
    return " ".join(params.prompt.split())[:200]


async def _run(params: AgentParams, context: ToolContext) -> ToolOutput:
    if not params.prompt.strip():
        raise ToolFailed("The prompt is empty: say what to find out.")
    report = await context.host.delegate(context, params.prompt)
    return ToolOutput(report.strip() or "The agent ended without a report. Ask in another way, or look yourself.")
