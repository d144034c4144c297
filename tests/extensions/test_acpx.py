"""`acpx`, a real client of ACP, works through `covey acp`: a change in a repository, permissions, cancel, modes."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.acp.looking import state_of
from tests.cli.conftest import Home, until
from tests.extensions.npm import program

WAIT_S = 90
BROKEN = "def add(a, b):\n    return a - b\n"
FIXED = "def add(a, b):\n    return a + b\n"
TASK: dict[str, Any] = {
    "when": "fix the sum",
    "steps": [
        [{"text": "I look at it."}, {"tool": "view", "input": {"file_path": "sums.py"}}],
        [
            {"text": "A wrong sign."},
            {"tool": "edit", "input": {"file_path": "sums.py", "old_string": "a - b", "new_string": "a + b"}},
        ],
        [{"tool": "bash", "input": {"command": "git commit -qam 'Add, not subtract'"}}],
        [{"text": "The sum is right now, and committed."}],
    ],
}


class Acpx:
    """In one repository; its owner of a session, which stays in the background, is ended in the end."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self._command = [*program("acpx", "acpx"), "--agent", shlex.join(home.command("acp")), "--ttl", "30"]

    def run(self, *args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self._command, *args],
            cwd=self.home.project,
            env=self.home.env,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=WAIT_S,
        )

    def begin(self, *args: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*self._command, *args],
            cwd=self.home.project,
            env=self.home.env,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def owner(self) -> int:
        """The process that keeps the session's agent; 0: none."""
        said = self.run("status").stdout
        found = [line.split()[1] for line in said.splitlines() if line.startswith("pid:")]
        return int(found[0]) if found and found[0].isdigit() else 0


@pytest.fixture
def acpx(own_home: Home) -> Iterator[Acpx]:
    script = Path(own_home.env["HOME"]) / "script.json"
    told = json.loads(script.read_text())
    script.write_text(json.dumps({"replies": [TASK, *told["replies"]]}))
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.invalid"]
    names = [f"GIT_{who}_{what}" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")]
    own_home.env |= dict.fromkeys(names, "t@example.invalid")
    (own_home.project / "sums.py").write_text(BROKEN)
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "A sum"]):
        subprocess.run([*git, *command], cwd=own_home.project, check=True)
    made = Acpx(own_home)
    yield made
    if owner := made.owner():
        with suppress(ProcessLookupError):
            os.kill(owner, signal.SIGTERM)


def test_a_task_changes_the_repository_and_is_recorded_as_it_was(acpx: Acpx) -> None:
    done = acpx.run("--approve-all", "exec", "fix the sum")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (acpx.home.project / "sums.py").read_text() == FIXED
    log = subprocess.run(["git", "log", "--format=%s"], cwd=acpx.home.project, capture_output=True, text=True)
    assert log.stdout.splitlines() == ["Add, not subtract", "A sum"]
    assert "[done] end_turn" in done.stdout and "The sum is right now, and committed." in done.stdout
    (session,) = acpx.home.sessions()
    messages = acpx.home.messages(session["id"])
    outline = [(message["role"], [part["type"] for part in message["parts"]]) for message in messages]
    assert outline == [
        ("user", ["text"]),
        ("assistant", ["text", "tool_call", "finish"]),
        ("tool", ["tool_result"]),
        ("assistant", ["text", "tool_call", "finish"]),
        ("tool", ["tool_result"]),
        ("assistant", ["tool_call", "finish"]),
        ("tool", ["tool_result"]),
        ("assistant", ["text", "finish"]),
    ]
    assert not any(message["parts"][0]["data"]["is_error"] for message in messages if message["role"] == "tool")


def test_what_is_denied_is_not_done(acpx: Acpx) -> None:
    done = acpx.run("--deny-all", "exec", "make a file")
    assert done.returncode == 5, done.stdout + done.stderr  # as acpx says that a permission was denied
    assert "denied" in done.stdout and not (acpx.home.project / "made").exists()


def test_a_session_lasts_has_a_mode_is_cancelled_and_resumed(acpx: Acpx) -> None:
    new = acpx.run("sessions", "new")
    assert new.returncode == 0, new.stderr
    assert acpx.run("set-mode", "plan").returncode == 0
    planned = acpx.run("--approve-all", "prompt", "make a file")
    assert planned.returncode == 0 and not (acpx.home.project / "made").exists()
    assert acpx.run("set-mode", "ask").returncode == 0
    running = acpx.begin("prompt", "hang on")
    until(lambda: state_of(acpx.home, "hang on") == "active", "the run")
    assert acpx.run("cancel").returncode == 0
    out, _ = running.communicate(timeout=WAIT_S)
    assert "[done] cancelled" in out, out
    assert state_of(acpx.home, "hang on") == "cancelled"
    owner = acpx.owner()
    assert owner
    os.kill(owner, signal.SIGKILL)  # with it goes the bridge: the next prompt starts another, which resumes
    _gone(acpx.home)
    again = acpx.run("prompt", "hello")
    assert "session/resume" in again.stdout and "You said: hello" in again.stdout, again.stdout
    (session,) = acpx.home.sessions()
    assert session.get("mode") in (None, "ask")


def _gone(home: Home) -> None:
    """No bridge of this home is left: its stdin has ended."""
    deadline = time.monotonic() + WAIT_S
    while any(_is_bridge(entry, home) for entry in Path("/proc").iterdir() if entry.name.isdigit()):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _is_bridge(entry: Path, home: Home) -> bool:
    try:
        words, variables = (entry / "cmdline").read_bytes().split(b"\0"), (entry / "environ").read_bytes()
        return words[1:4] == [b"-m", b"covey", b"acp"] and os.fsencode(home.env["HOME"]) in variables
    except OSError:
        return False
