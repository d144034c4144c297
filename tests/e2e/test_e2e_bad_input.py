"""Requests that are wrong: each is refused with {message, code}, nothing of it is recorded, and the server is well."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.support import oracle
from tests.support.fake_model import FakeModel
from tests.support.server import Answer, Server, Workspace, outline, provider_config, running, text_of

MIB = 1024 * 1024


@dataclass
class Place:
    """A server with one session, shared by the tests of this file: none of them may change anything."""

    server: Server
    workspace: Workspace
    session: str

    def filled(self, template: Any) -> Any:
        """A path or body in which W, S and so on stand for what is there."""
        text = json.dumps(template)
        for name, value in (("{W}", self.workspace.path), ("{session}", self.session), ("{uuid}", str(uuid.uuid4()))):
            text = text.replace(name, value)
        return json.loads(text)

    def state(self) -> list[oracle.Record]:
        return oracle.read(self.server.data_dir)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with FakeModel() as model, running(tmp_path_factory.mktemp("bad_input"), provider_config(model.url)) as server:
        workspace = server.workspace()
        session = workspace.session("the only one")
        workspace.prompt(session, "hello", run_id="done")
        workspace.ended("done")
        workspace.stream()
        yield Place(server, workspace, session)
        workspace.close()


@pytest.fixture
def place(shared: Place) -> Iterator[Place]:
    """Whatever the test does: afterwards nothing is recorded, and the server is well."""
    before = shared.state()
    yield shared
    assert shared.state() == before
    assert shared.server.request("GET", "/v1/health").ok() == {"status": "ok"}
    assert shared.workspace.run("done")["state"] == "completed"
    assert shared.server.open_runs("accepted") == 0


AGENT = "{W}/agent"
S = "{W}/agent/sessions/{session}"
PROMPT: dict[str, Any] = {"session_id": "{session}", "prompt": "hello"}
CREATE: dict[str, Any] = {"path": "/", "client_id": "{uuid}"}
ATTACHMENT = {"file_path": "a", "file_name": "a", "mime_type": "image/png", "content": "AAAA"}

REFUSED: list[tuple[str, str, Any, int, str]] = [
    ("POST", AGENT, {}, 400, "invalid_request"),
    ("POST", AGENT, {"session_id": "{session}"}, 400, "empty_prompt"),
    ("POST", AGENT, {**PROMPT, "prompt": " \n\t "}, 400, "empty_prompt"),
    ("POST", AGENT, {**PROMPT, "cwd": "/etc"}, 400, "invalid_request"),
    ("POST", AGENT, {**PROMPT, "cwd": "src/../.."}, 400, "invalid_request"),
    ("POST", AGENT, {**PROMPT, "cwd": "a\0b"}, 400, "invalid_request"),
    ("POST", AGENT, {**PROMPT, "cwd": "a" * 4097}, 400, "invalid_request"),
    ("POST", AGENT, {**PROMPT, "prompt": "", "attachments": [ATTACHMENT]}, 400, "empty_prompt"),
    ("POST", AGENT, {"prompt": "hello"}, 400, "invalid_request"),
    ("POST", AGENT, {**PROMPT, "session_id": "nowhere"}, 404, "session_not_found"),
    ("POST", AGENT, {**PROMPT, "session_id": "\0"}, 404, "session_not_found"),
    ("POST", AGENT, {**PROMPT, "session_id": 7}, 400, "invalid_request"),
    ("POST", AGENT, {**PROMPT, "prompt": None}, 400, "empty_prompt"),
    ("POST", AGENT, {**PROMPT, "prompt": ["hello"]}, 400, "invalid_request"),
    ("POST", AGENT, {**PROMPT, "mode": "later"}, 400, "invalid_request"),
    ("POST", AGENT, {**PROMPT, "attachments": "x"}, 400, "invalid_request"),
    ("POST", AGENT, {**PROMPT, "attachments": [{}]}, 400, "invalid_request"),
    ("POST", AGENT, {**PROMPT, "attachments": [{**ATTACHMENT, "content": "%%%"}]}, 400, "invalid_request"),
    *(("POST", AGENT, {**PROMPT, "run_id": odd}, 400, "invalid_request") for odd in (
        " ", "a b", "../../x", "a/b", "ü", "🐦", "-x", ".x", "a\0b", "a\nb", "x" * 129, "%41",
    )),
    ("POST", "/v1/workspaces/nowhere/agent", PROMPT, 404, "workspace_not_found"),
    ("POST", "{W}/runs/a%20b/cancel", None, 400, "invalid_request"),
    ("POST", "{W}/runs/%00/cancel", None, 400, "invalid_request"),
    ("GET", "{W}/runs/unknown", None, 404, "run_not_found"),
    ("GET", "{W}/runs/%F0%9F%90%A6", None, 404, "run_not_found"),
    ("GET", "{W}/runs/unknown?wait=60", None, 404, "run_not_found"),
    *(("GET", f"{{W}}/runs/done?wait={bad}", None, 400, "invalid_request") for bad in (
        "-1", "nan", "inf", "soon", "1,5", "%00",
    )),
    ("GET", "{W}/runs?limit=-1", None, 400, "invalid_request"),
    ("GET", "{W}/runs?session_id=nowhere", None, 404, "session_not_found"),
    ("GET", "{W}/sessions/nowhere", None, 404, "session_not_found"),
    ("PUT", "{W}/sessions/nowhere", {"title": "x"}, 404, "session_not_found"),
    ("PUT", "{W}/sessions/{session}", {"title": 7}, 400, "invalid_request"),
    ("PUT", "{W}/sessions/{session}", {"todos": "x"}, 400, "invalid_request"),
    ("PUT", "{W}/sessions/{session}", None, 400, "invalid_request"),
    ("DELETE", "{W}/sessions/nowhere", None, 404, "session_not_found"),
    ("GET", "{W}/sessions/nowhere/messages", None, 404, "session_not_found"),
    ("GET", "{W}/sessions/{session}/messages?limit=many", None, 400, "invalid_request"),
    ("POST", "{W}/sessions", {"title": []}, 400, "invalid_request"),
    ("POST", "{W}/agent/sessions/nowhere/cancel", None, 404, "session_not_found"),
    ("GET", "{W}/agent/sessions/nowhere/prompts/list", None, 404, "session_not_found"),
    ("POST", "{W}/agent/sessions/nowhere/prompts/clear", None, 404, "session_not_found"),
    ("PATCH", S + "/prompts/unknown", {"prompt": "x"}, 404, "run_not_found"),
    ("PATCH", S + "/prompts/done", {"prompt": "x"}, 409, "too_late"),
    ("PATCH", S + "/prompts/done", {}, 400, "invalid_request"),
    ("DELETE", S + "/prompts/unknown", None, 404, "run_not_found"),
    ("DELETE", S + "/prompts/done", None, 409, "too_late"),
    ("GET", "{W}/events", None, 400, "invalid_client_id"),
    ("GET", "{W}/events?client_id=me", None, 400, "invalid_client_id"),
    ("GET", "{W}/events?client_id={uuid}&session_id=nowhere", None, 404, "session_not_found"),
    ("GET", "/v1/workspaces/nowhere/events?client_id={uuid}", None, 404, "workspace_not_found"),
    ("GET", "/v1/workspaces/nowhere", None, 404, "workspace_not_found"),
    ("DELETE", "/v1/workspaces/nowhere?client_id={uuid}", None, 404, "workspace_not_found"),
    ("DELETE", "{W}", None, 400, "invalid_client_id"),
    ("DELETE", "/v1/clients/me", None, 400, "invalid_client_id"),
    ("POST", "/v1/workspaces", {**CREATE, "client_id": "me"}, 400, "invalid_client_id"),
    ("POST", "/v1/workspaces", {"path": "/"}, 400, "invalid_request"),
    ("POST", "/v1/workspaces", {**CREATE, "path": ""}, 400, "invalid_request"),
    ("POST", "/v1/workspaces", {**CREATE, "path": "relative"}, 400, "invalid_request"),
    ("POST", "/v1/workspaces", {**CREATE, "path": "/no/such/directory"}, 400, "invalid_request"),
    ("POST", "/v1/workspaces", {**CREATE, "path": "/etc/passwd"}, 400, "invalid_request"),
    ("POST", "/v1/workspaces", {**CREATE, "path": "/a\0b"}, 400, "invalid_request"),
    ("POST", "/v1/workspaces", {**CREATE, "path": "/" + "x" * 5000}, 400, "invalid_request"),
    ("POST", "/v1/workspaces", {**CREATE, "env": {"A=B": "x"}}, 400, "invalid_request"),
    ("POST", "/v1/workspaces", {**CREATE, "env": 7}, 400, "invalid_request"),
    ("POST", "/v1/control", {"command": "dance"}, 400, "unknown_command"),
    ("POST", "{W}/permissions/grant", {"permission": {"id": "x"}, "action": "maybe"}, 400, "invalid_request"),
    ("POST", "{W}/permissions/skip", {"skip": "yes"}, 400, "invalid_request"),
    ("GET", "/v1", None, 404, "not_found"),
    ("GET", "/v1/workspaces/", None, 404, "not_found"),
    ("GET", "/v1/health/", None, 404, "not_found"),
    ("GET", "/v2/health", None, 404, "not_found"),
    ("GET", "{W}/runs/a/b", None, 404, "not_found"),
    ("GET", "/%2e%2e/%2e%2e/etc/passwd", None, 404, "not_found"),
    ("POST", "/v1/health", {}, 405, "method_not_allowed"),
    ("DELETE", AGENT, None, 405, "method_not_allowed"),
    ("PUT", "{W}/runs/done", {}, 405, "method_not_allowed"),
    ("PATCH", "/v1/workspaces", {}, 405, "method_not_allowed"),
    ("POST", "{W}/events?client_id={uuid}", {}, 405, "method_not_allowed"),
    ("TRACE", AGENT, None, 405, "method_not_allowed"),
]  # fmt: skip


def test_r1_what_is_wrong_is_refused_before_anything_is_recorded(place: Place) -> None:
    wrong = []
    for method, path, body, status, code in REFUSED:
        answer = place.server.request(method, place.filled(path), place.filled(body))
        told = answer.body if isinstance(answer.body, dict) else {}
        if (answer.status, told.get("code"), bool(told.get("message"))) != (status, code, True):
            wrong.append(f"{method} {path} {str(body)[:80]}: {answer.status} {answer.body}, not {status} {code}")
    assert not wrong, "\n".join(wrong)


MALFORMED = {
    "empty": b"",
    "not JSON": b"hello",
    "cut off": b'{"session_id": "x", "prompt": "he',
    "two values": b"{}{}",
    "a list": b"[]",
    "null": b"null",
    "not UTF-8": b'{"session_id": "x", "prompt": "\xff\xfe"}',
    "a lone surrogate": b'{"session_id": "x", "prompt": "\\ud800"}',
    "a bare control character": b'{"session_id": "x", "prompt": "\x01"}',
    "nested to do harm": b"[" * 100_000,
    "a long number": b'{"session_id": ' + b"9" * 10_000 + b"}",
}


@pytest.mark.parametrize("name", MALFORMED)
def test_r1_a_malformed_body(place: Place, name: str) -> None:
    for path in ("/agent", "/permissions/grant"):
        place.workspace.request("POST", path, MALFORMED[name]).refused(400, "invalid_request")


def test_r1_a_body_that_is_too_large(place: Place) -> None:
    body = json.dumps({"session_id": place.session, "prompt": "x" * (33 * MIB)}).encode()
    place.workspace.request("POST", "/agent", body).refused(413, "body_too_large")
    in_chunks = place.workspace.request("POST", "/agent", iter([body[: 17 * MIB], body[17 * MIB :]]))
    in_chunks.refused(413, "body_too_large")
    place.server.request("POST", "/v1/workspaces", body).refused(413, "body_too_large")


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", "", "json"])
def test_r1_a_body_of_another_type(place: Place, content_type: str) -> None:
    """I1: what a web page can post without asking is not taken."""
    body = json.dumps({"session_id": place.session, "prompt": "hello"}).encode()
    headers = {"Content-Type": content_type}
    place.workspace.request("POST", "/agent", body, headers=headers).refused(415, "unsupported_media_type")


def access(place: Place, headers: dict[str, str], path: str = "") -> Answer:
    body = {"session_id": place.session, "prompt": "hello"}
    if path:
        return place.server.request("GET", path, headers=headers)
    return place.workspace.request("POST", "/agent", body, headers=headers)


@pytest.mark.parametrize(
    "token", ["", "Bearer", "Bearer ", "Bearer wrong", "Basic {token}", "{token}", "Bearer {token}x", "Bearer ü"]
)
def test_r1_without_the_token_nothing_is_told(place: Place, token: str) -> None:
    headers = {"Authorization": token.replace("{token}", place.server.token)}
    access(place, headers).refused(401, "unauthorized")
    for path in ("/v1/version", "/v1/workspaces", "/metrics", "/openapi.json", "/nowhere", place.workspace.path):
        access(place, headers, path).refused(401, "unauthorized")
    events = f"{place.workspace.path}/events?client_id={uuid.uuid4()}&token={place.server.token}"
    access(place, headers, events).refused(401, "unauthorized")
    assert access(place, headers, "/v1/health").status == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "0.0.0.0", "[::2]", "a b"]
)
def test_r1_another_host_is_refused_before_anything_else(place: Place, host: str) -> None:
    headers = {"Host": host, "Authorization": "Bearer wrong"}
    access(place, headers).refused(403, "forbidden_host")
    for path in ("/v1/health", f"{place.workspace.path}/events?client_id={uuid.uuid4()}"):
        access(place, headers, path).refused(403, "forbidden_host")


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1:{port}", "http://127.0.0.1:1"])
def test_r1_another_origin_is_refused(place: Place, origin: str) -> None:
    headers = {"Origin": origin.replace("{port}", str(place.server.port))}
    access(place, headers).refused(403, "forbidden_origin")
    access(place, headers, "/v1/health").refused(403, "forbidden_origin")


def test_r1_the_servers_own_names_and_origin_are_let_in(place: Place) -> None:
    for host in ("127.0.0.1", "localhost", "LOCALHOST:99", "[::1]:99", "127.0.0.2"):
        assert access(place, {"Host": host}, "/v1/version").status == 200
        assert access(place, {"Host": host, "Origin": f"http://{host}"}, "/v1/version").status == 200


PROMPTS = [
    "🐦 emoji, 中文, עברית, é, ﷽",
    "NUL \0 and other controls \x01\x02\x1b[31m\x7f",
    "line\r\nbreaks\u2028and\u2029more\n\n",
    "data: {}\n\nid: 9.9\n\nevent: x",
    "'; DROP TABLE runs; --",
    "\ufeff\ufffe \U0010ffff",
    '"quotes" and \\ backslashes \\u0041',
    "x" * MIB,
]


@pytest.mark.parametrize("prompt", PROMPTS, ids=range(len(PROMPTS)))
def test_r6_any_text_arrives_as_it_was_sent(workspace: Workspace, model: FakeModel, prompt: str) -> None:
    session = workspace.session()
    stream = workspace.stream()
    run_id = workspace.prompt(session, prompt)["run_id"]
    assert stream.terminal(run_id)["text"]
    assert workspace.run(run_id)["prompt"] == prompt
    assert outline(workspace.messages(session)) == [prompt, "assistant end_turn"]
    assert model.requests[0].prompt == prompt
    told = [e.payload for e in stream.of_type("message") if e.payload["role"] == "user"]
    assert text_of(told[0]) == prompt


@pytest.mark.parametrize("run_id", ["a", "0", "A.b_c:d-e", "x" * 128, "..", "a..b"])
def test_r14_a_run_id_of_any_allowed_form(workspace: Workspace, run_id: str) -> None:
    session = workspace.session()
    answer = workspace.request("POST", "/agent", {"session_id": session, "prompt": "hello", "run_id": run_id})
    if run_id == "..":
        answer.refused(400, "invalid_request")
        return
    assert answer.status == 202
    assert workspace.ended(run_id)["state"] == "completed"
    assert workspace.cancel_run(run_id)["covered"] == []
