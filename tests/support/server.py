"""A real `covey serve` process for end-to-end tests, and plain clients for it: none of Covey's own client is used."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw

from tests.support import oracle
from tests.support.stream import Stream

START_S = 60.0
"""How long a server may take to say where it listens: machines that run tests are slow and busy."""
STOP_S = 20.0
"""In half of this a server has to be gone after SIGTERM, whatever it is doing; the rest is for a busy machine."""
PATIENCE_S = 30.0
"""How long a test waits for what must happen: far longer than it takes, so that a slow machine fails nothing."""


def until(condition: Callable[[], Any], timeout: float = PATIENCE_S) -> Any:
    """Ask again and again until the condition gives something; for what no event tells of."""
    deadline = time.monotonic() + timeout
    while not (found := condition()):
        assert time.monotonic() < deadline, f"not true within {timeout} s"
        time.sleep(0.005)
    return found


@dataclass(frozen=True)
class Answer:
    status: int
    body: Any
    headers: dict[str, str]

    def ok(self) -> Any:
        assert 200 <= self.status < 300, f"{self.status}: {self.body}"
        return self.body

    def refused(self, status: int, code: str) -> None:
        """It is an error of ours as the protocol describes it."""
        assert self.status == status, f"{self.status}: {self.body}"
        assert isinstance(self.body, dict), self.body
        assert (self.body["code"], bool(self.body["message"])) == (code, True), self.body


class Pending:
    """A request that has been sent, and whose answer nobody has read yet."""

    def __init__(self, connection: http.client.HTTPConnection) -> None:
        self._connection = connection

    def answer(self) -> Answer:
        with contextlib.closing(self._connection):
            response = self._connection.getresponse()
            raw = response.read()
            is_json = "json" in (response.getheader("content-type") or "")
            value = json.loads(raw) if raw and is_json else raw.decode()
            return Answer(response.status, value, {name.lower(): v for name, v in response.getheaders()})

    def is_answered(self) -> bool:
        """Whether the answer has begun to arrive."""
        return bool(select.select([self._connection.sock], [], [], 0)[0])

    def abandon(self) -> None:
        """Hang up before the answer."""
        self._connection.close()


class Server:
    """One data directory, and the process that serves it: may be stopped, killed and started again."""

    def __init__(
        self, directory: Path, config: str, env: dict[str, str] | None = None, options: Sequence[str] = ()
    ) -> None:
        self.directory = directory
        self.data_dir = directory / "data"
        self.project = directory / "project"
        self.project.mkdir(parents=True, exist_ok=True)
        self.config = directory / "covey-test.toml"
        self.config.write_text(config)
        self.env = env or {}
        self.options = options
        self.program: Sequence[str] = ("-m", "covey")
        self.wrapper: Sequence[str] = ()
        """What starts it, if not we ourselves."""
        self.process: subprocess.Popen[bytes] | None = None
        self.port = 0
        self.host = "tcp://127.0.0.1:0"
        self.may_log_errors = False
        """The test makes the store fail, which the server says in its log."""
        self._was_killed = False
        self._sent: list[Pending] = []
        self._log = (directory / "server.log").open("ab")

    def start(self) -> None:
        home = {"HOME": str(self.directory), "XDG_CONFIG_HOME": str(self.directory / "config")}
        home["XDG_DATA_HOME"] = str(self.directory / "share")
        env = {**os.environ, **home, **self.env}
        for name in ("COVEY_TOKEN", "OPENAI_API_KEY"):
            env.pop(name, None)
        command = [*self.wrapper, sys.executable, *self.program, "serve", "--host", self.host, *self.options]
        command += ["--data-dir", str(self.data_dir), "--config", str(self.config)]
        self._was_killed = False
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self._log, env=env, cwd=self.directory)
        line = self._first_line()
        if not self.host.startswith("unix:"):
            self.port = int(line.rsplit(":", 1)[1])

    def _first_line(self) -> str:
        assert self.process and self.process.stdout
        timer = threading.Timer(START_S, self.process.kill)
        timer.start()
        line = self.process.stdout.readline().decode().strip()
        timer.cancel()
        assert line.startswith("covey: listening on "), f"{line!r}; {self.log()}"
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

    def wait(self, timeout: float = STOP_S) -> int:
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
        self._was_killed = True

    def close(self) -> None:
        """End the process at once, without any check."""
        for pending in self._sent:
            pending.abandon()
        if self.process:
            if self.process.poll() is None:
                self.process.kill()
            self.wait()
        self._log.close()

    def finish(self) -> None:
        """Stop in an orderly way unless it has stopped already, then check everything that it has left behind."""
        if self.process:
            assert self.stop() == 0, self.log()
        oracle.check(self.data_dir, all_ended=not self._was_killed)
        assert self.may_log_errors or "Traceback" not in self.log(), self.log()

    # ── speaking to it ──

    def begin(self, method: str, path: str, body: Any = None, *, headers: dict[str, str] | None = None) -> Pending:
        """Send one request on a connection of its own. `body` may be bytes, or an iterator that gives its chunks."""
        sent = {"Authorization": f"Bearer {self.token}"}
        data = body
        if body is not None and not isinstance(body, bytes | Iterator):
            data = json.dumps(body).encode()
        if body is not None:
            sent["Content-Type"] = "application/json"
        sent.update(headers or {})
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        pending = Pending(connection)
        try:
            connection.request(method, path, data, {name: value for name, value in sent.items() if value})
        except BaseException:  # the server may be killed at this very moment
            pending.abandon()
            raise
        self._sent.append(pending)
        return pending

    def request(self, method: str, path: str, body: Any = None, *, headers: dict[str, str] | None = None) -> Answer:
        return self.begin(method, path, body, headers=headers).answer()

    def raw(self, data: bytes) -> bytes:
        """Send these very bytes, and give all that comes back until the server hangs up."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=20) as connection:
            connection.sendall(data)
            return b"".join(iter(lambda: connection.recv(65536), b""))

    def workspace(self, path: Path | None = None, **fields: Any) -> Workspace:
        client_id = str(uuid.uuid4())
        body = {"path": str(path or self.project), "client_id": client_id, **fields}
        found = self.request("POST", "/v1/workspaces", body).ok()
        return Workspace(self, found["id"], client_id)

    # ── looking into it ──

    def metrics(self) -> dict[str, float]:
        """All of one moment, by their names without `covey_`."""
        lines = str(self.request("GET", "/metrics").ok()).splitlines()
        found = (line.removeprefix("covey_").rsplit(" ", 1) for line in lines if line.startswith("covey_"))
        return {name: float(value) for name, value in found}

    def metric(self, name: str) -> float:
        return self.metrics()[name]

    def open_runs(self, state: str) -> int:
        return int(self.metric(f'runs_open{{state="{state}"}}'))

    def all_open_runs(self) -> int:
        found = self.metrics()
        return sum(int(found[f'runs_open{{state="{state}"}}']) for state in ("accepted", "queued", "active", "folded"))

    def resident_bytes(self) -> int:
        status = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return 1024 * int(next(line.split()[1] for line in status if line.startswith("VmRSS:")))

    def descriptors(self) -> int:
        """As the server counts them: nobody else may look."""
        return int(self.metric("process_open_descriptors"))

    @contextlib.contextmanager
    def blocked_store(self) -> Iterator[None]:
        """Meanwhile nothing can be written. The server waits for that up to five seconds, so be quicker than that.

        A prompt that is posted now is accepted, but not recorded and not entered: no luck is needed to get there.
        """
        with contextlib.closing(apsw.Connection(str(self.data_dir / "covey.db"))) as connection:
            connection.set_busy_timeout(5000)
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            finally:
                connection.execute("ROLLBACK")


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

    def begin(self, method: str, path: str, body: Any = None, **options: Any) -> Pending:
        return self.server.begin(method, self.path + path, body, **options)

    def get(self, path: str) -> Any:
        return self.request("GET", path).ok()

    def session(self, title: str = "") -> str:
        return str(self.request("POST", "/sessions", {"title": title}).ok()["id"])

    def prompt(self, session_id: str, prompt: str, **fields: Any) -> Any:
        answer = self.request("POST", "/agent", {"session_id": session_id, "prompt": prompt, **fields})
        assert answer.status == 202, answer
        return answer.body

    def begin_prompt(self, session_id: str, prompt: str, **fields: Any) -> Pending:
        """Send a prompt while the store is blocked, and wait until the server has accepted it."""
        before = self.server.open_runs("accepted")
        pending = self.begin("POST", "/agent", {"session_id": session_id, "prompt": prompt, **fields})
        until(lambda: self.server.open_runs("accepted") == before + 1)
        return pending

    def begin_cancel(self, session_id: str, *covered: str) -> Pending:
        """Send a cancel while the store is blocked, and wait until it has reached these runs.

        One that has ended of it already is shown as the blocked store has it: then fewer are open than before.
        """
        before = self.server.all_open_runs()
        pending = self.begin("POST", f"/agent/sessions/{session_id}/cancel")
        until(
            lambda: (
                all("cancelled_by" in self.run(run_id) for run_id in covered) or self.server.all_open_runs() < before
            )
        )
        return pending

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

    def queued(self, session_id: str) -> list[str]:
        return list(self.get(f"/agent/sessions/{session_id}/prompts/list"))

    def stream(
        self, *, client_id: str = "", last_event_id: str = "", id_in_query: bool = False, deltas: bool = True,
        session_id: str = "",
    ) -> Stream:  # fmt: skip
        path = f"{self.path}/events?client_id={client_id or self.client_id}"
        path += "&deltas=1" if deltas else ""
        path += f"&session_id={session_id}" if session_id else ""
        path += f"&last_event_id={last_event_id}" if id_in_query else ""
        headers = {"Authorization": f"Bearer {self.server.token}"}
        if last_event_id and not id_in_query:
            headers["Last-Event-ID"] = last_event_id
        stream = Stream(self.server.port, path, headers)
        self._streams.append(stream)
        return stream

    def close(self) -> None:
        for stream in self._streams:
            stream.close()


