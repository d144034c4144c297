"""The agent tool: let an agent in a session of its own look into something or, on wish, do a part of the work."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import msgspec

from covey.permissions.judge import Intent
from covey.protocol.effects import Effect
from covey.tools.base import Tool, ToolContext, ToolFailed, ToolOutput, built_in, schema_of, without

PROMPT_LIMIT = 50_000
"""Characters: a long task with what it needs to know, not a copy of the conversation."""


NO_WRITERS = (
    "No agent may write while this run makes a plan. Send one that only looks, without `writes`, or say in the plan "
    "what it would do."
)


class AgentParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    prompt: Annotated[
        str, msgspec.Meta(max_length=PROMPT_LIMIT, description="What to find out or do, and what to report back.")
    ]
    writes: Annotated[
        bool, msgspec.Meta(description="It may change files and run commands. Otherwise it is read-only.")
    ] = False
    agent: Annotated[
        str,
        msgspec.Meta(max_length=300, description="Name of a custom agent from the list. Default: the usual one."),
    ] = ""


def agent_tool() -> Tool[AgentParams]:
    """Its schema does not mention custom agents: most projects have none, and every request would pay for it."""
    tool = built_in(
        "agent",
        Effect.TALKS,
        AgentParams,
        intent=_intent,
        describe=_described,
        run=_run,
        independent=True,
        alone=lambda params: params.writes,
    )
    return without(tool, "agent")


def with_custom_agents(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of the tool where there are custom agents."""
    about = schema_of(AgentParams)["properties"]["agent"]
    return {**schema, "properties": {**schema["properties"], "agent": about}}


def that_only_looks(tool: Tool[AgentParams]) -> Tool[AgentParams]:
    """The tool where nothing may be changed: the model is not told of `writes`, and is refused it."""

    def decode(text: str) -> AgentParams:
        params = tool.decode(text)
        if params.writes:
            raise ToolFailed(NO_WRITERS)
        return params

    return replace(without(tool, "writes"), decode=decode)


def _intent(params: AgentParams, context: ToolContext) -> Intent:
    # Whatever it tries is judged call by call, and asked about in the name of the run that sends it.
    return Intent("agent", "delegate", params.prompt, harmless=True)


def _described(params: AgentParams, context: ToolContext) -> str:
    return " ".join(params.prompt.split())[:200]


async def _run(params: AgentParams, context: ToolContext) -> ToolOutput:
    if not params.prompt.strip():
        raise ToolFailed("The prompt is empty: say what to find out or to do.")
    report = await context.host.delegate(context, params.prompt, writes=params.writes, agent=params.agent)
    return ToolOutput(report.strip() or "The agent ended without a report. Ask in another way, or look yourself.")
