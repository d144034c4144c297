"""The server against its own description: hundreds of requests made from /openapi.json, good ones and bad ones.

Schemathesis does the same from outside and finds no more than this (`st run` with the document of a running server);
what it would cost are thirty packages.
"""

from __future__ import annotations

import http.client
import json
import re
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.histories.openapi_requests import Generator, Made, Operation, operations
from tests.support.fake_model import FakeModel
from tests.support.server import Server, Workspace, provider_config, running

ROUNDS = 25
"""Requests for each operation."""
MOST_ROUNDS = 10 * ROUNDS
"""As long as no request of an operation was good enough to get past the checks."""
SILENCE = '[[{"text": "so", "ending": "silence"}]]'
"""The fake model begins to answer this, and never ends: what is posted behind it waits."""
LOOKS_AROUND = '[[{"tools": [{"name": "ls", "input": {"path": "."}}]}, {"text": "one two "}]]'
EVENT = {"$ref": "#/components/schemas/Event"}
JSON = {"application/json"}
NEVER_DONE = {
    "POST /v1/control",
    "POST /v1/workspaces/{id}/sessions/{sid}/undo",
    "PATCH /v1/workspaces/{id}/agent/sessions/{sid}/prompts/{run_id}",
    "GET /v1/workspaces/{id}/files/content",
    "GET /v1/workspaces/{id}/jobs/{job_id}",
    "POST /v1/workspaces/{id}/jobs/{job_id}/kill",
    "POST /v1/workspaces/{id}/commands/expand",
    "GET /v1/workspaces/{id}/extensions/{kind}/{name}",
    "POST /v1/web/sessions",
    "DELETE /v1/web/sessions/{page_id}",
    "DELETE /v1/nodes/{name}",
}
"""Only two commands are known, and chance does not find them; a session that is busy is not undone; a prompt has one
place, and chance gives it several; chance finds neither a file, a custom command,
an extension, nor the code or the id of a page, and no job is running."""


@dataclass(frozen=True)
class Response:
    status: int
    content_type: str
    allow: str
    body: bytes


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with FakeModel() as model, running(tmp_path_factory.mktemp("openapi"), provider_config(model.url)) as started:
        yield started


@pytest.fixture(scope="module")
def workspace(server: Server) -> Iterator[Workspace]:
    """Held by two streams, whatever is said in the name of the client that is known."""
    opened = server.workspace()
    opened.stream()
    opened.stream(client_id=str(uuid.uuid4()))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def document(server: Server) -> Any:
    return server.request("GET", "/openapi.json").ok()


