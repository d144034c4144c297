"""A real `covey serve` process for end-to-end tests, and plain clients for it: none of Covey's own client is used."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from covey.protocol.sse import Decoder

START_S = 20.0
"""How long a server may take to say where it listens: machines that run tests are slow and busy."""


@dataclass(frozen=True)
class Answer:
    status: int
    body: Any
    headers: dict[str, str]

    def ok(self) -> Any:
        assert 200 <= self.status < 300, f"{self.status}: {self.body}"
        return self.body


@dataclass(frozen=True)
class Seen:
    """One event as a client saw it."""

    id: str
    type: str
    change: str
    payload: Any


class Server:
    """One data directory, and the process that serves it: may be stopped, killed and started again."""

    def __init__(self, directory: Path, config: str, env: dict[str, str] | None = None) -> None:
        self.directory = directory
        self.data_dir = directory / "data"
        self.project = directory / "project"
        self.project.mkdir(parents=True, exist_ok=True)
        self.config = directory / "covey-test.toml"
        self.config.write_text(config)
        self.env = env or {}
        self.process: subprocess.Popen[bytes] | None = None
        self.port = 0
        self.host = "tcp://127.0.0.1:0"
        self._log = (directory / "server.log").open("ab")

    def start(self) -> None:
        home = {"HOME": str(self.directory), "XDG_CONFIG_HOME": str(self.directory / "config")}
        env = {**os.environ, **home, **self.env}
        for name in ("COVEY_TOKEN", "OPENAI_API_KEY"):
            env.pop(name, None)
        command = [sys.executable, "-m", "covey", "serve", "--host", self.host]
        command += ["--data-dir", str(self.data_dir), "--config", str(self.config)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self._log, env=env, cwd=self.directory)
        line = self._first_line()
        self.port = int(line.rsplit(":", 1)[1])

    def _first_line(self) -> str:
        assert self.process and self.process.stdout
        timer = threading.Timer(START_S, self.process.kill)
        timer.start()
        line = self.process.stdout.readline().decode().strip()
        timer.cancel()
        assert line.startswith("covey: listening on http://"), f"{line!r}; {self.log()}"
        return line

    def log(self) -> str:
        return (self.directory / "server.log").read_text()

    @property
    def pid(self) -> int:
        assert self.process
        return self.process.pid

    @property
    def token(self) -> str:
        return (self.data_dir / "token").read_text().strip()

    def signal(self, number: signal.Signals) -> None:
        assert self.process
        self.process.send_signal(number)

    def wait(self, timeout: float = 15.0) -> int:
        assert self.process
        code = self.process.wait(timeout)
        assert self.process.stdout
        self.process.stdout.close()
        self.process = None
        return code

    def stop(self) -> int:
        self.signal(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        self.wait()

    def close(self) -> None:
        if self.process:
            if self.process.poll() is None:
                self.process.kill()
            self.wait()
        self._log.close()

    # ── speaking to it ──

    def request(
        self, method: str, path: str, body: Any = None, *, headers: dict[str, str] | None = None, timeout: float = 30.0
    ) -> Answer:
        """One request on a connection of its own. `body` may be bytes, which are sent as they are."""
        sent = {"Authorization": f"Bearer {self.token}"}
        data = body
        if body is not None and not isinstance(body, bytes):
            data = json.dumps(body).encode()
        if body is not None:
            sent["Content-Type"] = "application/json"
        sent.update(headers or {})
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        with contextlib.closing(connection):
            connection.request(method, path, data, {name: value for name, value in sent.items() if value})
            response = connection.getresponse()
            raw = response.read()
            is_json = "json" in (response.getheader("content-type") or "")
            value = json.loads(raw) if raw and is_json else raw.decode()
            return Answer(response.status, value, {name.lower(): v for name, v in response.getheaders()})

    def workspace(self, path: Path | None = None, **fields: Any) -> Workspace:
        client_id = str(uuid.uuid4())
        body = {"path": str(path or self.project), "client_id": client_id, **fields}
        found = self.request("POST", "/v1/workspaces", body).ok()
        return Workspace(self, found["id"], client_id)


@dataclass
class Workspace:
    """One workspace, as one client holds it."""

    server: Server
    id: str
    client_id: str
    _streams: list[Stream] = field(default_factory=list)

    @property
    def path(self) -> str:
        return f"/v1/workspaces/{self.id}"

    def request(self, method: str, path: str, body: Any = None, **options: Any) -> Answer:
        return self.server.request(method, self.path + path, body, **options)

    def get(self, path: str) -> Any:
        return self.request("GET", path).ok()

    def session(self, title: str = "") -> str:
        return str(self.request("POST", "/sessions", {"title": title}).ok()["id"])

    def prompt(self, session_id: str, prompt: str, **fields: Any) -> Any:
        answer = self.request("POST", "/agent", {"session_id": session_id, "prompt": prompt, **fields})
        assert answer.status == 202, answer
        return answer.body

    def cancel(self, session_id: str) -> Any:
        return self.request("POST", f"/agent/sessions/{session_id}/cancel").ok()

    def cancel_run(self, run_id: str) -> Any:
        return self.request("POST", f"/runs/{run_id}/cancel").ok()

    def run(self, run_id: str, wait: float = 0) -> Any:
        return self.get(f"/runs/{run_id}?wait={wait}")

    def ended(self, run_id: str) -> Any:
        """The run, once it has ended."""
        run = self.run(run_id, wait=30)
        assert "ended_at" in run, run
        return run

    def messages(self, session_id: str) -> list[Any]:
        return list(self.get(f"/sessions/{session_id}/messages"))

    def stream(self, **options: Any) -> Stream:
        stream = Stream(self, **options)
        self._streams.append(stream)
        return stream

    def close(self) -> None:
        for stream in self._streams:
            stream.close()


class Stream:
    """An open event stream, read by a thread of its own."""

    def __init__(
        self, workspace: Workspace, *, client_id: str = "", last_event_id: str = "", deltas: bool = True,
        session_id: str = "",
    ) -> None:  # fmt: skip
        self.events: list[Seen] = []
        self.ended = False
        self.raw = b""
        self._changed = threading.Condition()
        server = workspace.server
        path = f"{workspace.path}/events?client_id={client_id or workspace.client_id}"
        path += "&deltas=1" if deltas else ""
        path += f"&session_id={session_id}" if session_id else ""
        headers = {"Authorization": f"Bearer {server.token}"}
        if last_event_id:
            headers["Last-Event-ID"] = last_event_id
        self._connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        self._connection.request("GET", path, headers=headers)
        assert self._connection.sock is not None
        self._socket = self._connection.sock
        self._response = self._connection.getresponse()
        assert self._response.status == 200, self._response.read()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        decoder = Decoder()
        with contextlib.suppress(OSError, ValueError, http.client.HTTPException, AttributeError):
            while chunk := self._response.read1(65536):
                self.raw += chunk
                frames = decoder.feed(chunk)
                with self._changed:
                    for frame in frames:
                        value = json.loads(frame.data)
                        inner = value["payload"]
                        self.events.append(Seen(frame.id, value["type"], inner["type"], inner["payload"]))
                    self._changed.notify_all()
        with self._changed:
            self.ended = True
            self._changed.notify_all()

    def wait_for(self, condition: Callable[[list[Seen]], Any], timeout: float = 20.0) -> Any:
        """Block until the events seen so far make the condition true; gives what it gave."""
        found: list[Any] = []

        def check() -> bool:
            found[:] = [condition(self.events)]
            return bool(found[0])

        with self._changed:
            ok = self._changed.wait_for(check, timeout)
        assert ok, f"not seen within {timeout} s; the last events: {self.events[-5:]}"
        return found[0]

    def wait_end(self, timeout: float = 20.0) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self.ended, timeout), "the stream did not end"

    def terminal(self, run_id: str, timeout: float = 20.0) -> Any:
        """The terminal event of a run."""
        return self.wait_for(
            lambda seen: next((e for e in seen if e.type == "run_complete" and e.payload["run_id"] == run_id), None),
            timeout,
        ).payload

    def of_type(self, kind: str) -> list[Seen]:
        return [event for event in self.events if event.type == kind]

    @property
    def last_id(self) -> str:
        return next((event.id for event in reversed(self.events) if event.id), "")

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(5)
        self._response.close()
        self._connection.close()


def provider_config(url: str, extra: str = "") -> str:
    """A configuration whose only model is behind `url`."""
    return f"""
[models]
large = "fake/fake"
[providers.fake]
type = "openai-compatible"
base_url = "{url}"
models = [{{ id = "fake", context_window = 100000 }}]
idle_timeout_s = 20
{extra}
"""


@contextlib.contextmanager
def running(directory: Path, config: str, env: dict[str, str] | None = None) -> Iterator[Server]:
    server = Server(directory, config, env)
    try:
        server.start()
        yield server
    finally:
        server.close()
