"""What crosses the wire of `covey mcp serve`, byte by byte: eras, refusals, bounds, leaving."""

from __future__ import annotations

import http.client
import json
import subprocess
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from covey.mcp_server.http import BODY_BYTES
from covey.mcp_server.stdio import LINE_BYTES
from tests.acp.looking import runs, state_of
from tests.cli.conftest import WAIT_S, Home, until
from tests.mcp_server.test_mcp_sdk import HttpServer

Json = dict[str, Any]
MODERN = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Agent:
    """Another agent on stdin and stdout."""

    def __init__(self, home: Home) -> None:
        command = home.command("mcp", "serve")
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, cwd=home.project, env=home.env, stdin=pipe, stdout=pipe)
        self._id = 0

    def send(self, message: Json) -> None:
        self.send_bytes(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def send_bytes(self, data: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def next(self) -> Json:
        assert self.process.stdout
        found: Json = json.loads(self.process.stdout.readline())
        return found

    def call(self, method: str, params: Json) -> Json:
        self._id += 1
        self.send({"id": self._id, "method": method, "params": params})
        while (answer := self.next()).get("id") != self._id:
            assert "method" in answer
        return answer

    def leave(self) -> int:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        code = self.process.wait(WAIT_S)
        self.process.stdout.close()
        return code


@pytest.fixture
def agent(home: Home) -> Iterator[Agent]:
    made = Agent(home)
    yield made
    made.process.kill()
    made.process.wait()
    for stream in (made.process.stdin, made.process.stdout):
        assert stream
        stream.close()


def test_both_eras_are_spoken_on_one_connection(agent: Agent) -> None:
    for asked, given in [("2025-06-18", "2025-06-18"), ("1999-01-01", "2025-11-25")]:
        params = {"protocolVersion": asked, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        assert agent.call("initialize", params)["result"]["protocolVersion"] == given
    assert agent.call("ping", {})["result"] == {}
    assert "resultType" not in agent.call("tools/list", {})["result"]
    found = agent.call("server/discover", {"_meta": META})["result"]
    assert (found["resultType"], found["supportedVersions"]) == ("complete", [MODERN])
    assert found["ttlMs"] == 0 and found["cacheScope"] == "private"
    assert agent.call("tools/list", {"_meta": META})["result"]["resultType"] == "complete"
    other = {**META, "io.modelcontextprotocol/protocolVersion": "2099-01-01"}
    refused = agent.call("tools/list", {"_meta": other})["error"]
    assert (refused["code"], refused["data"]["supported"]) == (-32022, [MODERN])
    assert agent.call("server/discover", {})["error"]["code"] == -32602
    assert agent.call("prompts/list", {"_meta": META})["error"]["code"] == -32601
    assert agent.call("resources/read", {"uri": "covey://sessions/x"})["error"]["code"] == -32002
    assert agent.call("resources/read", {"uri": "covey://sessions/x", "_meta": META})["error"]["code"] == -32602


def test_what_is_no_message_or_too_long_leaves_the_connection_alive(agent: Agent) -> None:
    agent.send_bytes(b"hello\n")
    assert agent.next()["error"]["code"] == -32700
    for _ in range(LINE_BYTES // 2**20 + 1):
        agent.send_bytes(b"y" * 2**20)
    agent.send_bytes(b"\n")
    assert agent.next()["error"]["code"] == -32600
    assert agent.call("tools/call", {"name": "fly"})["error"]["code"] == -32602
    assert agent.call("ping", {})["result"] == {}


def test_when_the_agent_leaves_what_it_began_goes_on(agent: Agent, home: Home) -> None:
    call = {"name": "prompt", "arguments": {"prompt": "answer without end"}}
    agent.send({"id": 1, "method": "tools/call", "params": call})
    until(lambda: state_of(home, "answer without end") == "active", "the run")
    assert agent.leave() == 0
    (run,) = runs(home)
    assert run.state == "active" and not run.is_being_cancelled
    assert home.covey("runs", "cancel", run.run_id).returncode == 0


# ── over HTTP ──


@pytest.fixture(scope="module")
def http_server(shared_home: Home) -> Iterator[HttpServer]:
    server = HttpServer(shared_home)
    yield server
    assert server.close() == 0


def post(
    server: HttpServer, body: Any, method: str = "POST", path: str = "/mcp", **headers: str
) -> tuple[int, Any, Any]:
    sent = {
        "Authorization": f"Bearer {server.token}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    where = urlsplit(server.url)
    connection = http.client.HTTPConnection(where.hostname or "", where.port or 0, timeout=WAIT_S)
    try:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection.request(method, path, data, {name: value for name, value in sent.items() if value})
        answer = connection.getresponse()
        raw = answer.read()
        return answer.status, json.loads(raw) if raw else None, answer.headers
    finally:
        connection.close()


def request(method: str, params: Json | None = None) -> Json:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}


def modern(method: str, params: Json | None = None, **headers: str) -> tuple[Json, dict[str, str]]:
    body = request(method, {**(params or {}), "_meta": META})
    return body, {"MCP_Protocol_Version": MODERN, "Mcp_Method": method, **headers}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": ""}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Host": "evil.example"}, 403),
        ({"Origin": "http://evil.example"}, 403),
    ],
)
def test_only_who_has_the_token_and_is_no_web_page_comes_in(
    http_server: HttpServer, headers: dict[str, str], status: int
) -> None:
    body, more = modern("server/discover")
    found, answer, _ = post(http_server, body, **more, **headers)
    assert found == status and answer["error"]["message"]


