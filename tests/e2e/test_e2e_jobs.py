"""Jobs outlive the command that started them, and people see and end them from elsewhere (R17)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.fake_model import Call, FakeModel, Recorded, Reply
from tests.support.server import Server, Workspace, provider_config, running, until

WATCH = "echo begun; until [ -e go ]; do sleep 0.02; done; echo over; exit 5"


@pytest.fixture
def server(tmp_path: Path, model: FakeModel) -> Iterator[Server]:
    model.on(_leaves_a_job)
    with running(tmp_path, provider_config(model.url, '[permissions]\nallow = ["bash"]\n')) as started:
        yield started


def _leaves_a_job(request: Recorded) -> Reply:
    if request.call_number == 0:
        return Reply(text="", tools=(Call(name="bash", input={"command": WATCH, "background": True}),))
    return Reply(text="It runs.")


def covey(server: Server, *args: str) -> subprocess.CompletedProcess[str]:
    where = ("--host", f"tcp://127.0.0.1:{server.port}", "--data-dir", str(server.data_dir))
    return subprocess.run(
        [sys.executable, "-m", "covey", *args, *where],
        cwd=server.project,
        capture_output=True,
        text=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
    )


def left_running(workspace: Workspace) -> str:
    """A session whose run has ended, and whose job has not."""
    session = workspace.session()
    workspace.prompt(session, "watch", run_id="r1")
    workspace.ended("r1")
    until(lambda: workspace.get("/jobs/job-1").get("output") == "begun\n")
    return session


def test_a_job_is_listed_looked_at_and_ended_by_others(server: Server, workspace: Workspace) -> None:
    session = left_running(workspace)
    (job,) = workspace.get("/jobs")
    assert (job["id"], job["session_id"], job["command"], job["is_running"]) == ("job-1", session, WATCH, True)
    listed = covey(server, "jobs")
    assert (listed.returncode, listed.stderr) == (0, "") and "job-1     running" in listed.stdout
    assert "1 in the background" in covey(server, "status").stdout
    assert covey(server, "jobs", "output", "job-1").stdout == "begun\n"
    killed = covey(server, "jobs", "kill", "job-1")
    assert killed.returncode == 0 and "ended (killed)" in killed.stdout
    assert workspace.get("/jobs/job-1")["is_running"] is False
    assert covey(server, "jobs", "kill", "job-9").returncode == 1
    assert "there is no a/path of" in covey(server, "jobs", "kill", "a/path").stderr, "and nothing of routes"


def test_a_job_that_ends_by_itself_says_how(server: Server, workspace: Workspace) -> None:
    left_running(workspace)
    (server.project / "go").touch()
    until(lambda: workspace.get("/jobs/job-1")["is_running"] is False)
    job = workspace.get("/jobs/job-1")
    assert (job["exit_code"], job["output"]) == (5, "begun\nover\n")


def test_a_server_with_a_job_is_not_idle(server: Server, workspace: Workspace) -> None:
    left_running(workspace)
    workspace.close()
    server.request("POST", "/v1/control", {"command": "shutdown_if_idle"}).refused(409, "busy")


def test_what_a_job_wrote_and_how_it_ended_outlives_the_workspace_and_the_server(
    server: Server, workspace: Workspace, model: FakeModel
) -> None:
    session = left_running(workspace)
    (server.project / "go").touch()
    until(lambda: workspace.get("/jobs/job-1")["is_running"] is False)
    workspace.close()
    assert server.stop() == 0
    server.start()
    shown = json.loads(covey(server, "jobs", "output", "job-1", "--json").stdout)
    assert (shown["state"], shown["exit_code"], shown["output"]) == ("exited", 5, "begun\nover\n")
    assert "ended (exit 5)" in covey(server, "jobs").stdout
    model.on(lambda request: Reply(text="I see."))
    for prompt in ("and now?", "and now again?"):
        assert covey(server, "run", "--session", session, prompt).returncode == 0
    told = [str(request.body).count("is not running any more: exit code 5") for request in model.requests[-2:]]
    assert told == [1, 1], "the model is told, and what it was told stays one note in the conversation"


def test_a_job_that_a_killed_server_took_along_is_listed_and_told_once(
    server: Server, workspace: Workspace, model: FakeModel
) -> None:
    session = left_running(workspace)
    kept = server.data_dir / "jobs"
    until(lambda: any(kept.glob("*/job-1.json")))
    server.kill()
    server.start()
    assert "job-1     ended (with the server)" in covey(server, "jobs").stdout
    assert json.loads(covey(server, "jobs", "output", "--json", "job-1").stdout)["state"] == "closed"
    model.on(lambda request: Reply(text="I see."))
    for prompt in ("and now?", "and now again?"):
        assert covey(server, "run", "--session", session, prompt).returncode == 0
    told = [str(request.body).count("ended when the server was killed") for request in model.requests[-2:]]
    assert told == [1, 1], "the model is told, and what it was told stays one note in the conversation"


def test_a_job_of_another_directory_is_said_to_be_there(server: Server, workspace: Workspace, tmp_path: Path) -> None:
    left_running(workspace)
    other = tmp_path / "other"
    other.mkdir()
    refused = covey(server, "jobs", "output", "job-1", "--cwd", str(other))
    assert refused.returncode == 1
    assert f"covey jobs output job-1 --cwd {server.project}" in refused.stderr
    nowhere = covey(server, "jobs", "output", "job-7", "--cwd", str(other))
    assert f"there is no job-7 of {other}" in nowhere.stderr and "--cwd DIR" in nowhere.stderr
