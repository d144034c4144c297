"""Hooks of a turn: what they are told at each moment of it, and what their answers mean for it.

They run in the body of the turn, with the tag of its run: a cancel ends them, and after a crash they are found. What
people should know of them is published as a warning of the run.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import msgspec

from covey.config.schema import ConfigError
from covey.engine.recorder import Batch, Recorder
from covey.engine.session_book import SessionBook
from covey.lifecycle.hook_matching import MODES, names_of, rewritten_input, told_input, told_name
from covey.lifecycle.hooks import HookAnswer, HookDecision, StopGuard
from covey.machine.names import run_tag, tag_within
from covey.protocol.events import AgentEvent, Event, PermissionRequest, QuestionBatchRequest, created
from covey.protocol.hook_events import HookEvent
from covey.protocol.messages import Message, Session, SessionMode
from covey.protocol.runs import Run, RunComplete
from covey.tools.base import Tool, ToolOutput

HOOK_SAYS = "[A hook says: {text}]"
RESULT_TOLD = 100_000
"""Characters of a result that a hook is told."""


SESSIONS_KNOWN = 1_000
"""Whose beginning is remembered, so that their end is told; an older one begins again."""


class HookSource(Protocol):
    """The hooks of a workspace. `engine/extensions` has them."""

    def has(self, event: HookEvent) -> bool: ...

    async def run(self, event: HookEvent, names: Sequence[str], told: Mapping[str, Any], tag: str) -> HookAnswer: ...

    async def reload(self) -> None: ...

    def run_aside(self, said: Coroutine[Any, Any, Any]) -> None: ...


@dataclass(frozen=True, slots=True)
class HookedCall:
    """A call after PreToolUse hooks have had their say."""

    answer: HookAnswer = field(default_factory=HookAnswer)
    input: str = ""
    """As it is to be read now."""

    @property
    def is_rewritten(self) -> bool:
        return self.answer.updated_input is not None


class TurnHooks:
    """The hooks of all turns of a workspace."""

    def __init__(
        self, source: HookSource, workspace_id: str, tag: str, root: Path, sessions: SessionBook, recorder: Recorder
    ) -> None:
        self._source = source
        self._workspace_id = workspace_id
        self._tag = tag
        self._root = root
        self._sessions = sessions
        self._recorder = recorder
        self._stopping: dict[str, str] = {}
        """Runs that a hook wants to end, and why: they do at their next step."""
        self._begun: dict[str, None] = {}
        """Sessions whose SessionStart hooks have run, in order."""

    def announce(self, event: HookEvent, wait_on: Callable[[str], None]) -> None:
        """Let people see that the run waits for hooks, if it does."""
        if self._source.has(event):
            wait_on(f"hook:{event}")

    # ── calls ──

    async def before_call(
        self, run: Run, tool: Tool[Any], call_id: str, text: str, paths: Sequence[str], mode: SessionMode
    ) -> HookedCall:
        """What PreToolUse hooks say. `text`: the input, by our names; `paths`: what it is about to change."""
        if not self._source.has("PreToolUse"):
            return HookedCall(input=text)
        given = _decoded(text)
        told = told_input(tool.name, given, str(self._root), paths)
        about = {"tool_name": told_name(tool.name), "tool_input": told, "tool_use_id": call_id}
        answer = await self._run("PreToolUse", names_of(tool.name), run, mode, about)
        if answer.updated_input is None:
            return HookedCall(answer, text)
        rewritten = rewritten_input(given, told, answer.updated_input)
        return HookedCall(answer, msgspec.json.encode(rewritten).decode())

    async def after_call(
        self, run: Run, tool: Tool[Any], call_id: str, text: str, output: ToolOutput, mode: SessionMode
    ) -> ToolOutput:
        """The result of a call, with what PostToolUse hooks say about it."""
        if not self._source.has("PostToolUse"):
            return output
        given = _decoded(text)
        response = {
            "content": output.content[:RESULT_TOLD],
            "is_error": output.is_error,
            "success": not output.is_error,
        }
        if tool.name == "bash":
            response |= {"stdout": response["content"], "stderr": "", "interrupted": False}
        if isinstance(path := given.get("file_path"), str):
            response["filePath"] = str(self._root / path)
        about = {
            "tool_name": told_name(tool.name),
            "tool_input": told_input(tool.name, given, str(self._root)),
            "tool_response": response,
            "tool_use_id": call_id,
        }
        answer = await self._run("PostToolUse", names_of(tool.name), run, mode, about)
        content = output.content if answer.output is None else answer.output
        reason = answer.reason if answer.decision is HookDecision.DENY else ""
        return _with_words(output, content, [reason, answer.context])

    # ── the turn ──

    async def begin(self, run: Run, *, is_new: bool, mode: SessionMode) -> str:
        """A turn begins: what the files name now counts for it. Gives what SessionStart hooks tell the model."""
        try:
            await self._source.reload()
        except ConfigError as error:
            self.tell(run, (f"hooks cannot be read: {error}",))
        if run.session_id in self._begun or run.effective_options.delegate:
            return ""
        self._begun[run.session_id] = None
        if len(self._begun) > SESSIONS_KNOWN:
            del self._begun[next(iter(self._begun))]
        return await self._begin(run, "startup" if is_new else "resume", mode)

    async def begin_again(self, run: Run, mode: SessionMode) -> str:
        """The conversation goes on with a summary."""
        return await self._begin(run, "compact", mode)

    async def _begin(self, run: Run, source: str, mode: SessionMode) -> str:
        if not self._source.has("SessionStart"):
            return ""
        return (await self._run("SessionStart", (source,), run, mode, {"source": source})).context

    async def submit(self, run: Run, prompt: Message, mode: SessionMode) -> HookAnswer:
        """What UserPromptSubmit hooks say about a prompt: DENY refuses it."""
        if not self._source.has("UserPromptSubmit"):
            return HookAnswer()
        answer = await self._run("UserPromptSubmit", ("",), run, mode, {"prompt": prompt.text})
        self._stopping.pop(run.run_id, None)  # it is refused, which ends the run as well
        return answer

    async def stop(self, run: Run, guard: StopGuard, answer: Message, mode: SessionMode) -> str:
        """Why the turn must go on, in the words of Stop hooks; '': it may end. For an agent: SubagentStop."""
        event: HookEvent = "SubagentStop" if run.effective_options.delegate else "Stop"
        if not self._source.has(event):
            return ""
        about = {"stop_hook_active": guard.is_active, "last_assistant_message": answer.text[:RESULT_TOLD]}
        kind = run.effective_options.agent or "general-purpose"
        said = await self._run(event, (kind,) if event == "SubagentStop" else ("",), run, mode, about)
        stops = self._stopping.pop(run.run_id, "")
        if stops or said.decision is not HookDecision.DENY:
            return ""
        if guard.is_used_up:
            self.tell(run, (f"hooks kept the turn from ending {guard.blocked} times in a row, so it ends now",))
            return ""
        return said.reason

    async def compact(self, run: Run, *, manual: bool, focus: str, mode: SessionMode) -> str:
        """A summary is about to be made. Gives why hooks forbid it; '': they do not."""
        if not self._source.has("PreCompact"):
            return ""
        trigger = "manual" if manual else "auto"
        said = await self._run("PreCompact", (trigger,), run, mode, {"trigger": trigger, "custom_instructions": focus})
        return said.reason if said.decision is HookDecision.DENY else ""

    def stopped(self, run_id: str) -> str:
        """Why a hook wants the run to end now; '': none does."""
        return self._stopping.pop(run_id, "")

    def tell(self, run: Run, lines: Sequence[str]) -> None:
        """Let people know."""
        events = [
            created(AgentEvent(type="warning", session_id=run.session_id, run_id=run.run_id, reason=line))
            for line in lines
        ]
        if events:
            self._recorder.write(Batch(events=events))

    async def _run(
        self, event: HookEvent, names: Sequence[str], run: Run, mode: SessionMode, about: Mapping[str, Any]
    ) -> HookAnswer:
        yolo = run.effective_options.yolo
        told = {**self._common(event, run.session_id), **about, "run_id": run.run_id}
        told["permission_mode"] = "bypassPermissions" if yolo and mode != "plan" else MODES[mode]
        answer = await self._source.run(event, names, told, tag_within(run_tag(self._workspace_id, run.run_id), "hook"))
        self.tell(run, answer.told)
        if answer.stops:
            self._stopping[run.run_id] = answer.stop_reason
        return answer

    def _common(self, event: HookEvent, session_id: str) -> dict[str, Any]:
        return {"session_id": session_id, "transcript_path": "", "cwd": str(self._root), "hook_event_name": event}

    # ── what no turn waits for ──

    def on_event(self, event: Event) -> None:
        """Something was published: whoever is not watching may want to know, and a session may be gone."""
        told = event.payload
        if isinstance(told, PermissionRequest):
            self._notify("permission_prompt", told.session_id, f"Covey needs permission: {told.description}")
        elif isinstance(told, QuestionBatchRequest):
            self._notify("question", told.session_id, "Covey has a question")
        elif isinstance(told, RunComplete) and not self._sessions.is_child(told.session_id):
            self._notify("run_complete", told.session_id, f"A run has ended: {told.outcome}")
        elif isinstance(told, Session) and event.change == "deleted" and told.id in self._begun:
            del self._begun[told.id]
            self._source.run_aside(self._end(told.id, "delete"))

    def _notify(self, kind: str, session_id: str, message: str) -> None:
        if self._source.has("Notification"):
            about = {"message": message[:1000], "notification_type": kind}
            self._source.run_aside(self._aside("Notification", kind, session_id, about))

    def last_words(self) -> list[Coroutine[Any, Any, Any]]:
        """What the sessions have to say that began here: the workspace closes."""
        begun, self._begun = self._begun, {}
        return [self._end(session_id, "other") for session_id in begun] if self._source.has("SessionEnd") else []

    def _end(self, session_id: str, reason: str) -> Coroutine[Any, Any, None]:
        return self._aside("SessionEnd", reason, session_id, {"reason": reason})

    async def _aside(self, event: HookEvent, name: str, session_id: str, about: Mapping[str, Any]) -> None:
        told = {**self._common(event, session_id), **about}
        await self._source.run(event, (name,), told, tag_within(self._tag, "hook"))


def _decoded(text: str) -> dict[str, Any]:
    """The input of a call, which was decoded before: it is a table."""
    try:
        return msgspec.json.decode(text or "{}", type=dict[str, Any])
    except msgspec.MsgspecError:
        return {}


def _with_words(output: ToolOutput, content: str, said: Sequence[str]) -> ToolOutput:
    words = [HOOK_SAYS.format(text=text) for text in said if text]
    if content == output.content and not words:
        return output
    return ToolOutput("\n\n".join([content, *words]), output.is_error, output.metadata, output.image, output.files)
