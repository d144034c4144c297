"""What a model is told of its tools is true for the run that it works for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from covey.protocol.requests import PostPrompt
from covey.tools.registry import make_tools
from tests.support.engine import running, within

pytestmark = pytest.mark.anyio


async def test_a_run_that_can_ask_nobody_is_not_offered_to_ask(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        engine.workspace._parts.agent.tools.update(make_tools())
        for run_id, unattended in (("a", True), ("b", False)):
            request = PostPrompt(session_id=engine.session_id, prompt="go", run_id=run_id, unattended=unattended)
            await within(engine.workspace.runs.post(request))
            await engine.ended(run_id)
        alone, watched = engine.model.requests
        assert "question" not in {tool.name for tool in alone.tools} and "question tool" not in alone.system
        assert "question" in {tool.name for tool in watched.tools} and "question tool" in watched.system


async def test_what_is_said_of_commands_is_true_without_a_sandbox(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        engine.workspace._parts.agent.tools.update(make_tools())
        for run_id, sandbox in (("a", "off"), ("b", "auto")):
            options: Any = {"sandbox": sandbox}
            request = PostPrompt(session_id=engine.session_id, prompt="go", run_id=run_id, **options)
            await within(engine.workspace.runs.post(request))
            await engine.ended(run_id)
        free, confined = ({tool.name: tool.description for tool in each.tools} for each in engine.model.requests)
        assert "sandbox" not in free["bash"] and "Commands run in a sandbox" in confined["bash"]
