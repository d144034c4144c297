"""Real MCP servers: what people use is what works. `make install` prepares them in an environment of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from covey.config.schema import McpSettings
from covey.tools import process_table
from tests.support.engine import Model, config, running
from tests.support.mcp import TAG, McpEngine, tagged

pytestmark = pytest.mark.anyio
BIN = Path(sys.executable).parent.parent / "mcp-servers" / "bin"
needs_servers = pytest.mark.skipif(
    not (BIN / "mcp-server-git").exists(), reason="the servers are not installed: make install"
)


def git(directory: Path, *words: str) -> str:
    identity = ("-c", "user.name=ann", "-c", "user.email=ann@example.org", "-c", "init.defaultBranch=main")
    done = subprocess.run(["git", *identity, *words], cwd=directory, capture_output=True, text=True, check=True)
    return done.stdout


@needs_servers
async def test_a_coding_task_through_git_time_and_fetch_ends_in_a_commit(tmp_path: Path) -> None:
    """The model edits a file, looks and commits through MCP git, asks MCP time, and is refused by fetch."""
    project, data = tmp_path / "project", tmp_path / "data"
    for directory in (project, data):
        directory.mkdir()
    git(project, "init", "-q")
    git(project, "config", "user.name", "ann")
    git(project, "config", "user.email", "ann@example.org")
    (project / "answer.py").write_text("answer = 41\n")
    git(project, "add", ".")
    git(project, "commit", "-qm", "begin")
    servers = {
        "git": McpSettings(
            command=str(BIN / "mcp-server-git"), args=("--repository", str(project)), reads=("git_status",)
        ),
        "time": McpSettings(command=str(BIN / "mcp-server-time")),
        "fetch": McpSettings(command=str(BIN / "mcp-server-fetch")),
    }
    model = Model()
    settings = msgspec.structs.replace(config(), mcp=servers)
    with tagged():
        async with running(data, settings=settings, project=project, model=model) as engine:
            found = McpEngine(engine, model, tmp_path)
            await found.approve(*servers)
            assert {found.server(name).catalogue.pins.era for name in servers} == {"modern"}
            here = {"repo_path": str(project)}
            results = await found.run(
                ("view", {"file_path": "answer.py"}),
                ("edit", {"file_path": "answer.py", "old_string": "41", "new_string": "42"}),
                ("mcp__git__git_status", here),
                ("mcp__git__git_add", {**here, "files": ["answer.py"]}),
                ("mcp__git__git_commit", {**here, "message": "The answer is 42"}),
                ("mcp__git__git_log", {**here, "max_count": 1}),
                ("mcp__time__get_current_time", {"timezone": "UTC"}),
                ("mcp__git__git_status", {"repo_path": "/"}),
                ("mcp__fetch__fetch", {"url": "http://127.0.0.1:9/"}),
            )
            assert [result.is_error for result in results] == [False] * 7 + [True, True]
            assert "answer.py" in results[2].content and "The answer is 42" in results[5].content
            assert "timezone" in results[6].content
            outline = [(message.role, [call.name for call in message.tool_calls]) for message in engine.messages()]
            called = [result.name for result in results]
            assert called[2:5] == ["mcp__git__git_status", "mcp__git__git_add", "mcp__git__git_commit"]
            steps = [step for name in called for step in (("assistant", [name]), ("tool", []))]
            assert outline == [("user", []), *steps, ("assistant", [])]
            await engine.close()
        assert not process_table.tagged(TAG)
    assert git(project, "log", "--format=%s").splitlines() == ["The answer is 42", "begin"]
    assert git(project, "show", "HEAD:answer.py") == "answer = 42\n"
