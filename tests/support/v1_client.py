"""A client of the v1 protocol that knows nothing of ours: it sends and decodes what such a client does, and no more."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.server import PATIENCE_S, Answer

HOST = "api.crush.localhost"
KNOWN = {
    "message", "session", "file", "run_complete", "agent_event", "permission_request", "permission_notification",
    "question_batch_request", "question_batch_notification", "config_changed", "mcp_event", "lsp_event", "skills_event",
}  # fmt: skip
"""The types of events that it decodes; it only logs the others."""


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__(HOST, timeout=60)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(60)
        self.sock.connect(str(self._path))


def _hang_up(stream: socket.socket) -> None:
    with contextlib.suppress(OSError):  # the server may have done so before
        stream.shutdown(socket.SHUT_RDWR)


class V1Client:
    """One process of such a client, on a unix socket. Without a token: it has none to send."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.client_id = str(uuid.uuid4())
        self.workspace_id = ""
        self.config: Any = None
        self.events: list[tuple[str, str, Any]] = []
        """Type, change and value of all that it can decode."""
        self._changed = threading.Condition()
        self._streams = contextlib.ExitStack()

    def request(self, method: str, path: str, body: Any = None, *, content_type: str = "application/json") -> Answer:
        connection = _Connection(self.path)
        with contextlib.closing(connection):
            data = None if body is None else json.dumps(body).encode()
            headers = {"Content-Type": content_type} if data else {}
            connection.request(method, f"/v1{path}", data, headers)
            response = connection.getresponse()
            raw = response.read()
            return Answer(response.status, json.loads(raw) if raw else None, dict(response.getheaders()))

    def ok(self, method: str, path: str, body: Any = None) -> Any:
        """Nothing but a 200 is a success to it."""
        answer = self.request(method, f"/workspaces/{self.workspace_id}{path}", body)
        assert answer.status == 200, f"{method} {path}: {answer}"
        return answer.body

    def get(self, path: str) -> Any:
        return self.ok("GET", path)

    def post(self, path: str, body: Any = None) -> Any:
        return self.ok("POST", path, body)

    def open(self, directory: Path, **fields: Any) -> None:
        """As at its start: is there a server, of which version, a workspace, its events."""
        assert self.request("GET", "/health").status == 200
        assert self.request("GET", "/version").body["version"]
        body = {"id": "", "path": str(directory), "client_id": self.client_id, **fields}
        answer = self.request("POST", "/workspaces", body)
        assert answer.status == 200, answer
        self.workspace_id, self.config = answer.body["id"], answer.body["config"]
        self.post("/agent/init", {"interactive": True})
        self._subscribe()

    def prompt(self, session_id: str, prompt: str, run_id: str = "") -> None:
        body = {"session_id": session_id, "prompt": prompt, **({"run_id": run_id} if run_id else {})}
        answer = self.request("POST", f"/workspaces/{self.workspace_id}/agent", body)
        assert answer.status in (200, 202), answer

    def session(self, title: str = "New Session") -> str:
        empty = {"parent_session_id": "", "message_count": 0, "prompt_tokens": 0, "completion_tokens": 0}
        body = {
            "id": "",
            "title": title,
            "summary_message_id": "",
            "cost": 0,
            "created_at": 0,
            "updated_at": 0,
            **empty,
        }
        return str(self.post("/sessions", {**body, "is_busy": False, "attached_clients": 0})["id"])

    def close(self) -> None:
        self._streams.close()
        self.request("DELETE", f"/clients/{self.client_id}")

    # ── events ──

    def _subscribe(self) -> None:
        connection = self._streams.enter_context(contextlib.closing(_Connection(self.path)))
        path = f"/v1/workspaces/{self.workspace_id}/events?client_id={self.client_id}"
        connection.request("GET", path, headers={"Accept": "text/event-stream", "Connection": "keep-alive"})
        stream = self._streams.enter_context(contextlib.closing(connection.sock))
        response = self._streams.enter_context(contextlib.closing(connection.getresponse()))
        assert response.status == 200
        reading = threading.Thread(target=self._read, args=(response,), daemon=True)
        reading.start()
        self._streams.callback(reading.join)
        self._streams.callback(_hang_up, stream)

    def _read(self, response: http.client.HTTPResponse) -> None:
        with contextlib.suppress(OSError, ValueError, http.client.HTTPException, AttributeError):
            while line := response.readline():
                if line.startswith(b"data:"):
                    outer = json.loads(line[5:])
                    if outer["type"] in KNOWN:
                        with self._changed:
                            inner = outer["payload"]
                            self.events.append((outer["type"], inner["type"], inner["payload"]))
                            self._changed.notify_all()

    def of_type(self, kind: str) -> list[Any]:
        return [value for found, _, value in self.events if found == kind]

    def wait_for(self, kind: str, condition: Callable[[Any], bool] = lambda value: True) -> Any:
        """The first event of this type for which the condition holds."""

        def found() -> list[Any]:
            return [value for value in self.of_type(kind) if condition(value)]

        with self._changed:
            assert self._changed.wait_for(found, PATIENCE_S), f"no such {kind}: {self.events}"
        return found()[0]

    def run(self, prompt: str, session_id: str = "") -> tuple[int, str]:
        """A whole run, as `run` of such a client does it: its exit code, and what it prints.

        Any agent_event that has an error and the id of the run is fatal to it.
        """
        run_id = str(uuid.uuid4())
        self.prompt(session_id or self.session("non-interactive"), prompt, run_id)
        end = self.wait_for("run_complete", lambda value: value["run_id"] == run_id)
        errors = [e for e in self.of_type("agent_event") if e.get("run_id") == run_id and e.get("error")]
        return (1 if errors or end.get("error") else 0), end.get("text", "")