def test_it_listens_on_this_machine_alone(home: Home) -> None:
    done = home.covey("mcp", "serve", "--http", "0.0.0.0:0")
    assert done.returncode == 2 and "this machine" in done.stderr


def test_a_modern_request_repeats_itself_in_its_headers(http_server: HttpServer) -> None:
    body, headers = modern("tools/list")
    assert post(http_server, body, **headers)[0] == 200
    for wrong in ({"Mcp_Method": "ping"}, {"MCP_Protocol_Version": "2025-06-18"}, {"Mcp_Method": ""}):
        status, answer, _ = post(http_server, body, **{**headers, **wrong})
        assert (status, answer["error"]["code"]) == (400, -32020), wrong
    call, headers = modern("tools/call", {"name": "list_sessions"}, Mcp_Name="prompt")
    assert post(http_server, call, **headers)[1]["error"]["code"] == -32020
    assert post(http_server, call, **{**headers, "Mcp_Name": "list_sessions"})[0] == 200
    status, answer, _ = post(http_server, *modern("tools/fly")[:1], **modern("tools/fly")[1])
    assert (status, answer["error"]["code"]) == (404, -32601)


def test_a_caller_of_the_older_era_has_an_id(http_server: HttpServer) -> None:
    status, answer, headers = post(http_server, request("initialize", {"protocolVersion": "2025-06-18"}))
    assert status == 200 and answer["result"]["protocolVersion"] == "2025-06-18"
    known = {"Mcp_Session_Id": headers["mcp-session-id"], "MCP_Protocol_Version": "2025-06-18"}
    assert post(http_server, {"jsonrpc": "2.0", "method": "notifications/initialized"}, **known)[0] == 202
    assert post(http_server, request("tools/list"), **known)[0] == 200
    assert post(http_server, request("tools/list"))[0] == 400
    assert post(http_server, request("tools/list"), **{**known, "Mcp_Session_Id": "other"})[0] == 404
    assert post(http_server, request("tools/list"), **{**known, "MCP_Protocol_Version": "1999-01-01"})[0] == 400
    assert post(http_server, b"", "GET", **known)[0] == 405
    assert post(http_server, b"", "DELETE", **known)[0] == 200
    assert post(http_server, request("tools/list"), **known)[0] == 404


def test_what_cannot_be_taken_over_http_is_refused(http_server: HttpServer) -> None:
    assert post(http_server, b"{", MCP_Protocol_Version=MODERN)[0] == 400
    assert post(http_server, [request("ping")])[0] == 400
    assert post(http_server, {}, path="/other")[0] == 404
    assert post(http_server, b"x" * (BODY_BYTES + 1))[0] == 413
    body, headers = modern("server/discover")
    assert post(http_server, body, **headers)[0] == 200
