"""A home of its own for each test: configuration, data and socket, and the `covey` command in it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from copy import copy
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from covey.cli.status import server_pid
from covey.protocol.paths import Address

if TYPE_CHECKING:
    from tests.cli.terminal import Terminals

WAIT_S = 30.0
"""Machines that run tests are slow and busy."""

SCRIPT = {
    "replies": [
        {"when": "keep above all: mind the nests", "steps": [[{"text": "A summary of nests."}]]},
        {"when": "Write a summary that replaces it", "steps": [[{"text": "A summary."}]]},
        {"when": "This answer cannot be used", "steps": [[{"text": '{"n": 1}'}]]},
        {"when": "hang", "steps": [[{"text": "one two "}, {"hang": True}]]},
        {
            "when": "ask me",
            "steps": [
                [{"tool": "question", "input": {"questions": [{"type": "yes_no", "question": "Shall I?"}]}}],
                [{"text": "Done."}],
            ],
        },
        {
            "when": "name it",
            "steps": [
                [{"tool": "question", "input": {"questions": [{"type": "free_text", "question": "Its name?"}]}}],
                [{"text": "Done."}],
            ],
        },
        {"when": "fail", "steps": [[{"text": "half an answer"}, {"error": "the model broke"}]]},
        {
            "when": "use two tools",
            "steps": [
                [{"tool": "bash", "input": {"command": "touch first"}}],
                [{"tool": "bash", "input": {"command": "touch second"}}],
                [{"text": "Done."}],
            ],
        },
        {
            "when": "tool",
            "steps": [
                [{"text": "I make a file."}, {"tool": "bash", "input": {"command": "touch made"}}],
                [{"text": "Done."}],
            ],
        },
        {
            "when": "write two files",
            "steps": [
                [{"tool": "write", "input": {"file_path": "one", "content": "1\n"}}],
                [{"tool": "write", "input": {"file_path": "two", "content": "2\n"}}],
                [{"text": "Done."}],
            ],
        },
        {
            "when": "many lines",
            "steps": [[{"tool": "bash", "input": {"command": "# harmless\ntouch made"}}], [{"text": "Done."}]],
        },
        {
            "when": "long command",
            "steps": [[{"tool": "bash", "input": {"command": "touch " + "x" * 2000}}], [{"text": "."}]],
        },
        {
            "when": "print slowly",
            "steps": [[{"tool": "bash", "input": {"command": "echo first; echo working; sleep 60"}}], [{"text": "."}]],
        },
        {"when": "pause", "steps": [[{"text": "one "}, {"text": "two", "delay_ms": 1000}]]},
        {"when": "endless", "steps": [[{"text": "0123456789" * 20, "repeat": 100_000, "delay_ms": 1}]]},
        {"when": "long", "steps": [[{"text": "word é😀 ", "repeat": 5000}]]},
        {"steps": [[{"text": "You said: ${prompt}"}, {"usage": [10, 5]}]]},
    ]
}
CONFIG = """
[models]
large = "scripted/default"
[providers.scripted]
type = "scripted"
script = "{script}"
models = [{{ id = "default" }}]
"""


def has_ended(pid: int) -> bool:
    """It may still be listed, until its parent has asked how it ended."""
    try:
        return " Z " in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True


def until(condition: Callable[[], Any], what: str) -> Any:
    """Wait for a condition of the world outside, which cannot wake us."""
    deadline = time.monotonic() + WAIT_S
    while not (found := condition()):
        assert time.monotonic() < deadline, f"did not happen: {what}"
        time.sleep(0.01)
    return found


class Home:
    """Where commands live, and the project that they work on. The server that they start is ended with it."""

    def __init__(self, directory: Path) -> None:
        self.project = directory / "project"
        self.data_dir = directory / "data" / "covey"
        self.config = directory / "config" / "covey" / "config.toml"
        for made in (self.project, self.config.parent):
            made.mkdir(parents=True)
        (directory / "script.json").write_text(json.dumps(SCRIPT))
        self.config.write_text(CONFIG.format(script=directory / "script.json"))
        # A socket's path is short: the directories of a test are too deep for it.
        self.runtime = Path(tempfile.mkdtemp(prefix="covey-"))
        digest = sha256(os.path.realpath(self.data_dir).encode()).hexdigest()[:12]
        self.socket = self.runtime / f"covey-{os.getuid()}-{digest}.sock"
        kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "LANG", "LC_ALL") if name in os.environ}
        self.env = {
            **kept,
            "HOME": str(directory),
            "XDG_CONFIG_HOME": str(directory / "config"),
            "XDG_DATA_HOME": str(directory / "data"),
            "XDG_RUNTIME_DIR": str(self.runtime),
            "TERM": "xterm",
            "NO_COLOR": "1",
        }

    def command(self, *args: str) -> list[str]:
        return [sys.executable, "-m", "covey", *args]

    def covey(self, *args: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command to its end. Without `stdin` there is none to read."""
        given: dict[str, Any] = {"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}
        return subprocess.run(
            self.command(*args), cwd=self.project, env=self.env, capture_output=True, text=True, timeout=WAIT_S, **given
        )

    def spawn(self, *args: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self.command(*args),
            cwd=self.project,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def status(self) -> dict[str, Any]:
        done = self.covey("status", "--json")
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def pid(self) -> int:
        return int(self.status()["pid"])

    def workspace(self) -> dict[str, Any]:
        """What the server does in this project."""
        (found,) = [w for w in self.status()["workspaces"] if w["path"] == str(self.project)]
        return dict(found)

    def sessions(self) -> list[dict[str, Any]]:
        done = self.covey("sessions", "--json")
        assert done.returncode == 0, done.stderr
        found: list[dict[str, Any]] = json.loads(done.stdout)
        return found

    def messages(self, session_id: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.covey("sessions", "export", session_id, "--json").stdout)[
            "messages"
        ]
        return found

    def close(self) -> None:
        pid = server_pid(Address(path=str(self.socket)))
        if pid:
            os.kill(pid, signal.SIGKILL)
            until(lambda: has_ended(pid), "the end of a killed server")
        shutil.rmtree(self.runtime)


def read_until(process: subprocess.Popen[bytes], text: bytes) -> bytes:
    """What the process wrote to stdout, up to and with this text."""
    assert process.stdout
    seen = b""
    while text not in seen:
        chunk = os.read(process.stdout.fileno(), 65536)
        assert chunk, f"stdout ended after {seen!r}; stderr: {process.stderr.read() if process.stderr else b''!r}"
        seen += chunk
    return seen


def finish(process: subprocess.Popen[bytes]) -> tuple[int, str, str]:
    """Exit code and what was left of stdout and stderr."""
    try:
        out, err = process.communicate(timeout=WAIT_S)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.communicate()
        raise
    return process.returncode, out.decode(), err.decode()


@pytest.fixture(scope="session")
def shared_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    made = Home(tmp_path_factory.mktemp("home"))
    yield made
    made.close()


@pytest.fixture
def home(shared_home: Home, tmp_path: Path) -> Home:
    """A project of one's own on a server that many tests share."""
    mine = copy(shared_home)
    mine.project = tmp_path / "project"
    mine.project.mkdir()
    return mine


@pytest.fixture
def own_home(tmp_path: Path) -> Iterator[Home]:
    """For tests that do something to the server, or find none."""
    made = Home(tmp_path)
    yield made
    made.close()


@pytest.fixture
def terminals(home: Home) -> Iterator[Terminals]:
    from tests.cli.terminal import Terminals  # late: it knows what is here

    made = Terminals(home)
    yield made
    made.close()
