"""Nodes of a cluster as processes: each is one `covey serve` with a data directory of its own, on one PostgreSQL."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.support.postgres import free_port

TOKEN = "the-token-of-a-cluster-for-tests"
SECRET = "the-secret-of-a-cluster-for-tests"
START_S = 60.0
STOP_S = 60.0


def cluster_config(model_url: str, *, lease_s: float = 9.0, drain_s: float = 30.0, extra: str = "") -> str:
    """The configuration of a node whose only model is behind `model_url`; bash needs no permission."""
    return f"""
[models]
large = "fake/fake"
[providers.fake]
type = "openai-compatible"
base_url = "{model_url}"
models = [{{ id = "fake", context_window = 100000000 }}]
idle_timeout_s = 120
[permissions]
allow = ["bash"]
[cluster]
lease_s = {lease_s}
drain_s = {drain_s}
{extra}
"""


class Node:
    """One node, which may be started, stopped, killed, frozen and started again, always at the same port."""

    def __init__(self, name: str, directory: Path, config: str, store: str, advertise: int = 0) -> None:
        self.name = name
        self.directory = directory
        self.port = free_port()
        self.advertised = advertise or self.port
        """The port by which others find it: its own, or that of a proxy."""
        self.store = store
        self.program: Sequence[str] = (sys.executable, "-m", "covey")
        self.env: dict[str, str] = {}
        self.process: subprocess.Popen[bytes] | None = None
        self.is_frozen = False
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "covey.toml").write_text(config)
        secret = directory / "secret"
        secret.write_text(SECRET)
        secret.chmod(0o600)

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def log_file(self) -> Path:
        return self.directory / "node.log"

    def start(self) -> None:
        """Start the process; whether it is ready is another question (`wait_ready`)."""
        directory = self.directory
        home = {"HOME": str(directory), "XDG_CONFIG_HOME": str(directory / "config"), "COVEY_TOKEN": TOKEN}
        home["XDG_DATA_HOME"] = str(directory / "share")
        command = [
            *self.program, "serve", "--host", f"tcp://127.0.0.1:{self.port}", "--data-dir", str(directory / "data"),
            "--config", str(directory / "covey.toml"), "--store", self.store, "--node", self.name,
            "--advertise", f"http://127.0.0.1:{self.advertised}", "--cluster-secret-file", str(directory / "secret"),
        ]  # fmt: skip
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**os.environ, **home, **self.env},
                cwd=directory, start_new_session=True,
            )  # fmt: skip
        self.is_frozen = False

    def signal(self, number: signal.Signals) -> None:
        assert self.process
        self.process.send_signal(number)

    def freeze(self) -> None:
        self.signal(signal.SIGSTOP)
        self.is_frozen = True

    def thaw(self) -> None:
        self.signal(signal.SIGCONT)
        self.is_frozen = False

    def kill(self) -> None:
        if self.process:
            self.signal(signal.SIGKILL)
            self.process.wait(STOP_S)
            self.process = None

    def stop(self) -> int:
        """SIGTERM, and its exit code."""
        assert self.process
        self.signal(signal.SIGTERM)
        code = self.process.wait(STOP_S)
        self.process = None
        return code

    def log(self) -> str:
        return self.log_file.read_text("utf-8", "replace")

    # ── asking it ──

    def ask(self, method: str, path: str, body: Any = None, timeout: float = 10.0) -> tuple[int, Any]:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}",
            None if body is None else json.dumps(body).encode(),
            {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"},
            method=method,
        )
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                return answer.status, _value(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, _value(error.read())

    def is_ready(self) -> bool:
        try:
            return self.ask("GET", "/v1/ready", timeout=2.0)[0] == 200
        except OSError:
            return False

    def wait_ready(self) -> None:
        deadline = time.monotonic() + START_S
        while not self.is_ready():
            assert self.is_running, f"{self.name} has ended: {self.log()[-3000:]}"
            assert time.monotonic() < deadline, f"{self.name} is not ready: {self.log()[-3000:]}"
            time.sleep(0.05)


def _value(raw: bytes) -> Any:
    try:
        return json.loads(raw) if raw else None
    except ValueError:
        return raw.decode("utf-8", "replace")
