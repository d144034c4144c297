"""A home, a project and a real server of some source tree, with a scripted model: for `tests.security.table`."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import pty
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

PATIENCE_S = 60.0
CONFIG = """
[models]
large = "{model}"
[providers.scripted]
type = "scripted"
script = "{script}"
models = [{{ id = "default" }}]
{extra}
"""


class _Unix(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=PATIENCE_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(PATIENCE_S)
        self.sock.connect(self._path)


class Place:
    """Everything that one finding needs. The server is ended with it."""

    def __init__(self, source: Path, base: Path) -> None:
        self.base, self.home, self.project, self.outside = base, base / "home", base / "project", base / "outside"
        for made in (self.home / ".config", self.project, self.outside):
            made.mkdir(parents=True)
        (self.outside / "secret.txt").write_text("CANARY-OUTSIDE\n")
        self.data, self.socket = base / "data", base / "s.sock"
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "TERM": "xterm",
            "PYTHONPATH": str(source / "src"),
        }
        self.git("init", "-q")
        self.git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "one")
        self.server: subprocess.Popen[str] | None = None
        self.workspace = ""

    def git(self, *words: str) -> None:
        subprocess.run(["git", "-C", str(self.project), *words], check=True, env=self.env)

    def start(
        self, steps: list[list[dict[str, Any]]] | None = None, extra: str = "", model: str = "scripted/default"
    ) -> Place:
        """Start the server. `steps`: what the model does when it is prompted with "go"."""
        replies = [{"when": "go", "steps": steps or [[{"text": "Done."}]]}, {"steps": [[{"hang": True}]]}]
        (self.base / "script.json").write_text(json.dumps({"replies": replies}))
        config = CONFIG.format(model=model, script=self.base / "script.json", extra=extra)
        (self.base / "config.toml").write_text(config)
        self.serve("--host", f"unix://{self.socket}", "--data-dir", str(self.data))
        body = {"path": str(self.project), "client_id": str(uuid.uuid4())}
        self.workspace = self.call("POST", "/v1/workspaces", body)[1]["id"]
        return self

    def serve(self, *options: str) -> str:
        """Start a server; gives the line that it prints, or what it said instead."""
        with (self.base / "log").open("w") as log:
            command = [sys.executable, "-m", "covey", "serve", *options, "--config", str(self.base / "config.toml")]
            self.server = subprocess.Popen(
                command, env=self.env, stdout=subprocess.PIPE, stderr=log, text=True, cwd=self.project
            )
        assert self.server.stdout
        return self.server.stdout.readline() or (self.base / "log").read_text()

    def call(self, method: str, path: str, body: object = None, headers: Mapping[str, str] = {}) -> tuple[int, Any]:
        connection = _Unix(str(self.socket))
        with contextlib.closing(connection):
            data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
            given = {"Content-Type": "application/json", **headers} if data is not None else dict(headers)
            connection.request(method, path, data, given)
            answer = connection.getresponse()
            raw = answer.read()
        try:
            return answer.status, json.loads(raw)
        except ValueError:
            return answer.status, raw.decode("utf-8", "replace")

    def of(self, path: str) -> str:
        return f"/v1/workspaces/{self.workspace}/{path}"

    def session(self) -> str:
        return str(self.call("POST", self.of("sessions"), {"title": "t"})[1]["id"])

    def go(self, answer: Callable[[Any], str] = lambda request: "deny") -> tuple[list[Any], str]:
        """Prompt the model with "go", and answer what is asked; gives the questions, and all messages as one text."""
        session, run_id, asked = self.session(), str(uuid.uuid4()), dict[str, Any]()
        self.call("POST", self.of("agent"), {"session_id": session, "prompt": "go", "run_id": run_id})
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            for request in self.call("GET", self.of("permissions"))[1]:
                if request["id"] not in asked:
                    asked[request["id"]] = request
                    grant = {"permission": {"id": request["id"]}, "action": answer(request)}
                    self.call("POST", self.of("permissions/grant"), grant)
            run = self.call("GET", self.of(f"runs/{run_id}"))[1]
            if run["state"] in ("completed", "failed", "cancelled", "interrupted"):
                messages = self.call("GET", self.of(f"sessions/{session}/messages"))[1]
                return list(asked.values()), json.dumps([messages, run])
            time.sleep(0.05)
        return list(asked.values()), "it did not end"

    def terminal(self, *words: str, stop: str, keys: str = "n\n") -> str:
        """What a command shows at a terminal, until some text is seen or it has said nothing for a while."""
        pid, screen = pty.fork()
        if pid == 0:
            os.chdir(self.project)
            os.execve(sys.executable, [sys.executable, "-m", "covey", *words], self.env)
        seen, quiet = b"", 0
        while stop.encode() not in seen and quiet < 60:
            if select.select([screen], [], [], 0.1)[0]:
                try:
                    piece = os.read(screen, 65536)
                except OSError:
                    break
                if not piece:
                    break
                seen, quiet = seen + piece, 0
            else:
                quiet += bool(seen)
        with contextlib.suppress(OSError):
            os.write(screen, keys.encode())
            os.kill(pid, signal.SIGKILL)
        os.close(screen)
        os.waitpid(pid, 0)
        return seen.decode("utf-8", "replace")

    def cpu_s(self) -> float:
        assert self.server
        tasks = Path(f"/proc/{self.server.pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9

    def close(self) -> None:
        if self.server:
            self.server.kill()
            self.server.wait()


@contextlib.contextmanager
def place(source: Path) -> Iterator[Place]:
    base = Path(tempfile.mkdtemp(prefix="covey-table-"))
    base.chmod(0o755)
    made = Place(source, base)
    try:
        yield made
    finally:
        made.close()
        shutil.rmtree(base, ignore_errors=True)
