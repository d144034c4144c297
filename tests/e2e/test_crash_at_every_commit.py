"""A real server is killed at each of its commits in turn, under load, and started again: nothing promised is lost.

The load has two sessions, a tool call that starts a process, a queue, a fold, a cancel by session and one by run id.
How many commits it takes depends on how they happen to be grouped; the test goes on until a server survives its load.
Usually each commit meets one of three faults in turn: killed before it, killed after it, terminated. `make heavy` has
all of them at each.
"""

from __future__ import annotations

import http.client
import os
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support import oracle
from tests.support.effort import IS_HEAVY, bound
from tests.support.fake_model import Call, FakeModel, Recorded, Reply
from tests.support.server import Server, Workspace, provider_config

MARKER = f"covey-crash-test-{os.getpid()}."
"""In the command lines of this process's own servers: others may run the same tests beside it."""
GONE = (ConnectionError, http.client.HTTPException, TimeoutError, OSError)
REFUSED = re.compile("workspace_closing|shutting_down|store_unavailable")
"""What a server in trouble may answer: it promises nothing then."""
ALLOW = '[permissions]\nallow = ["bash"]\n'


def answer(request: Recorded) -> Reply:
    if "slow" in request.prompt:
        return Reply(text="word ", chunks=20, delay_ms=5)
    if "tool" in request.prompt and request.call_number == 0:
        command = f"sleep 0.05 # {MARKER}"
        return Reply(text="", tools=(Call(name="bash", input={"command": command}, id=request.prompt),))
    return Reply(text=f"done {request.prompt}")


class Load:
    """Commands of several clients. Each one that got its answer is noted; a dead server ends them."""

    def __init__(self) -> None:
        self.accepted: dict[str, str] = {}
        self.cancelled: set[str] = set()

    def run(self, server: Server) -> bool:
        """True if the server survived all of it."""
        try:
            workspace = server.workspace()
            one, two = workspace.session(), workspace.session()
            self._post(workspace, one, "tool 1", run_id="tool-1")
            self._post(workspace, one, "queued 2", run_id="queued-2")
            self._post(workspace, one, "folded 3")
            self._post(workspace, two, "slow 4", run_id="slow-4")
            self._post(workspace, two, "dropped 5", run_id="dropped-5")
            self._cancel(workspace.cancel_run("dropped-5"))
            self._cancel(workspace.cancel_run("early-6"))
            self._post(workspace, two, "early 6", run_id="early-6")
            self._cancel(workspace.cancel(two))
            self._post(workspace, two, "last 7", run_id="last-7")
            for run_id in self.accepted:
                workspace.ended(run_id)
        except GONE:
            return False
        except AssertionError as error:
            if not REFUSED.search(str(error)):
                raise
            return False
        return True

    def _post(self, workspace: Workspace, session: str, prompt: str, **fields: Any) -> None:
        receipt = workspace.prompt(session, prompt, **fields)
        self.accepted[receipt["run_id"]] = prompt

    def _cancel(self, receipt: Any) -> None:
        found = [covered for covered in receipt["covered"] if covered["state_found"] != "folded"]
        self.cancelled |= {covered["run_id"] for covered in found}

    def check(self, server: Server, model: FakeModel) -> None:
        """The server has been started again: all that was promised must come true."""
        workspace = server.workspace()
        for run_id in self.accepted:
            run = workspace.ended(run_id)
            if run_id in self.cancelled:
                assert run["state"] == "cancelled", run
        first_calls = [request.prompt for request in model.requests if request.call_number == 0]
        assert len(first_calls) == len(set(first_calls)), f"a prompt ran twice: {first_calls}"


def processes_left() -> list[str]:
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                line = Path(f"/proc/{entry}/cmdline").read_bytes().decode("utf-8", "replace")
            except OSError:
                continue
            if MARKER in line:
                found.append(line)
    return found


def strike(directory: Path, fault: str) -> bool:
    """One life with a fault, one without, then the verdict. True if the fault never came about."""
    load = Load()
    with FakeModel(answer) as model:
        config = provider_config(model.url, ALLOW)
        server = Server(directory, config)
        server.may_log_errors = True
        try:
            server.program = ("-m", "tests.support.faulty_server", fault)
            server.env["PYTHONPATH"] = str(Path(__file__).parents[2])
            server.start()
            survived = load.run(server)
            if survived and server.process and server.process.poll() is None:
                server.stop()
            else:
                server.wait()
            server.program = ("-m", "covey")
            server.start()
            load.check(server, model)
            server.stop()
            oracle.check(server.data_dir, all_ended=True)
            assert not processes_left()
        finally:
            server.close()
    return survived


STRIDE = bound(3, 1)
"""From one commit that is struck to the next."""


@pytest.mark.larger
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("fault", "first"), [("kill:before", 1), ("kill:after", 2), ("term:after", 3)])
def test_r15_r13_killed_or_terminated_at_every_commit(tmp_path: Path, fault: str, first: int) -> None:
    number = 1 if IS_HEAVY else first
    while not strike(_made(tmp_path / str(number)), f"{fault}:{number}"):
        number += STRIDE
    assert number > 12, f"the load has only {number} commits"  # it waits for at least so many, one after the other


def _made(directory: Path) -> Path:
    directory.mkdir()
    return directory


@pytest.mark.larger
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("what", "first"), [("full", 4), ("io", 9), ("locked", 14)])
def test_a_store_that_fails_now_and_then_loses_nothing(tmp_path: Path, what: str, first: int) -> None:
    """A commit fails, and so do the next two: whoever waits gets a 503, and runs under way end as they must."""
    for number in bound(range(first, 30, 15), range(4, 30, 5)):
        directory = tmp_path / str(number)
        directory.mkdir()
        load = Load()
        with FakeModel(answer) as model:
            server = Server(directory, provider_config(model.url, ALLOW))
            server.may_log_errors = True
            server.program = ("-m", "tests.support.faulty_server", f"{what}:before:{number}")
            server.env["PYTHONPATH"] = str(Path(__file__).parents[2])
            try:
                server.start()
                load.run(server)
                load.check(server, model)
                server.stop()
                oracle.check(server.data_dir, all_ended=True)
            finally:
                server.close()
