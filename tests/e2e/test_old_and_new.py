"""Versions meet: an older client and this server, this client and an older server, and the store of an older one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from covey.cli import exits
from tests.support import either_client, old_covey
from tests.support.fake_model import FakeModel, Reply
from tests.support.old_covey import COMMIT, NEW_TEXT, OLD_TEXT
from tests.support.server import Server, outline, provider_config, running

HELLO = Reply().text
NEW = old_covey.ROOT / "src"
DAY: dict[str, Any] = {
    "runs": {
        "said": HELLO,
        "allowed": "completed",
        "answers": [True, True],
        "wrote": "wrote it",
        "undone": ["wrote"],
        "summed_up": "completed",
        "roles": ["user", "assistant", "user", "assistant", "tool", "assistant", "user", "assistant"],
    },
    "queue": {
        "queued": ["two", "three"],
        "covered": ["active"],
        "ended": {"second": "cancelled", "third": "cancelled", "active": "cancelled"},
    },
    "sessions": {"renamed": "Renamed", "listed": ["Renamed"]},
}
"""What a client sees, of whichever version it and the server are."""


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = old_covey.unpack(tmp_path_factory.mktemp("old"))
    if source is None:
        pytest.skip(f"the history of this clone does not reach back to {COMMIT}: a full clone has it")
    return source


@pytest.fixture(scope="module")
def model() -> Iterator[FakeModel]:
    with FakeModel() as fake:
        yield fake


def python(source: Path, server: Server, *args: str) -> subprocess.CompletedProcess[str]:
    """Run something with these sources, in the project of a server."""
    env = {**server.env, "PATH": "/usr/bin:/bin", "HOME": str(server.directory), "PYTHONPATH": str(source)}
    return subprocess.run(
        [sys.executable, *args], cwd=server.project, env=env, capture_output=True, text=True, timeout=60, check=False
    )


def covey(source: Path, server: Server, command: str, *args: str) -> subprocess.CompletedProcess[str]:
    where = ("--host", f"tcp://127.0.0.1:{server.port}", "--token-file", str(server.data_dir / "token"))
    return python(source, server, "-m", "covey", command, *where, *args)


@pytest.mark.parametrize("is_old", ["client", "server"])
def test_a_client_and_a_server_of_different_versions_work_together(
    is_old: str, old: Path, tmp_path: Path, model: FakeModel
) -> None:
    client, serving = (old, NEW) if is_old == "client" else (NEW, old)
    with running(tmp_path, provider_config(model.url), {"PYTHONPATH": str(serving)}) as server:
        host = f"tcp://127.0.0.1:{server.port}"
        day = python(client, server, either_client.__file__, host, server.token, str(server.project))
        assert day.returncode == 0, day.stderr
        assert json.loads(day.stdout) == DAY
        assert (server.project / "made").exists() and not (server.project / "new.txt").exists()

        ran = covey(client, server, "run", "--json", "--run-id", "mine", "hello")
        assert (ran.returncode, json.loads(ran.stdout)["text"]) == (exits.OK, HELLO), ran.stderr
        denied = covey(client, server, "run", "-q", either_client.TOUCH)
        assert "denied, because nobody is here to be asked" in denied.stderr
        assert denied.stdout.endswith("made it\n")
        listed = covey(client, server, "sessions", "--json")
        assert "Renamed" in [session["title"] for session in json.loads(listed.stdout)], listed.stderr
        watched = server.workspace()
        watched.stream()  # status names what is open, and without a client it is released after a while
        status = covey(client, server, "status", "--json")
        assert str(server.project) in status.stdout, status.stderr
        watched.close()
        stopped = covey(client, server, "stop")
        assert stopped.returncode == exits.OK, stopped.stderr
        assert server.wait() == 0


def test_a_prompt_with_a_schema_is_not_taken_for_answered_by_a_server_that_knows_no_schemas(
    old: Path, tmp_path: Path, model: FakeModel
) -> None:
    with running(tmp_path, provider_config(model.url), {"PYTHONPATH": str(old)}) as server:
        done = covey(NEW, server, "run", "--json", "--schema", "{}", "hello")
        assert done.returncode == exits.FAILED
        assert "older than --schema" in json.loads(done.stdout)["error"]


def test_a_store_of_an_older_version_is_opened_and_goes_on(tmp_path: Path, model: FakeModel) -> None:
    """It was killed: one run was active, one queued."""
    notes = tmp_path / "project" / "notes.txt"
    notes.parent.mkdir()
    notes.write_text(NEW_TEXT)
    epoch = old_covey.load_store(tmp_path / "data", notes.parent)
    with running(tmp_path, provider_config(model.url)) as server:
        workspace = server.workspace()
        sessions = {session["title"]: session for session in workspace.get("/sessions")}
        assert set(sessions) == {"Talk", "Stopped", "Summed up"}
        talk, stopped = sessions["Talk"]["id"], sessions["Stopped"]["id"]
        assert sessions["Summed up"]["summary_message_id"]
        assert workspace.ended("active")["state"] == "interrupted"
        assert workspace.ended("queued")["state"] == "completed"
        states = {run["run_id"]: run["state"] for run in workspace.get("/runs")}
        assert states.items() >= {"talk-0": "completed", "cancelled": "cancelled", "long": "completed"}.items()
        assert [line for line in outline(workspace.messages(stopped)) if line.startswith("assistant")] == [
            "assistant canceled", "assistant error", "assistant end_turn",
        ]  # fmt: skip

        replayed = workspace.stream(last_event_id=f"{epoch}.1")
        assert replayed.terminal("talk-0")["text"] == HELLO
        assert replayed.terminal("active")["interrupted"] is True
        again = workspace.prompt(talk, "hello", run_id="talk-0")
        assert (again["seq"], again["state"]) == (1, "completed")

        undone = workspace.request("POST", f"/sessions/{talk}/undo", {}).ok()
        assert [turn["run_id"] for turn in undone["undone"]] == ["talk-2"]
        assert notes.read_text() == OLD_TEXT
        assert workspace.ended(workspace.prompt(talk, "hello", run_id="new")["run_id"])["text"] == HELLO
        workspace.close()
    doctor = python(NEW, server, "-m", "covey", "doctor", "--data-dir", str(server.data_dir), "--json")
    assert (doctor.returncode, json.loads(doctor.stdout).get("findings", [])) == (0, []), doctor.stdout
