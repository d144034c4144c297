"""Runs tool calls so that what they change in files is known: as the tool itself says, or by watching its command."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from covey.engine.command_changes import Changes, CommandChanges, Watch, so_far
from covey.engine.recorder import Batch, Recorder
from covey.engine.turns.file_versions import Cause, OwningTurn, record_changes
from covey.engine.world import World
from covey.permissions.judge import Intent, Rules, judge
from covey.protocol.changes import WATCHED
from covey.protocol.effects import Effect
from covey.protocol.runs import Run
from covey.tools.base import Tool, ToolContext, ToolFailed, ToolOutput
from covey.tools.jobs import Jobs

STILL_RUNS = "a job that it left running went on after the turn"


class Watching:
    """What the calls of a workspace's turns change."""

    def __init__(self, changes: CommandChanges, jobs: Jobs, recorder: Recorder, world: World) -> None:
        self._changes = changes
        self._jobs = jobs
        self._recorder = recorder
        self._world = world
        self._left_running: dict[str, dict[str, Watch]] = {}
        """For each run under way that has run commands: those that it left running, by the id of the job."""

    async def run(
        self, tool: Tool[Any], params: Any, context: ToolContext, intent: Intent, owner: OwningTurn
    ) -> tuple[ToolOutput, Changes]:
        """The result of a call, and what it changed. `owner`: the turn that this counts for."""
        if not (tool.starts_processes and tool.effect is Effect.RUNS_COMMANDS):
            return await self._trusted(tool, params, context, intent)
        if is_harmless(intent, str(context.root)):
            output = await tool.run(params, context)
            return replace(output, metadata={**output.metadata, WATCHED: True}), Changes()
        return await self._command(tool, params, context, intent, owner)

    async def _trusted(
        self, tool: Tool[Any], params: Any, context: ToolContext, intent: Intent
    ) -> tuple[ToolOutput, Changes]:
        """A tool that says itself what it has changed. That is no change of a command which runs beside it."""
        with self._changes.touching([each.subject for each in intent.each if each.action == "write"]):
            output = await tool.run(params, context)
        with self._changes.touching(os.fspath(file.path) for file in output.files):
            return output, Changes(output.files)

    async def _command(
        self, tool: Tool[Any], params: Any, context: ToolContext, intent: Intent, owner: OwningTurn
    ) -> tuple[ToolOutput, Changes]:
        left_running = self._left_running.setdefault(context.run_id, {})
        watch = await self._changes.begin(owner.session_id, "command", intent.subject)
        try:
            output = await tool.run(params, context)
        except ToolFailed as error:
            output = ToolOutput(str(error), is_error=True)
        except BaseException:
            await self._cut_off(watch, context.run_id, owner)
            raise
        follow = None
        if job_id := _job_of(output.metadata):
            left_running[job_id] = follow = Watch(owner.session_id, "job", watch.label)
        try:
            changes = await self._changes.end(watch, follow)
        except asyncio.CancelledError:
            self._record(so_far(watch), context.run_id, owner)
            raise
        return replace(output, metadata={**output.metadata, WATCHED: not changes.missed}), changes

    async def _cut_off(self, watch: Watch, run_id: str, owner: OwningTurn) -> None:
        """The call has no result of its own, in which its changes could be recorded."""
        try:
            await self._changes.end(watch)
        finally:
            self._record(so_far(watch), run_id, owner)

    async def end_jobs(self, run: Run, owner: OwningTurn) -> None:
        """The turn is about to end: record what was changed while its jobs ran."""
        for job_id, watch in self._left_running.get(run.run_id, {}).items():
            changes = await self._changes.end(watch)
            if not changes.missed and self._jobs.is_running(job_id):
                changes = replace(changes, missed=STILL_RUNS)
            self._record(changes, run.run_id, owner)

    def forget(self, run_id: str) -> None:
        """The turn has ended: nothing is recorded of it any more."""
        for watch in self._left_running.pop(run_id, {}).values():
            self._changes.drop(watch)

    def _record(self, changes: Changes, run_id: str, owner: OwningTurn) -> None:
        if run_id in self._left_running and (changes.files or changes.missed):
            batch = Batch()
            record_changes(batch, changes, Cause(owner.session_id, owner.run_id, self._world.new_id()), self._world)
            self._recorder.write(batch)


def is_harmless(intent: Intent, root: str) -> bool:
    """A command that only looks, whoever may have allowed it: nothing has to be watched."""
    return judge(intent, Rules(root=root), frozenset(), skip=False).tag == "harmless"


def _job_of(metadata: Mapping[str, Any]) -> str:
    return str(metadata.get("job_id", ""))
