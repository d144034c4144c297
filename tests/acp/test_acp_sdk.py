"""The client of the official Python SDK, with its own models, against `covey acp`."""

from __future__ import annotations

from typing import Any, cast

import acp
import pytest
from acp import schema

from tests.cli.conftest import Home


class SdkEditor:
    """Says yes to everything. What it does not have is never asked for."""

    def __init__(self) -> None:
        self.updates: list[Any] = []

    async def session_update(self, session_id: str, update: Any, **more: Any) -> None:
        self.updates.append(update)

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[schema.PermissionOption], **more: Any
    ) -> schema.RequestPermissionResponse:
        chosen = next(option for option in options if option.kind == "allow_once")
        outcome = schema.AllowedOutcome(option_id=chosen.option_id, outcome="selected")
        return schema.RequestPermissionResponse(outcome=outcome)


@pytest.mark.anyio
async def test_the_sdk_of_the_protocol_understands_all_of_it(home: Home) -> None:
    editor = SdkEditor()
    program, *args = home.command("acp")
    async with acp.spawn_agent_process(cast("Any", editor), program, *args, env=home.env, cwd=home.project) as (
        agent,
        _,
    ):
        opened = await agent.initialize(protocol_version=acp.PROTOCOL_VERSION)
        assert opened.protocol_version == 1 and opened.agent_info and opened.agent_info.name == "covey"
        session = await agent.new_session(cwd=str(home.project), mcp_servers=[])
        assert session.modes and session.modes.current_mode_id == "ask"
        done = await agent.prompt(prompt=[acp.text_block("make a file")], session_id=session.session_id)
        assert done.stop_reason == "end_turn"
        planned = await agent.prompt(prompt=[acp.text_block("plan it")], session_id=session.session_id)
        assert planned.stop_reason == "end_turn"
        kinds = [update.session_update for update in editor.updates]
        assert {"tool_call", "tool_call_update", "agent_message_chunk", "agent_thought_chunk", "plan"} <= set(kinds)
        before = len(editor.updates)
        await agent.load_session(cwd=str(home.project), session_id=session.session_id, mcp_servers=[])
        assert [update.session_update for update in editor.updates[before:]].count("user_message_chunk") == 2
    assert (home.project / "made").exists()
