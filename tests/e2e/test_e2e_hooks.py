"""A real server with hooks: after kill -9, or a shutdown in the middle of one, no process of it is left."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from covey.machine.names import TAG_VARIABLE
from tests.support.fake_model import Call, FakeModel, Reply
from tests.support.server import Server, Workspace, provider_config, until

SLEEP = 100_000 + os.getpid()
"""Its processes are told from those of other tests by how long they would sleep."""
COMMAND = f"setsid sleep {SLEEP} & touch started; sleep {SLEEP}"
HOOKS = "".join(f"""
[[hooks.{event}]]
matcher = "{matcher}"
hooks = [{{ command = "{COMMAND}" }}]
""" for event, matcher in (("PreToolUse", "Write"), ("Stop", "")))  # fmt: skip


@pytest.fixture
def server_config(model: FakeModel) -> str:
    return provider_config(model.url) + HOOKS


def sleepers() -> list[str]:
    """The processes of hooks that are alive, whoever is their parent by now."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if (
                f"sleep\0{SLEEP}".encode() in (path / "cmdline").read_bytes()
                and TAG_VARIABLE.encode() in (path / "environ").read_bytes()
            ):
                found.append(path.name)
        except OSError:  # it has ended meanwhile
            continue
    return found


@pytest.mark.parametrize(("moment", "how"), [("PreToolUse", "kill"), ("Stop", "kill"), ("Stop", "shutdown")])
def test_no_process_of_a_hook_outlives_its_run(
    server: Server, workspace: Workspace, model: FakeModel, moment: str, how: str
) -> None:
    call = Call(name="write", input={"file_path": "a.txt", "content": "x"})
    model.on(lambda request: Reply(tools=(call,)) if moment == "PreToolUse" else Reply(text="done"))
    session = workspace.session()
    workspace.prompt(session, "go", run_id="r1")
    until(lambda: (server.project / "started").exists() and len(sleepers()) >= 2)
    match how:
        case "kill":
            server.kill()
            assert sleepers(), "it was killed too early to show anything"
            server.start()
            assert workspace.ended("r1")["state"] == "interrupted"
        case _:
            server.stop()
            server.start()
            assert workspace.ended("r1")["state"] == "cancelled"
    until(lambda: not sleepers())
    assert not (server.project / "a.txt").exists()
