"""What tool calls run in: the engine chooses it, and it holds also where the judgement was wrong."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import threading
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from covey.config.load import config_dir
from covey.config.schema import AllowRule, Config, PermissionSettings
from covey.permissions.judge import Judgement, Verdict
from covey.protocol.events import PermissionRequest
from covey.protocol.messages import SessionMode, ToolResult
from covey.protocol.requests import PostPrompt, UpdateSession
from covey.protocol.runs import SandboxMode
from covey.sandbox import probe
from covey.sandbox.plan import Abilities, Views
from tests.support.engine import Engine, call, config, running, within

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(
        probe.probed().landlock < 6 or not probe.probed().seccomp or probe.probed().views is Views.NONE,
        reason="this system cannot do all of the sandbox",
    ),
]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    made.mkdir()
    return made


@pytest.fixture
def port() -> Iterator[int]:
    """Somebody who listens, says hello and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection:
                        connection.sendall(b"hello\n")

        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


def own(run_id: str) -> str:
    """Processes are found by the id of their run: it must be another one in every process that runs these tests."""
    return f"{run_id}-{os.getpid()}"


def connects(port: int) -> str:
    return f"exec 3<>/dev/tcp/127.0.0.1/{port} && head -n 1 <&3"


def with_permissions(**fields: Any) -> Config:
    return msgspec.structs.replace(config(), permissions=PermissionSettings(**fields))


async def results(engine: Engine, run_id: str) -> list[ToolResult]:
    await engine.ended(own(run_id))
    return [result for m in engine.messages() if m.run_id == own(run_id) for result in m.tool_results]


async def ran(engine: Engine, run_id: str, command: str, sandbox: SandboxMode | None = None, **params: Any) -> str:
    """What a command gives about which nobody is asked."""
    engine.model.answer(*call("bash", command=command, **params))
    await within(
        engine.workspace.runs.post(
            PostPrompt(session_id=engine.session_id, prompt="go", run_id=own(run_id), sandbox=sandbox)
        )
    )
    await engine.until(lambda: own(run_id) in engine.terminals() or asked(engine, run_id))
    assert not asked(engine, run_id), asked(engine, run_id)
    (result,) = await results(engine, run_id)
    return result.content


def asked(engine: Engine, run_id: str) -> list[PermissionRequest]:
    return [request for request in engine.of_type(PermissionRequest) if request.run_id == own(run_id)]


async def allowed(
    engine: Engine,
    run_id: str,
    command: str,
    action: Any = "allow",
    *,
    further: dict[str, bool] | None = None,
    **params: Any,
) -> tuple[PermissionRequest, ToolResult]:
    """What is asked about a command, and what it gives once it is allowed."""
    engine.model.answer(*call("bash", command=command, **params))
    await engine.post("go", own(run_id))
    await engine.until(lambda: asked(engine, run_id))
    (request,) = asked(engine, run_id)
    assert await engine.grant(request.id, action, "", **(further or {}))
    (result,) = await results(engine, run_id)
    return request, result


async def use(engine: Engine, mode: SessionMode) -> None:
    await within(engine.workspace.sessions.update(engine.session_id, UpdateSession(mode=mode)))


# ── what nobody was asked about ──


async def test_what_nobody_was_asked_about_can_only_look_even_if_the_judgement_is_wrong(
    tmp_path: Path, project: Path, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "canary").write_text("CANARY")
    (project / "inside").write_text("INSIDE")
    harmless = Judgement(Verdict.ALLOW, "harmless")
    monkeypatch.setattr("covey.engine.asks.permissions.judge", lambda *what, **how: harmless)
    async with running(tmp_path, project=project) as engine:
        assert "INSIDE" in await ran(engine, "a", "cat inside")
        for number, command in enumerate(("touch made", "echo x > inside", "rm inside", "chmod 777 inside", "mkdir d")):
            content = await ran(engine, f"b{number}", command)
            assert "exit code 0" not in content
            assert "nobody was asked" in content
        content = await ran(engine, "c", f"cat {tmp_path}/canary; ls {tmp_path}")
        assert "CANARY" not in content
        assert "hello" not in await ran(engine, "d", connects(port))
        assert "hello" not in await ran(engine, "e", f"{connects(port)} & wait")
    assert sorted(os.listdir(project)) == ["inside"]
    assert (project / "inside").read_text() == "INSIDE"


