"""What MCP servers that never answer, or never stop, cost everybody else: nothing."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from covey.config.schema import HookCommand, McpSettings
from covey.engine.extensions import hook_host, mcp, mcp_server
from covey.lifecycle import extensions
from covey.tools import owned_process
from covey.tools.mcp import client as mcp_client
from covey.tools.mcp import words
from covey.tools.mcp.stdio import StdioTransport
from covey.tools.mcp.words import LINE_LIMIT
from covey.tools.processes import LocalProcesses
from tests.support.engine import Gate, within
from tests.support.mcp import mcp_running

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owned_process, "GRACE_S", 0.3)
    monkeypatch.setattr(mcp_client, "SILENCE_S", 0.3)


async def until_the_request(directory: Path, silent: dict[str, str]) -> tuple[list[str], list[str]]:
    """All that is recorded of a run, and for what it is said to wait when the model has been asked."""
    directory.mkdir()
    async with mcp_running(directory, silent) as found:
        gate = Gate()
        found.model.answer(gate, "done")
        receipt = await found.engine.post("hello")
        await gate.reached()
        ready = [await found.engine.workspace.runs.get(receipt.run_id)]
        assert {found.view(name).state for name in silent} <= {"starting"}, "they still have not said a word"
        assert [tool.name for tool in found.model.requests[0].tools if tool.name.startswith("mcp")] == []
        gate.open()
        await found.engine.ended(receipt.run_id)
        told = [event.payload for event in found.engine.log()]
    kinds = [type(payload).__name__ for payload in told]
    return kinds, [run.waiting_on or "" for run in ready]


async def test_m13_five_servers_that_never_answer_delay_the_request_by_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What happens before the model is called is counted: it is what happens with none, and no server is waited for."""
    waits: list[str] = []
    ready = mcp_server.McpServer.ready

    async def counted(server: mcp_server.McpServer) -> Any:
        waits.append(server.name)
        return await ready(server)

    monkeypatch.setattr(mcp_server.McpServer, "ready", counted)
    none = await until_the_request(tmp_path / "none", {})
    five = await until_the_request(tmp_path / "five", {f"s{number}": "silent" for number in range(5)})
    assert five == none and five[0] and not waits


async def test_m13_with_pins_the_tools_are_there_and_no_process_is_started_before_a_call(tmp_path: Path) -> None:
    names = {f"s{number}": "normal" for number in range(5)}
    async with mcp_running(tmp_path, names) as found:
        await found.approve(*names)
    async with mcp_running(tmp_path, names) as found:
        assert not (await found.run())
        told = [tool.name for tool in found.model.requests[0].tools if tool.name.startswith("mcp__")]
        assert told == [f"mcp__{name}__echo" for name in names]
        assert {found.view(name).state for name in names} == {"off"} and not found.processes()
        [result] = await found.run(("mcp__s3__echo", {"text": "only this one"}))
        assert "only this one" in result.content
        assert {name: found.view(name).state for name in names} == {**dict.fromkeys(names, "off"), "s3": "ready"}


@pytest.mark.parametrize("mode", ["long-line", "endless-line"])
async def test_m16_a_line_without_an_end_ends_the_server_and_nobody_else_waits(tmp_path: Path, mode: str) -> None:
    async with mcp_running(tmp_path, mode) as found:
        await found.known()
        if mode == "long-line":
            await found.approve()
            [result] = await found.run(("mcp__h__echo", {}))
            assert "8 MiB" in result.content
        await found.until(lambda: found.view().state == "failed")
        assert "8 MiB" in (found.view().why or "")


async def test_m16_whoever_else_has_work_gets_a_turn_after_each_piece_of_a_long_line(tmp_path: Path) -> None:
    """The loop cannot stall for long: of eight megabytes it handles 64 KiB at a time, and looks at each byte once."""
    code = "import sys; sys.stdout.write('x' * (9 * 1024 * 1024)); sys.stdout.flush(); sys.stdin.read()"
    child = LocalProcesses().open(
        [sys.executable, "-S", "-c", code],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"]},
        tag=f"covey-m16-{os.getpid()}",
    )
    pieces: list[int] = []
    turns = 0
    read = child.read

    async def noted() -> bytes:
        data = await read()
        pieces.append(len(data))
        return data

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    child.read = noted  # type: ignore[method-assign]
    transport, ended = StdioTransport(child), asyncio.get_running_loop().create_future()
    working = asyncio.create_task(others())
    transport.start(lambda message: None, ended.set_result)
    why = await within(ended)
    working.cancel()
    await transport.close()
    assert "8 MiB" in str(why) and max(pieces) <= 65536
    assert turns >= len(pieces) >= LINE_LIMIT // 65536


async def test_x11_a_start_ends_at_its_bound_which_is_named_and_nothing_is_left(tmp_path: Path) -> None:
    assert McpSettings(command="x").start_timeout_s == 30
    async with mcp_running(tmp_path, {"a": "silent"}, start_timeout_s=0.5) as found:
        await found.until(lambda: found.view("a").state == "failed")
        assert "did not answer within 0.5 s" in (found.view("a").why or "")
        await found.until(lambda: not found.processes())


def test_x11_the_bounds_of_a_call_are_what_is_written_down() -> None:
    entry = McpSettings(command="x")
    assert (entry.idle_timeout_s, entry.call_timeout_s) == (120, 600)
    assert (LINE_LIMIT, words.ITEMS_LIMIT, words.PAGES_LIMIT) == (8 * 1024 * 1024, 500, 20)
    assert (mcp.SERVERS_LIMIT, extensions.RESTARTS, extensions.WINDOW_S) == (20, 3, 600)
    assert (hook_host.AT_ONCE, HookCommand(command="x").timeout) == (8, 30)
