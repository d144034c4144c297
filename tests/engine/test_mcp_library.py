"""What MCP servers offer beside tools: prompts, which are commands, and resources; and whom they ask."""

from __future__ import annotations

from pathlib import Path

import pytest

from covey.protocol.custom import ExpandCommand
from covey.protocol.errors import Conflict, NotFound
from covey.protocol.requests import QuestionResponse
from covey.protocol.v1 import GetPrompt
from tests.support.engine import call, within
from tests.support.mcp import McpEngine, mcp_running

pytestmark = pytest.mark.anyio


async def expand(found: McpEngine, name: str, arguments: str = "") -> str:
    return (await within(found.engine.workspace.custom.expand(ExpandCommand(name=name, arguments=arguments)))).text


@pytest.mark.parametrize("mode", ["library", "legacy-library"])
async def test_a_prompt_is_a_command_with_its_arguments(tmp_path: Path, mode: str) -> None:
    async with mcp_running(tmp_path, mode) as found:
        await found.approve()
        commands = [each for each in await found.engine.workspace.custom.all() if each.kind == "mcp_prompt"]
        assert [(each.name, each.source, each.description, each.argument_hint) for each in commands] == [
            ("mcp__h__review", "h", "Look at a branch.", "<branch> [focus]")
        ]
        text = await expand(found, "/mcp__h__review", "main 'speed' and memory")
        assert '"branch": "main", "focus": "speed and memory"' in text
        assert "as in the note" in text and "(as the assistant) I will." in text
        assert "\u202e" not in text and text.count("</from-mcp") == 1, "it cannot end its own mark"
        with pytest.raises(Conflict, match="The MCP server h failed"):
            await expand(found, "mcp__h__review")
        with pytest.raises(NotFound):
            await expand(found, "mcp__h__other")
        [prompt] = found.engine.workspace.extensions.v1_prompts()
        assert (prompt.client_id, prompt.prompt_id) == ("h", "review")
        given = GetPrompt(client_id="h", prompt_id="review", args={"branch": "dev"})
        assert '"branch": "dev"' in (await within(found.engine.workspace.extensions.v1_prompt(given))).prompt


async def test_resources_are_listed_and_read_by_the_model_as_the_servers_words(tmp_path: Path) -> None:
    async with mcp_running(tmp_path, "library") as found:
        await found.approve()
        assert found.view().resources == 1
        listed, read, missing, unknown = await found.run(
            ("mcp_resources", {"server": "h"}),
            ("mcp_resources", {"server": "h", "uri": "note://1"}),
            ("mcp_resources", {"server": "h", "uri": "file:///etc/passwd"}),
            ("mcp_resources", {"server": "nobody"}),
        )
        assert "note://1  first  A note." in listed.content and "from-mcp" in listed.content
        assert "remember the milk" in read.content and "from-mcp" in read.content
        assert missing.is_error and "The MCP server h failed" in missing.content
        assert unknown.is_error and "There are: h." in unknown.content
        contents = await within(found.engine.workspace.extensions.read_resource("h", "note://1"))
        assert contents[0]["text"] == "remember the milk"


async def test_m19_what_a_server_asks_an_agent_is_asked_in_the_session_that_sent_the_agent(tmp_path: Path) -> None:
    async with mcp_running(tmp_path, "elicit") as found:
        await found.approve()
        found.model.answer(*call("agent", "send", prompt="ask it", writes=True))
        found.model.answer(*call("mcp__h__echo", "c1"))
        found.model.answer("it was blue")
        await found.engine.workspace.asks.set_skip(True)
        receipt = await found.engine.post("go")
        await found.until(lambda: found.engine.workspace.asks.questions())
        [batch] = found.engine.workspace.asks.questions()
        assert (batch.session_id, batch.run_id) == (found.engine.session_id, receipt.run_id)
        [child] = [session for session in found.engine.sessions() if session.parent_session_id]
        count, color = batch.questions
        answers = [
            QuestionResponse(request_id=count.id, fill_in_text="3"),
            QuestionResponse(request_id=color.id, selected_ids=("2",)),
        ]
        assert found.engine.workspace.asks.answer(batch.id, answers)
        await found.engine.ended(receipt.run_id)
        results = [result for message in found.engine.messages() for result in message.tool_results]
        assert [result.content for result in results] == ["it was blue"]
        said = [
            result for message in found.engine.store.messages("w", child.id, "", 0) for result in message.tool_results
        ]
        assert '"color": "blue"' in said[0].content