async def test_a_search_finds_what_is_there_and_only_where_it_may_look(tmp_path: Path, project: Path) -> None:
    (project / "a.txt").write_text("needle")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "b.txt").write_text("needle")
    async with running(tmp_path, project=project) as engine:
        engine.model.answer(*call("grep", pattern="needle"))
        await engine.post("go", own("a"))
        (result,) = await results(engine, "a")
        assert "a.txt" in result.content
        engine.model.answer(*call("grep", pattern="needle", path=str(tmp_path / "outside")))
        await engine.post("go", own("b"))
        await engine.until(lambda: asked(engine, "b"))
        (request,) = asked(engine, "b")
        assert (request.sandbox, request.confined) == (None, False)
        await engine.grant(request.id, "allow")
        (result,) = await results(engine, "b")
        assert "b.txt" in result.content


# ── what was allowed ──


async def test_what_was_allowed_changes_the_workspace_and_not_what_git_runs(tmp_path: Path, project: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    async with running(tmp_path, project=project) as engine:
        request, result = await allowed(engine, "a", "touch made && echo x > .git/hooks/pre-commit")
        assert request.confined and "no network unless you say so" in (request.sandbox or "")
        assert "protected" in result.content
        assert json.loads(result.metadata)["sandbox"]["denied"]["remedy"] == "write"
        await allowed(engine, "b", f"touch {tmp_path}/outside")
    assert (project / "made").exists()
    assert not (project / ".git/hooks/pre-commit").exists()
    assert not (tmp_path / "outside").exists()


async def test_a_repository_that_a_command_has_made_is_protected_from_the_next_one(
    tmp_path: Path, project: Path
) -> None:
    async with running(tmp_path, project=project) as engine:
        await allowed(engine, "a", "git init -q")
        await allowed(engine, "b", "git config core.fsmonitor ./evil; echo x > .git/hooks/pre-commit")
    assert "evil" not in (project / ".git/config").read_text()
    assert not (project / ".git/hooks/pre-commit").exists()


async def test_a_command_has_the_network_only_if_the_answer_says_so(tmp_path: Path, project: Path, port: int) -> None:
    async with running(tmp_path, project=project) as engine:
        _, result = await allowed(engine, "a", connects(port))
        assert "hello" not in result.content
        _, result = await allowed(engine, "b", connects(port), further={"network": True})
        assert "hello" in result.content
        assert json.loads(result.metadata)["sandbox"] == {"policy": "approved", "network": True}
        _, result = await allowed(engine, "c", connects(port), further={"unsandboxed": True})
        assert "hello" in result.content
        assert "sandbox" not in json.loads(result.metadata)


async def test_a_refused_connection_says_how_to_ask_for_it(tmp_path: Path, project: Path) -> None:
    async with running(tmp_path, project=project) as engine:
        request, result = await allowed(engine, "a", "curl -sS http://example.invalid/")
        assert request.network
        if "command not found" not in result.content:
            assert "network set to true" in result.content
            assert json.loads(result.metadata)["sandbox"]["denied"]["offer"] == "Allow network once"


async def test_the_session_and_the_rule_remember_the_network(tmp_path: Path, project: Path, port: int) -> None:
    async with running(tmp_path, project=project) as engine:
        line = connects(port)
        await allowed(engine, "a", line, "allow_session")
        assert "hello" not in await ran(engine, "b", line), "without the network, as it was answered"
        request, _ = await allowed(engine, "c", line, "allow_session", network=True, further={"network": True})
        assert request.network
        assert "hello" in await ran(engine, "d", line, network=True)
        other = f"{line} | cat"
        await allowed(engine, "e", other, "allow_always", further={"network": True})
        written = tomllib.loads((config_dir(engine.shared.environ) / "config.toml").read_text())
        rules = written["projects"][str(project)]["permissions"]["allow"]
        assert rules == [{"rule": f"bash:{other}", "network": True}]


async def test_what_asks_for_the_network_is_asked_about_even_if_it_is_harmless(tmp_path: Path, project: Path) -> None:
    async with running(tmp_path, project=project) as engine:
        request, result = await allowed(engine, "a", "echo hi", network=True)
        assert (request.network, request.reason) == (True, "`echo hi` asks for the network.")
        assert "hi" in result.content


async def test_rules_give_the_network_or_lift_the_sandbox(tmp_path: Path, project: Path, port: int) -> None:
    (project / "connect").write_text(f"#!/bin/bash\n{connects(port)}\n")
    (project / "leave").write_text(f"#!/bin/bash\ntouch {tmp_path}/left\n")
    for name in ("connect", "leave"):
        (project / name).chmod(0o755)
    allow = (
        AllowRule(rule="bash:./connect", network=True),
        "bash:./connect plainly",
        "bash:./leave plainly",
        AllowRule(rule="bash:./leave", sandbox="off"),
    )
    async with running(tmp_path, project=project, settings=with_permissions(allow=allow)) as engine:
        assert "hello" in await ran(engine, "a", "./connect")
        assert "hello" not in await ran(engine, "b", "./connect plainly")
        assert "hello" not in await ran(engine, "c", "./connect; ./connect plainly"), "one of them has no network"
        await ran(engine, "d", "./leave plainly")
        assert not (tmp_path / "left").exists()
        await ran(engine, "e", "./leave")
        assert (tmp_path / "left").exists()


async def test_yolo_has_the_network_and_still_leaves_alone_what_is_outside(
    tmp_path: Path, project: Path, port: int
) -> None:
    async with running(tmp_path, project=project) as engine:
        await engine.workspace.asks.set_skip(True)
        assert "hello" in await ran(engine, "a", connects(port))
        await ran(engine, "b", f"touch {tmp_path}/left")
        assert not (tmp_path / "left").exists()
        assert "only a rule or the setting" in await ran(engine, "c", "id", unsandboxed=True)
        await ran(engine, "d", f"touch {tmp_path}/left", sandbox="off")
        assert (tmp_path / "left").exists()


# ── where the system cannot, and the setting ──

NOTHING = Abilities("x86_64", 0, False, Views.NONE)


async def test_where_there_is_no_sandbox_the_question_says_so(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "probed", lambda: NOTHING)
    async with running(tmp_path, project=project) as engine:
        await use(engine, "sandboxed")
        request, result = await allowed(engine, "a", "touch made")
        assert "There is no sandbox on this system" in (request.sandbox or "")
        assert not request.confined
        assert "exit code 0" in result.content


async def test_where_it_is_required_and_there_is_none_the_call_fails_with_a_sentence(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "probed", lambda: NOTHING)
    async with running(tmp_path, project=project, settings=with_permissions(sandbox="required")) as engine:
        for run_id, command in (("a", "ls"), ("b", "touch made")):
            content = await ran(engine, run_id, command)
            assert "sandbox is required, and this system cannot" in content
    assert not (project / "made").exists()


async def test_a_run_can_do_without(tmp_path: Path, project: Path) -> None:
    async with running(tmp_path, project=project, settings=with_permissions(allow=("bash",))) as engine:
        await ran(engine, "a", f"touch {tmp_path}/one")
        await ran(engine, "b", f"touch {tmp_path}/two", sandbox="off")
    assert (os.path.exists(tmp_path / "one"), os.path.exists(tmp_path / "two")) == (False, True)


# ── ends ──


async def test_a_timeout_and_a_cancel_end_all_that_a_sandboxed_command_has_started(
    tmp_path: Path, project: Path
) -> None:
    os.mkfifo(project / "started")
    line = "(sleep 987.65 & sleep 987.65 & echo $$ > started; wait)"
    async with running(tmp_path, project=project, settings=with_permissions(allow=("bash",))) as engine:
        assert "Not finished after 1 s" in await ran(engine, "a", line.replace("started", "made"), timeout_s=1)
        engine.model.answer(*call("bash", command=line))
        await engine.post("go", own("b"))
        await within(asyncio.to_thread((project / "started").read_text))
        await engine.cancel()
        assert (await engine.ended(own("b"))).state == "cancelled"
    assert not [name for name in os.listdir("/proc") if name.isdigit() and _runs(name, b"987.65")]


def _runs(pid: str, word: bytes) -> bool:
    with contextlib.suppress(OSError):
        return word in Path("/proc", pid, "cmdline").read_bytes().split(b"\0")
    return False


# ── modes ──

TASK = (
    call("view", "c1", file_path="a.py"),
    call("edit", "c2", file_path="a.py", old_string="1", new_string="2"),
    call("write", "c3", file_path="b.py", content="b = 2\n"),
    call("bash", "c4", command="python3 -c 'import a, b'"),
    call("bash", "c5", command="npm ci"),
    call("bash", "c6", command="git add -A && git -c user.name=x -c user.email=x@y commit -qm done"),
)
QUESTIONS: dict[SessionMode, int] = {"ask": 5, "accept_edits": 3, "sandboxed": 1, "plan": 0}
"""As docs/PERMISSIONS.md has them."""


@pytest.mark.parametrize("mode", QUESTIONS)
async def test_how_much_a_task_asks_depends_on_the_mode(tmp_path: Path, project: Path, mode: SessionMode) -> None:
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    (project / "a.py").write_text("a = 1\n")
    async with running(tmp_path, project=project) as engine:
        await use(engine, mode)
        for step in TASK:
            engine.model.answer(*step)
        await engine.post("do it", own("a"))
        for number in range(1, QUESTIONS[mode] + 1):
            await engine.until(lambda number=number: len(asked(engine, "a")) >= number)  # type: ignore[misc]
            await engine.grant(asked(engine, "a")[-1].id, "allow")
        await engine.ended(own("a"))
        assert len(asked(engine, "a")) == QUESTIONS[mode]
    commits = subprocess.run(["git", "rev-list", "--all", "--count"], cwd=project, capture_output=True, text=True)
    done = ((project / "a.py").read_text(), (project / "b.py").exists(), commits.stdout.strip())
    assert done == (("a = 1\n", False, "0") if mode == "plan" else ("a = 2\n", True, "1"))


async def test_a_mode_lifts_no_deny_rule_and_no_protection(tmp_path: Path, project: Path) -> None:
    settings = with_permissions(deny=("bash:rm *",), ask=("bash:make*",))
    async with running(tmp_path, project=project, settings=settings) as engine:
        await use(engine, "sandboxed")
        assert "forbids it" in await ran(engine, "a", "rm -rf x")
        await allowed(engine, "b", "make it")
        await allowed(engine, "c", "touch x", unsandboxed=True)
        engine.model.answer(*call("write", file_path="covey.toml", content="x"))
        await engine.post("go", own("d"))
        await engine.until(lambda: asked(engine, "d"))
        await engine.cancel()


async def test_a_session_that_begins_to_plan_changes_nothing_from_the_next_call_on(
    tmp_path: Path, project: Path
) -> None:
    async with running(tmp_path, project=project) as engine:
        await use(engine, "sandboxed")
        await ran(engine, "a", "touch one")
        await use(engine, "plan")
        assert "plan mode" in await ran(engine, "b", "touch two")
        assert "bash" in [tool.name for tool in engine.model.requests[-1].tools]
        assert "write" not in [tool.name for tool in engine.model.requests[-1].tools]
        await use(engine, "ask")
        assert engine.workspace.sessions.get(engine.session_id).mode is None
    assert sorted(os.listdir(project)) == ["one"]
