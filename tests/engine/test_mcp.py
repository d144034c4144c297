"""MCP servers in a workspace: starting, tools, calls, and every way in which a server may misbehave."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from covey.config.schema import McpSettings
from covey.engine.extensions import mcp_server
from covey.protocol.extensions import McpEvent
from covey.protocol.requests import QuestionResponse
from covey.tools import owned_process, process_table
from covey.tools.base import ToolOutput
from covey.tools.mcp import client as mcp_client
from covey.tools.mcp.stdio import StdioTransport
from tests.support.engine import Model, call, config, running, within
from tests.support.mcp import TAG, McpEngine, hostile, mcp_running

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owned_process, "GRACE_S", 0.3)
    monkeypatch.setattr(mcp_client, "SILENCE_S", 0.3)


def methods(found: McpEngine, name: str = "h") -> list[str]:
    return [message.get("method", "answer") for message in found.messages(name)]


# ── what a server says ──


async def test_m3_text_that_is_no_message_is_skipped_and_counted(tmp_path: Path) -> None:
    async with mcp_running(tmp_path, "noise") as found:
        await found.approve()
        assert "noise: a" in (await found.run(("mcp__h__echo", {"text": "a"})))[0].content
        running = found.server()._running
        assert running and isinstance(running.client.transport, StdioTransport)
        assert running.client.transport.skipped == 3, "two lines at its start, and one in the call"


async def test_m4_one_bad_tool_is_left_out_with_a_reason_and_the_others_work(tmp_path: Path) -> None:
    async with mcp_running(tmp_path, "bad-schema") as found:
        await found.approve()
        assert found.tools == ["mcp__h__echo"]
        left = found.view().left_out
        assert [line.partition(":")[0] for line in left] == ["wrong", "ab", "no-schema"]


@pytest.mark.parametrize(("mode", "tools"), [("endless-pages", 20), ("same-cursor", 1), ("many-tools", 500)])
async def test_m5_a_list_that_does_not_stop_ends_at_its_bounds(tmp_path: Path, mode: str, tools: int) -> None:
    async with mcp_running(tmp_path, mode) as found:
        await found.approve()
        assert len(found.view().tools) == tools and found.view().left_out


async def test_m6_a_burst_of_changes_is_looked_at_once(tmp_path: Path) -> None:
    async with mcp_running(tmp_path, "legacy-burst") as found:
        await found.known()
        await found.until(lambda: methods(found).count("tools/list") > 1)
        await asyncio.sleep(3 * mcp_server.BURST_S)
        assert methods(found).count("tools/list") == 2
        assert found.view().withheld == ("t0", "t1")


async def test_m6_when_another_look_fails_the_old_list_stays(tmp_path: Path) -> None:
    async with mcp_running(tmp_path, "legacy-fickle") as found:
        await found.known()
        running = found.server()._running
        assert running
        await found.until(lambda: running.relisting and running.relisting.done())
        assert methods(found).count("tools/list") == 2 and found.view().withheld == ("echo",)
        await found.approve()
        assert found.tools == ["mcp__h__echo"] and found.starts() == 1


async def test_m7_tools_that_come_during_a_run_are_in_the_next_step_and_the_system_prompt_stays(tmp_path: Path) -> None:
    async with mcp_running(tmp_path, "normal") as found:
        await found.known()
        found.engine.tool.act = _approving(found)
        found.engine.workspace._parts.agent.tools["work"] = found.engine.tool.value
        found.model.answer(*call("work"))
        found.model.answer(*call("mcp__h__echo", "c2"))
        await found.engine.workspace.asks.set_skip(True)
        await found.engine.ended((await found.engine.post("go")).run_id)
        first, second, third = found.model.requests
        assert "mcp__h__echo" not in [tool.name for tool in first.tools]
        assert [tool.name for tool in second.tools] == [*(tool.name for tool in first.tools), "mcp__h__echo"]
        assert first.system == second.system == third.system


def _approving(found: McpEngine) -> Any:
    async def act() -> ToolOutput:
        await found.approve()
        return ToolOutput("approved")

    return act


# ── cancelling, ending ──


async def test_m8_a_cancelled_call_tells_the_server_and_waits_for_nothing(tmp_path: Path) -> None:
    async with mcp_running(tmp_path, "hang") as found:
        await found.approve()
        await found.engine.workspace.asks.set_skip(True)
        found.model.answer(*call("mcp__h__echo"))
        receipt = await found.engine.post("go")
        await found.until(lambda: "tools/call" in methods(found))
        await found.engine.cancel()
        assert (await found.engine.ended(receipt.run_id)).state == "cancelled"
        await found.until(lambda: "notifications/cancelled" in methods(found))
        sent = {message.get("method"): message for message in found.messages()}
        assert sent["notifications/cancelled"]["params"]["requestId"] == sent["tools/call"]["id"]
        assert found.view().state == "ready" and found.starts() == 1


async def test_m8_an_answer_that_comes_late_is_dropped(tmp_path: Path) -> None:
    async with mcp_running(tmp_path, "late") as found:
        await found.approve()
        await found.engine.workspace.asks.set_skip(True)
        found.model.answer(*call("mcp__h__echo"))
        receipt = await found.engine.post("go")
        await found.until(lambda: "tools/call" in methods(found))
        await found.engine.cancel()
        await found.engine.ended(receipt.run_id)
        [result] = await found.run(("mcp__h__echo", {"text": "again"}))
        assert "late: again" in result.content and "too late" not in result.content and found.starts() == 1


async def test_m9_m13_a_prompt_that_is_cancelled_during_the_start_ends_at_once_and_the_start_goes_on(
    tmp_path: Path,
) -> None:
    async with mcp_running(tmp_path, "normal") as found:
        await found.approve()
        server = found.server()
        server._apply(server._life.switched_off())
        await server._ended()
        server.settings = hostile("silent", tmp_path / "logs" / "h")
        await found.engine.workspace.asks.set_skip(True)
        found.model.answer(*call("mcp__h__echo"))
        receipt = await found.engine.post("go")
        await found.until(lambda: server.view().state == "starting")
        run = await found.engine.workspace.runs.get(receipt.run_id)
        assert run.waiting_on == "tool:mcp__h__echo", "it is seen what is waited for"
        await found.engine.cancel()
        assert (await found.engine.ended(receipt.run_id)).state == "cancelled"
        assert server.view().state == "starting"


@pytest.mark.parametrize("mode", ["normal", "family", "stubborn"])
async def test_m10_closing_the_workspace_leaves_no_process(tmp_path: Path, mode: str) -> None:
    async with mcp_running(tmp_path, mode) as found:
        await found.approve()
        await asyncio.to_thread(found.processes)
        assert found.processes() == (1 if mode == "normal" else 2)
        await found.engine.close()
        assert not found.processes()


async def test_m10_an_entry_that_is_removed_or_edited_ends_its_processes(tmp_path: Path) -> None:
    async with mcp_running(tmp_path, {"a": "family", "b": "normal"}) as found:
        await found.approve("a", "b")
        agent = found.engine.workspace._parts.agent
        servers = dict(agent.config.mcp)
        changed = {"b": hostile("normal", tmp_path / "logs" / "other")}
        old = {process.pid for process in process_table.tagged(TAG)}
        assert len(old) == 3
        object.__setattr__(agent, "config", type(agent.config)(**{**_fields(agent.config), "mcp": changed}))
        await found.engine.workspace._extensions.reload()
        await found.until(lambda: old.isdisjoint(process.pid for process in process_table.tagged(TAG)))
        assert [view.name for view in found.engine.workspace._extensions.mcp.views()] == ["b"]
        assert servers.keys() == {"a", "b"}


def _fields(config: Any) -> dict[str, Any]:
    return {name: getattr(config, name) for name in config.__struct_fields__}


@pytest.mark.parametrize("moment", range(6))
async def test_closing_at_every_moment_of_a_start_leaves_no_process(tmp_path: Path, moment: int) -> None:
    async with mcp_running(tmp_path, "family") as found:
        for _ in range(moment * moment * moment):
            await asyncio.sleep(0.001)
        await found.engine.close()
        assert not found.processes()


@pytest.mark.parametrize("mode", ["hang", "crash", "family"])
async def test_closing_in_the_middle_of_a_call_leaves_no_process(tmp_path: Path, mode: str) -> None:
    async with mcp_running(tmp_path, mode) as found:
        await found.approve()
        await found.engine.workspace.asks.set_skip(True)
        found.model.answer(*call("mcp__h__echo"))
        await found.engine.post("go")
        await found.until(lambda: "tools/call" in methods(found))
        await found.engine.close()
        assert not found.processes()


# ── sharing ──


async def test_m12_sessions_and_agents_share_one_server(tmp_path: Path) -> None:
    async with mcp_running(tmp_path, "normal") as found:
        await found.approve()
        await found.run(("mcp__h__echo", {}))
        found.engine.session_id = (await found.engine.workspace.sessions.create("")).id
        await found.run(("mcp__h__echo", {}))
        assert found.starts() == 1 and methods(found).count("tools/call") == 2
        for number in range(3):
            found.model.answer(*call("agent", f"a{number}", prompt=f"look {number}", writes=True))
            found.model.answer(*call("mcp__h__echo", f"c{number}"))
            found.model.answer("seen")
        await found.engine.ended((await found.engine.post("send three")).run_id)
        assert len([each for each in found.engine.sessions() if each.parent_session_id]) == 3
        assert found.starts() == 1 and methods(found).count("tools/call") == 5


async def test_m12_two_workspaces_have_a_process_each_and_the_death_of_one_is_not_the_others(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    async with mcp_running(tmp_path / "one", "normal") as two:
        await two.approve()
        await two.run(("mcp__h__echo", {}))  # its model is connected to, before the other workspace has one
        async with mcp_running(tmp_path / "two", "crash") as one:
            await one.approve()
            assert one.server().pid != two.server().pid
            [crashed] = await one.run(("mcp__h__echo", {}))
            assert crashed.is_error and one.view().state == "failed"
            [fine] = await two.run(("mcp__h__echo", {"text": "here"}))
            assert "normal: here" in fine.content and two.starts() == 1
            await two.engine.close()  # both are looked for by the same tag at the end


async def test_m14_servers_start_side_by_side_and_one_failure_leaves_the_others(tmp_path: Path) -> None:
    modes = {"a": "normal", "b": "dies", "c": "legacy", "d": "silent"}
    async with mcp_running(tmp_path, modes) as found:
        await found.known("a", "b", "c")
        assert found.view("d").state == "starting", "nobody has waited for it"
        assert found.view("b").state == "failed" and "ImportError" in (found.view("b").why or "")
        await found.approve("a", "c")
        assert found.tools == ["mcp__a__echo", "mcp__c__echo"]


@pytest.mark.parametrize("program", ["/nonexistent/prog", "./gone", "no-such-program"])
async def test_a_program_that_is_not_there_is_said_so_with_what_to_do(tmp_path: Path, program: str) -> None:
    servers = {"h": McpSettings(command=program)}
    settings = msgspec.structs.replace(config(), mcp=servers)
    (tmp_path / "project").mkdir()
    async with running(tmp_path, settings=settings, project=tmp_path / "project", model=Model()) as engine:
        found = McpEngine(engine, Model(), tmp_path)
        await found.known("h")
        why = found.view("h").why or ""
        assert why.startswith("there is no program '") and program.removeprefix(".") in why
        assert why.endswith("correct its `command`, or install it") and "Errno" not in why


async def test_m15_a_crash_is_an_error_with_the_last_words_and_others_do_not_notice(tmp_path: Path) -> None:
    async with mcp_running(tmp_path, {"a": "crash", "b": "normal"}) as found:
        await found.approve("a", "b")
        crashing = [("mcp__a__echo", {"text": str(number)}) for number in range(5)]
        results = await found.run(*crashing, ("mcp__b__echo", {"text": "fine"}))
        assert all("Traceback: the reason" in result.content and result.is_error for result in results[:4])
        assert "started again 3 times" in results[4].content and found.starts("a") == 4
        assert "normal: fine" in results[5].content and found.starts("b") == 1
        assert found.tools == ["mcp__a__echo", "mcp__b__echo"], "what failed keeps its tools"


# ── results ──


async def test_m17_a_long_result_is_cut_and_kept_a_large_picture_is_a_sentence_and_structure_is_shown(
    tmp_path: Path,
) -> None:
    modes = {"big": "big", "pic": "picture", "struct": "structured"}
    async with mcp_running(tmp_path, modes) as found:
        await found.approve(*modes)
        big, picture, structured = await found.run(*((f"mcp__{name}__echo", {}) for name in modes))
        assert len(big.content) < 40_000 and "begin" in big.content and "end" in big.content
        assert "characters are left out" in big.content
        [kept] = re.findall(r" in (/\S+): view", big.content)
        assert Path(kept).read_text().count("x") == 100_000
        assert "too large" in picture.content and not picture.data
        assert '"answer": 42' in structured.content


async def test_m18_progress_extends_the_silence_and_not_the_whole(tmp_path: Path) -> None:
    modes = {"p": "progress", "f": "forever"}
    async with mcp_running(tmp_path, modes, idle_timeout_s=0.15, call_timeout_s=1.0) as found:
        await found.approve(*modes)
        good, late = await found.run(("mcp__p__echo", {}), ("mcp__f__echo", {}))
        assert "done" in good.content and "took longer than 1 s in all" in late.content


async def test_x11_a_silent_call_ends_at_its_bound_which_is_named(tmp_path: Path) -> None:
    async with mcp_running(tmp_path, "hang", idle_timeout_s=0.1) as found:
        await found.approve()
        [result] = await found.run(("mcp__h__echo", {}))
        assert result.is_error and "longer than 0.1 s without a sign" in result.content
        assert found.view().state == "ready"


# ── questions ──


@pytest.mark.parametrize("mode", ["elicit", "legacy-elicit"])
async def test_m19_a_server_that_asks_back_has_a_person_asked(tmp_path: Path, mode: str) -> None:
    async with mcp_running(tmp_path, mode) as found:
        await found.approve()
        running = asyncio.create_task(found.run(("mcp__h__echo", {})))
        await found.until(lambda: found.engine.workspace.asks.questions())
        [batch] = found.engine.workspace.asks.questions()
        assert "The MCP server h asks: Which one?" in batch.questions[0].question
        count, color = batch.questions
        answers = [
            QuestionResponse(request_id=count.id, fill_in_text="3"),
            QuestionResponse(request_id=color.id, selected_ids=("2",)),
        ]
        assert found.engine.workspace.asks.answer(batch.id, answers)
        [result] = await within(running)
        said = json.loads(result.content.split("\n")[1])
        given = {"action": "accept", "content": {"count": 3, "color": "blue"}}
        if mode == "elicit":
            assert said == {"answers": {"q": given}, "state": "state-1"}
            numbers = [message["id"] for message in found.messages() if message.get("method") == "tools/call"]
            assert len(set(numbers)) == 2, "the retry has an id of its own"
        else:
            assert said == given


async def test_m19_a_cancel_closes_the_question(tmp_path: Path) -> None:
    async with mcp_running(tmp_path, "elicit") as found:
        await found.approve()
        await found.engine.workspace.asks.set_skip(True)
        found.model.answer(*call("mcp__h__echo"))
        receipt = await found.engine.post("go")
        await found.until(lambda: found.engine.workspace.asks.questions())
        await found.engine.cancel()
        await found.engine.ended(receipt.run_id)
        assert not found.engine.workspace.asks.questions()


async def test_states_are_told_as_events(tmp_path: Path) -> None:
    async with mcp_running(tmp_path, "normal") as found:
        seen: list[McpEvent] = []
        object.__setattr__(found.server()._parts, "announce", seen.append)
        await found.approve()
        await found.engine.close()
        assert [event.state for event in seen if event.type == "state_changed"][-1] == "disabled"
        assert any(event.type == "tools_list_changed" and event.tool_count == 1 for event in seen)
