"""What the model reads about its permissions: the mode of the session, and that of the moment."""

from __future__ import annotations

from pathlib import Path

import pytest

from covey.protocol.requests import UpdateSession
from covey.tools.base import ToolOutput
from tests.support.engine import call, config, running

pytestmark = pytest.mark.anyio


async def test_a_model_reads_what_it_may_do_and_that_it_has_changed(tmp_path: Path) -> None:
    async with running(tmp_path, settings=config(deny=("bash:danger*",))) as engine:

        async def act() -> ToolOutput:
            await engine.workspace.sessions.update(engine.session_id, UpdateSession(mode="accept_edits"))
            return ToolOutput("worked")

        engine.tool.act = act
        engine.model.answer(*call())
        await engine.post("a", "a")
        await engine.ended("a")
        first, second = (request.system for request in engine.model.requests)
        assert "For changes of files" in first and "`bash:danger*`" in first
        assert "changing files in the workspace" in second
        head, _, _ = first.partition("# Permissions")
        assert second.startswith(head)
