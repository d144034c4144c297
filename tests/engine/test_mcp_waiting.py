"""What MCP servers that never answer, or never stop, cost everybody else: nothing."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from covey.config.load import config_dir
from covey.config.schema import HookCommand, McpSettings
from covey.credentials.mcp_tokens import McpGrant, keep_grant
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
from tests.tools.test_mcp_http import Headers, Site, opening, respond, served
from tests.tools.test_mcp_http import result as answer

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


async def test_a_start_that_fails_for_a_reason_of_ours_is_failed_and_not_under_way_for_ever(tmp_path: Path) -> None:
    async with mcp_running(tmp_path, "normal") as found:
        await found.approve()
        server = found.server()
        server._apply(server._life.switched_off())
        await server._ended()
        trusted = config_dir(found.engine.shared.environ) / "trusted.toml"
        trusted.parent.mkdir(parents=True, exist_ok=True)
        trusted.write_text("directories = 3\n")
        [result] = await found.run(("mcp__h__echo", {}))
        assert result.is_error and "trusted.toml" in result.content
        assert found.view().state == "failed" and "trusted.toml" in (found.view().why or "")


class _Refusing:
    """An HTTP server that wants a login until somebody has logged in."""

    def __init__(self) -> None:
        self.token = "good"

    async def __call__(self, site: Site, message: dict[str, Any], headers: Headers, writer: Any) -> None:
        if headers.get("authorization") != f"Bearer {self.token}":
            respond(writer, "401 Unauthorized", WWW_Authenticate="Bearer")
        elif not await opening(message, writer):
            answer(writer, message, content=[{"type": "text", "text": "done"}])


async def test_m20_without_a_token_the_state_is_needs_login_and_a_login_is_enough(tmp_path: Path) -> None:
    refusing = _Refusing()
    async with served(refusing) as site, mcp_running(tmp_path, {}) as found:
        workspace = found.engine.workspace
        await workspace._extensions.mcp.pass_along("s", {"far": McpSettings(url=site.url)})
        await found.until(lambda: found.view("far").state == "needs_login")
        assert found.view("far").why == "it wants a login: covey mcp login far"
        grant = McpGrant(site.url, "i", "http://127.0.0.1:9/", "c", access_token="good", refresh_token="r")
        keep_grant(found.engine.shared.data_dir, grant)
        await workspace._extensions.reload()
        found.server("far").want()
        await found.approve("far")
        [result] = await found.run(("mcp__far__t", {}))
        assert "done" in result.content
        refusing.token = "another"  # the old one ends, and its issuer cannot be reached
        [result] = await found.run(("mcp__far__t", {}))
        assert result.is_error and "covey mcp login far" in result.content
        assert found.view("far").state == "needs_login"


def test_x11_the_bounds_of_a_call_are_what_is_written_down() -> None:
    entry = McpSettings(command="x")
    assert (entry.idle_timeout_s, entry.call_timeout_s) == (120, 600)
    assert (LINE_LIMIT, words.ITEMS_LIMIT, words.PAGES_LIMIT) == (8 * 1024 * 1024, 500, 20)
    assert (mcp.SERVERS_LIMIT, extensions.RESTARTS, extensions.WINDOW_S) == (20, 3, 600)
    assert (hook_host.AT_ONCE, HookCommand(command="x").timeout) == (8, 30)