def finish_of(message: Any) -> str:
    """Why a message ended; '' while it has not."""
    parts = message["parts"]
    return str(parts[-1]["data"]["reason"]) if parts and parts[-1]["type"] == "finish" else ""


def text_of(message: Any) -> str:
    return "".join(part["data"]["text"] for part in message["parts"] if part["type"] == "text")


def outline(messages: Sequence[Any]) -> list[str]:
    """A conversation in short: what was asked, and how each answer ended."""
    return [text_of(m) if m["role"] == "user" else f"{m['role']} {finish_of(m)}".strip() for m in messages]


def provider_config(url: str, extra: str = "", provider: str = "idle_timeout_s = 20") -> str:
    """A configuration whose only model is behind `url`; `provider` goes into its table, `extra` behind it."""
    return f"""
[models]
large = "fake/fake"
[providers.fake]
type = "openai-compatible"
base_url = "{url}"
models = [{{ id = "fake", context_window = 100000000 }}]
{provider}
{extra}
"""


@contextlib.contextmanager
def running(
    directory: Path, config: str, env: dict[str, str] | None = None, options: Sequence[str] = ()
) -> Iterator[Server]:
    """A server for the time of a test; whatever it leaves behind is checked at the end."""
    server = Server(directory, config, env, options)
    try:
        server.start()
        yield server
        server.finish()
    finally:
        server.close()