def send(server: Server, method: str, made: Made, token: str | None = None) -> Response:
    """Of an event stream, only the head is waited for."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    headers = {"Authorization": f"Bearer {server.token if token is None else token}"}
    if made.body is not None:
        headers["Content-Type"] = made.content_type
    connection.request(method, made.target, made.body, headers)
    response = connection.getresponse()
    content_type = response.getheader("content-type", "")
    body = b"" if content_type.startswith("text/event-stream") else response.read()
    connection.close()
    return Response(response.status, content_type, response.getheader("allow", ""), body)


def known_values(workspace: Workspace) -> dict[str, list[str]]:
    """What leads somewhere: made anew for each operation, since some of them delete it."""
    session = workspace.session()
    workspace.prompt(session, SILENCE)
    waiting = workspace.prompt(session, "hello", mode="own_turn")["run_id"]
    return {
        "id": [workspace.id],
        "sid": [session],
        "session_id": [session],
        "run_id": [waiting, f"run-{waiting}"],
        "client_id": [workspace.client_id, str(uuid.uuid4())],
        "path": [str(workspace.server.project)],
        "prompt": ["hello"],
        "model": ["fake/fake"],
        "allow": ["view", "bash:git status"],
    }


def complaints(generator: Generator, operation: Operation, made: Made, response: Response) -> Iterator[str]:
    """In what an answer is not as the document says."""
    described = operation.answer(response.status)
    if response.status >= 500 or not described:
        yield "the status is a bug of ours, or not described"
        return
    if response.status >= 400:
        yield from error_complaints(response)
        return
    if made.is_wrong:
        yield "it was accepted, although it is not as described"
    content = described.get("content")
    if not content:
        if response.body:
            yield "there is a body where none is described"
    elif "application/json" in content and response.content_type.partition(";")[0] not in content.keys() - JSON:
        if response.content_type != "application/json":
            yield "the body is described as JSON"
        yield from generator.faults(content["application/json"]["schema"], json.loads(response.body), "body")
    elif not any(response.content_type.startswith(kind) for kind in content):
        yield f"the body is described as {list(content)}"


def error_complaints(response: Response) -> Iterator[str]:
    if response.content_type != "application/json":
        yield "an error is JSON"
        return
    body = json.loads(response.body)
    if not (isinstance(body, dict) and body.get("message") and body.get("code")):
        yield "an error has a message and a code"
    if response.status == 405 and not response.allow:
        yield "a 405 tells what is allowed"


def test_every_answer_is_as_the_document_says(server: Server, workspace: Workspace, document: Any) -> None:
    found = []
    done: Counter[str] = Counter()
    for number, operation in enumerate(operations(document)):
        generator = Generator(document, number, known_values(workspace))
        for tried in range(MOST_ROUNDS):
            if tried >= ROUNDS and (done[str(operation)] or str(operation) in NEVER_DONE):
                break
            made = generator.request(operation)
            response = send(server, operation.method, made)
            done[str(operation)] += response.status < 400
            for complaint in complaints(generator, operation, made, response):
                found.append(f"{operation.method} {made.target[:200]} {made.body!r:.300} -> {response}: {complaint}")
    assert not found, "\n".join(found)
    idle = {str(operation) for operation in operations(document) if not done[str(operation)]}
    assert idle <= NEVER_DONE, "no request was good enough to get past the checks"


def test_who_needs_a_token_is_documented_truly(server: Server, workspace: Workspace, document: Any) -> None:
    for operation in operations(document):
        made = Generator(document, 1, known_values(workspace)).request(operation)
        response = send(server, operation.method, made, token="wrong")
        assert (response.status == 401) == operation.needs_token, operation
        assert response.status < 400 or not list(error_complaints(response))


def methods_of(document: Any, path: str) -> set[str]:
    """What is described for a path, also where a name may stand for one of its pieces."""
    templates = [t for t in document["paths"] if re.fullmatch(re.sub(r"{\w+}", "[^/]+", t), path)]
    return {method.upper() for template in templates for method in document["paths"][template]}


def test_a_method_that_is_not_described_is_refused_with_those_that_are(server: Server, document: Any) -> None:
    for template in document["paths"]:
        path = re.sub(r"{(\w+)}", r"\1", template)
        described = methods_of(document, path)
        for method in {"GET", "POST", "PUT", "PATCH", "DELETE"} - described:
            response = send(server, method, Made(path))
            assert response.status == 405, (method, path)
            assert not list(error_complaints(response))
            assert set(response.allow.split(", ")) == described, path


def test_every_event_is_as_the_document_says(server: Server, workspace: Workspace, document: Any) -> None:
    generator = Generator(document, 1, {})
    session = workspace.session()
    streams = [workspace.stream(client_id=str(uuid.uuid4()), deltas=deltas) for deltas in (False, True)]
    run_id = workspace.prompt(session, LOOKS_AROUND)["run_id"]
    for stream in streams:
        stream.terminal(run_id)
    events = [
        {"type": seen.type, "payload": {"type": seen.change, "payload": seen.payload}}
        for stream in streams
        for seen in list(stream.events)
    ]
    found = [f"{event}: {fault}" for event in events for fault in generator.faults(EVENT, event)]
    assert not found, "\n".join(found)
    assert {"message", "session", "run", "run_complete", "message_delta", "presence"} <= {e["type"] for e in events}


def test_the_check_can_fail(document: Any) -> None:
    """Values made as described pass, those made wrong do not: else the test above would prove nothing."""
    generator = Generator(document, 1, {})
    schemas = document["components"]["schemas"]
    for _ in range(50):
        for name, schema in schemas.items():
            if schema.get("properties"):
                value = generator.value(schema)
                assert not list(generator.faults(schema, value)), name
                assert list(generator.faults(schema, generator.broken(schema))), name
