"""Commands that people run themselves, in the directory of the workspace: at once, beside whatever the agent does.

Such a command is no run: no lane knows of it, and a cancel of the session does not end it. It ends with its client,
with the workspace, or by itself, and is recorded then as a message of its own that belongs to no turn. What it prints
until then everybody sees as live output, under the id of that message.
"""

from __future__ import annotations

import asyncio

from covey.engine.command_changes import Changes, Watch, so_far
from covey.engine.commands.intake import check_cwd
from covey.engine.commands.parts import WorkspaceParts
from covey.engine.recorder import Batch, confirmed
from covey.engine.turns.call_outputs import FeedSink
from covey.engine.turns.file_versions import cause_of, record_changes
from covey.engine.turns.watching import is_harmless
from covey.feed.outputs import OutputTail
from covey.machine.names import tag_within
from covey.permissions.judge import Intent
from covey.protocol.errors import BadRequest, Conflict
from covey.protocol.messages import Message, ShellCommand, ShellCommandPart
from covey.protocol.requests import RunShell, ShellResult
from covey.tools.bash import NOT_INTERACTIVE, OUTPUT_LIMIT
from covey.tools.git_guard import repository_of
from covey.tools.links import WorkspaceLinks
from covey.tools.live_output import LiveOutput
from covey.tools.output import Output
from covey.tools.processes import Completed

TIMEOUT_S = 600.0
"""As long as a command of the agent may take at most. For a longer one there are terminals."""
AT_ONCE = 10
"""Commands of people that may run in a workspace at the same time."""
TIMED_OUT, CUT_OFF = 124, 130
"""Exit codes of a command that took too long, and of one whose client left: those that shells use."""


class Shell:
    """The commands of people in one workspace."""

    def __init__(self, parts: WorkspaceParts) -> None:
        self._parts = parts
        self._running: set[asyncio.Task[ShellResult]] = set()

    async def run(self, session_id: str, request: RunShell) -> ShellResult:
        """Run it to its end, and record it. If whoever waits is cancelled it is ended, and recorded all the same."""
        self._parts.admission.check_open()
        await self._parts.session(session_id)
        if not request.command.strip():
            raise BadRequest("the command is empty", "empty_command")
        check_cwd(request.cwd)
        if len(self._running) >= AT_ONCE:
            raise Conflict(f"{len(self._running)} commands are running already: wait for one of them", "busy")
        task = asyncio.ensure_future(self._run(session_id, request))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait({task})
            raise

    async def close(self) -> None:
        """End what runs: the workspace closes."""
        running = set(self._running)
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)

    async def _run(self, session_id: str, request: RunShell) -> ShellResult:
        message_id = self._parts.shared.world.new_id()
        live = LiveOutput(FeedSink(self._parts.feed, OutputTail(session_id, "", message_id, message_id)))
        output = Output(OUTPUT_LIMIT, live=live)
        watch = await self._watch(session_id, request.command)
        try:
            try:
                completed = await self._completed(request, output)
            finally:
                live.close()
            changes = await self._parts.changes.end(watch) if watch else Changes()
        except asyncio.CancelledError:
            changes = await self._cut_off(watch)
            cut_off = ShellResult(output=output.text(), exit_code=CUT_OFF)
            self._record(session_id, message_id, request, cut_off, changes)
            raise
        except (OSError, ValueError) as error:
            await self._cut_off(watch)
            raise BadRequest(f"the command could not be started: {error}") from None
        result = ShellResult(output=completed.output, exit_code=_exit_code(completed))
        if written := self._record(session_id, message_id, request, result, changes):
            await confirmed(written)
        return result

    async def _watch(self, session_id: str, command: str) -> Watch | None:
        """None: it only looks, as far as anybody can tell from its text."""
        root = self._parts.agent.root
        intent = Intent("bash", "execute", command, repository=repository_of(root), links=WorkspaceLinks(root))
        if is_harmless(intent, str(root)):
            return None
        return await self._parts.changes.begin(session_id, "person", command)

    async def _cut_off(self, watch: Watch | None) -> Changes:
        if watch is None:
            return Changes()
        if self._parts.changes.is_open(watch):  # else only whoever waited for its end was cancelled
            await self._parts.changes.end(watch)
        return so_far(watch)

    async def _completed(self, request: RunShell, output: Output) -> Completed:
        agent = self._parts.agent
        width = {"COLUMNS": str(request.term_width)} if request.term_width > 0 else {}
        return await agent.processes.run_command(
            request.command,
            cwd=agent.root / request.cwd,
            env={**agent.env, **NOT_INTERACTIVE, **width},
            tag=tag_within(self._parts.agent.tag, "shell"),  # like a job: found again after a crash
            timeout_s=TIMEOUT_S,
            output=output,
        )

    def _record(
        self, session_id: str, message_id: str, request: RunShell, result: ShellResult, changes: Changes
    ) -> asyncio.Future[None] | None:
        """None: the session was deleted meanwhile."""
        if session_id not in self._parts.book:
            return None
        command = ShellCommand(
            command=request.command, output=result.output, exit_code=result.exit_code, share=request.share
        )
        now = self._parts.shared.world.now_s()
        message = Message(
            id=message_id,
            role="user",
            session_id=session_id,
            parts=(ShellCommandPart(data=command),),
            model="",
            provider="",
            created_at=now,
            updated_at=now,
        )
        batch = Batch()
        batch.add_message(message)
        batch.update_session(self._parts.book.get(session_id))  # with the count of what is added to it here
        record_changes(batch, changes, cause_of(message), self._parts.shared.world)
        self._parts.book.add_command(message)
        return self._parts.recorder.write(batch)


def _exit_code(completed: Completed) -> int:
    """As a shell would give it."""
    code = completed.exit_code
    if code is None:
        return TIMED_OUT
    return 128 - code if code < 0 else code
