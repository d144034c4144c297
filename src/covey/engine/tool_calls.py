"""One tool call: check it, ask if need be, run it, and turn whatever happens into a result for the model."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import msgspec

from covey.engine.agent import Agent
from covey.engine.permissions import PermissionDesk
from covey.engine.world import World
from covey.lifecycle.permissions import Verdict
from covey.protocol.events import PermissionRequest
from covey.protocol.messages import ToolCall, ToolResult
from covey.protocol.runs import Run
from covey.tools.base import Tool, ToolContext, ToolFailed, ToolOutput
from covey.tools.threads import in_thread

log = logging.getLogger(__name__)

DENIED = "The user denied this call. Do not try it again in another way; ask, or go on without it."
FORBIDDEN = "A rule of the user forbids this call. Do not try it again in another way; go on without it."


class ToolCalls:
    """Runs tool calls for the turns of one workspace."""

    def __init__(self, agent: Agent, desk: PermissionDesk, world: World, workspace_id: str) -> None:
        self._agent = agent
        self._desk = desk
        self._world = world
        self._workspace_id = workspace_id

    def process_tag(self, run_id: str) -> str:
        """What marks the processes of a run, also after a crash of this server."""
        return f"covey-{self._workspace_id}-{run_id}"

    async def run(self, call: ToolCall, run: Run, waiting_on: Callable[[str], None]) -> ToolResult:
        """The result of a call. Only cancelling it raises."""
        try:
            output = await self._run(call, run, waiting_on)
        except ToolFailed as error:
            output = ToolOutput(str(error), is_error=True)
        except Exception as error:
            log.exception("tool %s failed", call.name)
            output = ToolOutput(f"The tool failed: {type(error).__name__}: {error}", is_error=True)
        return ToolResult(
            tool_call_id=call.id,
            name=call.name,
            content=_printable(output.content),
            metadata=msgspec.json.encode(output.metadata).decode() if output.metadata else "",
            is_error=output.is_error,
        )

    async def _run(self, call: ToolCall, run: Run, waiting_on: Callable[[str], None]) -> ToolOutput:
        tool = self._agent.tools.get(call.name)
        if tool is None:
            raise ToolFailed(f"There is no tool {call.name!r}. There are: {', '.join(self._agent.tools)}.")
        params = tool.decode(call.input)
        context = ToolContext(
            root=self._agent.root,
            session_id=run.session_id,
            run_id=run.run_id,
            call_id=call.id,
            env=self._agent.env,
            process_tag=self.process_tag(run.run_id),
        )
        if refusal := await self._refusal(tool, params, context, waiting_on):
            return ToolOutput(refusal, is_error=True)
        waiting_on(f"tool:{call.name}")
        return await tool.run(params, context)

    async def _refusal(
        self, tool: Tool[Any], params: Any, context: ToolContext, waiting_on: Callable[[str], None]
    ) -> str:
        """Why the call may not run; empty if it may."""
        wish = tool.wish(params, context)
        verdict = self._desk.decide(wish, context.session_id)
        if verdict is Verdict.ALLOW:
            return ""
        if verdict is Verdict.DENY:
            return FORBIDDEN
        waiting_on("permission")
        request = PermissionRequest(
            id=self._world.new_id(),
            session_id=context.session_id,
            tool_call_id=context.call_id,
            tool_name=tool.name,
            description=tool.describe(params, context),
            action=wish.action,
            params=await in_thread(lambda: tool.preview(params, context)),
            path=str(context.root),
            run_id=context.run_id,
        )
        return "" if await self._desk.ask(request, wish) else DENIED


def _printable(text: str) -> str:
    """A file name that is no UTF-8 comes with characters that JSON cannot hold, also inside an error's text."""
    return text.encode("utf-8", "replace").decode()
