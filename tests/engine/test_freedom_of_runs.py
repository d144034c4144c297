"""What the model reads about its permissions: the mode of the session, and that of the moment."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from covey.context.freedom import NOBODY_THERE, UNATTENDED
from covey.protocol.requests import PostPrompt, UpdateSession
from covey.tools.base import ToolOutput
from tests.support.engine import Gate, call, config, running, within

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


async def test_19_a_model_reads_at_the_start_whether_anybody_can_answer(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        for run_id, unattended in (("a", True), ("b", True), ("c", False)):
            request = PostPrompt(session_id=engine.session_id, prompt=run_id, run_id=run_id, unattended=unattended)
            await within(engine.workspace.runs.post(request))
            await engine.ended(run_id)
        alone, again, attended = (request.system for request in engine.model.requests)
        assert NOBODY_THERE in alone and UNATTENDED not in alone
        assert again == alone, "the prompt is steady"
        assert UNATTENDED in attended and NOBODY_THERE not in attended
        head, _, _ = alone.partition("# Permissions")
        assert attended.startswith(head), "what is cached stays the same"


async def test_19_that_nobody_watches_makes_no_other_run_of_it(tmp_path: Path) -> None:
    """Prompts are folded into it as into any other, and posting it again from a terminal is the same post (R14)."""
    async with running(tmp_path) as engine:
        gate = Gate()
        engine.model.answer(gate, *call())
        request = PostPrompt(session_id=engine.session_id, prompt="go", run_id="host", unattended=True)
        await within(engine.workspace.runs.post(request))
        await gate.reached()
        again = await within(engine.workspace.runs.post(msgspec.structs.replace(request, unattended=False)))
        assert again.run_id == "host"
        await engine.post("and this", "folded", "fold")
        gate.open()
        assert (await engine.ended("folded")).folded_into == "host"
