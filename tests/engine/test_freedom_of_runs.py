"""What the model reads about its permissions: the mode of the session, and that of the moment."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from covey.context.freedom import NOBODY_THERE, UNATTENDED
from covey.models.base import ModelFailed
from covey.protocol.errors import Conflict
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
        assert "For file changes" in first and "`bash:danger*`" in first
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


async def test_24_where_its_author_is_goes_with_each_prompt_and_leaves_the_system_prompt_alone(tmp_path: Path) -> None:
    """It is no option that keeps prompts apart: they are folded as ever. With another one it is another post (R14)."""
    async with running(tmp_path) as engine:
        gate = Gate()
        engine.model.answer(gate, *call())
        request = PostPrompt(session_id=engine.session_id, prompt="fix it here", run_id="host", cwd="src")
        await within(engine.workspace.runs.post(request))
        await gate.reached()
        with pytest.raises(Conflict):
            await within(engine.workspace.runs.post(msgspec.structs.replace(request, cwd="lib")))
        folded = msgspec.structs.replace(request, run_id="folded", prompt="and here", mode="fold", cwd="lib")
        await within(engine.workspace.runs.post(folded))
        gate.open()
        assert (await engine.ended("folded")).folded_into == "host"
        first, second = engine.model.requests
        asked = [message for message in second.messages if message.role == "user"]
        assert [message.text.partition(" of the")[0] for message in asked] == [
            "fix it here\n\n(I am in 'src'",
            "and here\n\n(I am in 'lib'",
        ]
        assert first.system == second.system


async def test_24_a_summary_in_the_middle_of_a_turn_keeps_where_its_author_is(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        await engine.post("before", "b")
        await engine.ended("b")
        engine.model.answer(ModelFailed("test: too long", overflow=True))
        engine.model.answer("Something was said.")
        request = PostPrompt(session_id=engine.session_id, prompt="fix it here", run_id="a", cwd="src")
        await within(engine.workspace.runs.post(request))
        await engine.ended("a")
        assert "fix it here\n\n(I am in 'src'" in engine.model.requests[-1].messages[0].text
