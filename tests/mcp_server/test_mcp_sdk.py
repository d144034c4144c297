"""The official SDK's client against `covey mcp serve`: in both eras, on stdin and over HTTP."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from tests.acp.looking import state_of
from tests.cli.conftest import Home, read_until, until

MODES = ["legacy", "auto"]
TOOLS = ["prompt", "wait", "cancel", "answer", "list_sessions", "read_session"]


def on_stdio(home: Home, mode: str) -> Client:
    _, *args = home.command("mcp", "serve")
    server = StdioServerParameters(command=home.command()[0], args=args, env=home.env, cwd=str(home.project))
    return Client(server, mode=mode)


def facts(result: Any) -> dict[str, Any]:
    found: dict[str, Any] = result.structured_content
    return found


@pytest.mark.anyio
@pytest.mark.parametrize("mode", MODES)
async def test_a_task_is_given_asked_about_and_done(home: Home, mode: str) -> None:
    told: list[tuple[float, str | None]] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, message))

    async with on_stdio(home, mode) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == TOOLS
        asked = await client.call_tool("prompt", {"prompt": "make a file"}, progress_callback=on_progress)
        run = facts(asked)
        assert run["state"] == "waiting"
        (ask,) = run["asks"]
        assert ask["kind"] == "permission" and ask["params"]["command"] == "touch made"
        answered = await client.call_tool("answer", {"ask_id": ask["ask_id"], "action": "allow"})
        assert facts(answered)["counted"] is True
        done = await client.call_tool("wait", {"run_id": run["run_id"]}, progress_callback=on_progress)
        assert facts(done)["state"] == "completed" and facts(done)["text"].endswith("Done.")
        assert (home.project / "made").exists()
        assert told[:2] == [(1, "answering"), (2, "running: $ touch made")]
        assert "done" in str(told[2:]), told
        listed = await client.call_tool("list_sessions", {})
        assert [each["session_id"] for each in facts(listed)["sessions"]] == [run["session_id"]]
        read = await client.call_tool("read_session", {"session_id": run["session_id"]})
        assert "make a file" in read.content[0].text and "touch made" in read.content[0].text  # type: ignore[union-attr]
        (resource,) = (await client.list_resources()).resources
        whole = await client.read_resource(resource.uri)
        assert "Done." in whole.contents[0].text  # type: ignore[union-attr]


@pytest.mark.anyio
async def test_a_server_that_has_left_meanwhile_is_started_again(own_home: Home) -> None:
    """As one does that was started for somebody, and that nobody has needed for a minute."""
    async with on_stdio(own_home, "auto") as client:
        first = facts(await client.call_tool("prompt", {"prompt": "one"}))
        assert own_home.covey("stop").returncode == 0
        await asyncio.to_thread(until, lambda: "No server" in own_home.covey("stop").stdout, "the end of the server")
        second = await client.call_tool("prompt", {"prompt": "two", "session_id": first["session_id"]})
        assert facts(second)["text"] == "You said: two"
        read = await client.call_tool("read_session", {"session_id": first["session_id"]})
        assert "You said: one" in read.content[0].text  # type: ignore[union-attr]


@pytest.mark.anyio
async def test_questions_are_answered_and_wrong_calls_are_explained(home: Home) -> None:
    async with on_stdio(home, "auto") as client:
        asked = facts(await client.call_tool("prompt", {"prompt": "ask me"}))
        (ask,) = asked["asks"]
        yes, which, why = ask["questions"]
        answers = [
            {"question_id": yes["id"], "yes": True},
            {"question_id": which["id"], "choice_ids": [which["choices"][1]["id"]]},
            {"question_id": why["id"], "text": "because"},
        ]
        await client.call_tool("answer", {"ask_id": ask["ask_id"], "answers": answers})
        assert facts(await client.call_tool("wait", {"run_id": asked["run_id"]}))["text"] == "Thank you."
        late = await client.call_tool("answer", {"ask_id": ask["ask_id"], "answers": answers})
        assert late.is_error or facts(late)["counted"] is False
        wrong: list[tuple[str, dict[str, Any]]] = [
            ("prompt", {}),
            ("prompt", {"prompt": "x", "volume": 11}),
            ("prompt", {"prompt": "x", "cwd": "/does/not/exist"}),
            ("wait", {"run_id": "nobody"}),
            ("read_session", {"session_id": "nobody"}),
        ]
        for name, arguments in wrong:
            assert (await client.call_tool(name, arguments)).is_error, name
        before = home.sessions()
        assert (await client.call_tool("prompt", {"prompt": "x", "model": "no/such"})).is_error
        assert home.sessions() == before, "a refused prompt leaves no session"
        failed = await client.call_tool("prompt", {"prompt": "fail"})
        assert failed.is_error and "the model broke" in facts(failed)["error"]


@pytest.mark.anyio
async def test_a_call_that_is_taken_back_cancels_what_it_posted_and_nothing_else(home: Home) -> None:
    async with on_stdio(home, "auto") as client:
        other = facts(await client.call_tool("prompt", {"prompt": "hang here", "wait_s": 0}))
        assert other["state"] == "running"
        calling = asyncio.create_task(client.call_tool("prompt", {"prompt": "hang there"}))
        await asyncio.to_thread(until, lambda: state_of(home, "hang there") == "active", "the run")
        calling.cancel()
        await asyncio.wait({calling})
        await asyncio.to_thread(until, lambda: state_of(home, "hang there") == "cancelled", "the end of the run")
        assert await asyncio.to_thread(state_of, home, "hang here") == "active"
        waiting = asyncio.create_task(client.call_tool("wait", {"run_id": other["run_id"]}))
        await client.call_tool("list_sessions", {})
        waiting.cancel()
        await asyncio.wait({waiting})
        assert facts(await client.call_tool("cancel", {"run_id": other["run_id"]}))["state"] == "cancelled"


class HttpServer:
    def __init__(self, home: Home) -> None:
        self.process = subprocess.Popen(
            home.command("mcp", "serve", "--http", "127.0.0.1:0"),
            cwd=home.project,
            env=home.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.url = read_until(self.process, b"\n").decode().split()[-1]
        self.token = (home.data_dir / "token").read_text().strip()

    def close(self) -> int:
        self.process.terminate()
        self.process.communicate(timeout=30)
        return self.process.returncode


@pytest.fixture
def http(home: Home) -> Iterator[HttpServer]:
    server = HttpServer(home)
    yield server
    assert server.close() == 0


@asynccontextmanager
async def on_http(http: HttpServer, mode: str) -> Any:
    headers = {"Authorization": f"Bearer {http.token}"}
    async with (
        create_mcp_http_client(headers=headers) as wire,
        Client(streamable_http_client(http.url, http_client=wire), mode=mode) as client,
    ):
        yield client


@pytest.mark.anyio
@pytest.mark.parametrize("mode", MODES)
async def test_over_http_it_is_the_same(home: Home, http: HttpServer, mode: str) -> None:
    told: list[str | None] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        told.append(message)

    async with on_http(http, mode) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == TOOLS
        done = await client.call_tool("prompt", {"prompt": "plan it"}, progress_callback=on_progress)
        assert facts(done)["text"] == "That is the plan."
        assert "done: todos (2 items)" in told
        calling = asyncio.create_task(client.call_tool("prompt", {"prompt": "hang on"}))
        await asyncio.to_thread(until, lambda: state_of(home, "hang on") == "active", "the run")
        calling.cancel()
        await asyncio.wait({calling})
        await asyncio.to_thread(until, lambda: state_of(home, "hang on") == "cancelled", "the end of the run")
