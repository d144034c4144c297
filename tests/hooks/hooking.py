"""The engine at work with hooks: real processes, which write down what they were told."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from covey.config.schema import Config, HookCommand, HookGroup
from covey.machine.names import run_tag
from covey.protocol.hook_events import HookEvent
from covey.protocol.messages import ToolResult
from covey.protocol.requests import PostPrompt
from covey.tools import process_table
from tests.support.engine import Engine, config, running, within

RUN = f"hooked-{os.getpid()}"
"""Processes of a run are found by its id: each process of the tests has one of its own."""
LISTEN = """
import json, os, sys
told = sys.stdin.read()
with open({log!r}, "a") as log:
    log.write(json.dumps(json.loads(told)) + "\\n")
{then}
"""


class Scripts:
    """Hooks of a test, each a Python script that first notes what it is told."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory / "hooks"
        self.directory.mkdir()
        self.log = directory / "told.jsonl"
        self.project = directory / "project"
        self.project.mkdir()
        (self.project / "a.txt").write_text("one\n")

    def says(self, then: str = "", **more: Any) -> HookCommand:
        """A hook that goes on with this Python code."""
        path = self.directory / f"hook{len(list(self.directory.iterdir()))}.py"
        path.write_text(LISTEN.format(log=str(self.log), then=then))
        return HookCommand(command=f"{sys.executable} {path}", **more)

    def answers(self, answer: Any, **more: Any) -> HookCommand:
        return self.says(f"print({json.dumps(json.dumps(answer))})", **more)

    def told(self, event: str = "") -> list[dict[str, Any]]:
        """What hooks were told, in the order in which they noted it."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        told = [json.loads(line) for line in lines]
        return [each for each in told if event in ("", each["hook_event_name"])]

    @contextlib.asynccontextmanager
    async def working(
        self, hooks: dict[HookEvent, Sequence[HookGroup]], settings: Config | None = None
    ) -> AsyncIterator[Engine]:
        given = msgspec.structs.replace(settings or config(), hooks={e: tuple(groups) for e, groups in hooks.items()})
        async with running(self.directory.parent, project=self.project, settings=given) as engine:
            yield engine


def group(*hooks: HookCommand, matcher: str = "") -> HookGroup:
    return HookGroup(matcher=matcher, hooks=hooks)


def specific(event: str = "PreToolUse", **fields: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": event, **fields}}


async def play(engine: Engine, run_id: str = RUN, prompt: str = "go", **options: Any) -> list[ToolResult]:
    """One run; gives the results of its calls."""
    request = PostPrompt(session_id=engine.session_id, prompt=prompt, run_id=run_id, **options)
    await within(engine.workspace.runs.post(request))
    await engine.ended(run_id)
    return results(engine, run_id)


def results(engine: Engine, run_id: str) -> list[ToolResult]:
    messages = [message for message in engine.messages() if message.run_id == run_id]
    return [result for message in messages for result in message.tool_results]


def processes_of(run_id: str) -> set[Any]:
    """Those that are still alive of a run."""
    return process_table.tagged(run_tag("w", run_id))
