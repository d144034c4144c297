"""Runs for a caller: posts one, waits for its end or for what it asks, and tells what it does meanwhile."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

from covey.client.client import Client
from covey.client.prompt import follow_run, run_prompt
from covey.client.transcript import TranscriptChange
from covey.client.view.run_news import AnswerGrew, CallBegun, CallEnded, RunNews
from covey.client.view.view import View
from covey.lines.calls import call_line
from covey.mcp_server.results import AskRequest
from covey.protocol.events import (
    Event,
    PermissionNotification,
    PermissionRequest,
    QuestionBatchNotification,
    QuestionBatchRequest,
)
from covey.protocol.messages import ToolCall
from covey.protocol.requests import PostPrompt
from covey.protocol.runs import Run, RunComplete

TOLD_S = 1.0
"""How often the growth of an answer is told: often enough that no caller takes it for silence."""

Tell = Callable[[str], None]
"""Gets a line about what goes on."""


class RunWatch:
    """One run, watched for one caller. Ending the watch leaves the run alone."""

    def __init__(self, session_id: str, run_id: str, tell: Tell) -> None:
        self.asks: dict[str, AskRequest] = {}
        self.view = View(session_id, loads=False)
        self._run_id = run_id
        self._news = RunNews(self.view, run_id)
        self._tell = tell
        self._asked = asyncio.Event()
        self._told_at = 0.0

    def on_event(self, event: Event, change: TranscriptChange | None) -> None:
        match event.payload:
            case PermissionRequest() | QuestionBatchRequest() as ask if ask.run_id in (None, self._run_id):
                self.asks[ask.id] = ask
                self._asked.set()
            case PermissionNotification(permission_id=str(answered)) | QuestionBatchNotification(batch_id=answered):
                self.asks.pop(answered, None)
        for item in self._news.update(change):
            match item:
                case CallBegun(call):
                    self._tell(_line("running", call))
                case CallEnded(call, result):
                    self._tell(_line("failed" if result.is_error else "done", call))
                case AnswerGrew() if time.monotonic() - self._told_at > TOLD_S:
                    self._told_at = time.monotonic()
                    self._tell("answering")

    async def outcome(
        self, running: Coroutine[Any, Any, RunComplete], wait_s: float, accepted: asyncio.Event | None = None
    ) -> RunComplete | None:
        """How it ended; None: it asks something, or the time is over, which begins when it was accepted."""
        run, asked = asyncio.create_task(running), asyncio.create_task(self._is_asked())
        tasks: set[asyncio.Task[Any]] = {run, asked}
        try:
            if accepted:
                tasks.add(waiting := asyncio.create_task(accepted.wait()))
                await asyncio.wait({run, waiting}, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait({run, asked}, timeout=wait_s, return_when=asyncio.FIRST_COMPLETED)
            return run.result() if run.done() else None
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def _is_asked(self) -> None:
        while not self.asks:
            self._asked.clear()
            await self._asked.wait()


async def post(
    client: Client, workspace_id: str, prompt: PostPrompt, watch: RunWatch, wait_s: float, *, is_first: bool = False
) -> RunComplete | None:
    """Post a prompt with a run id. Raises if it was refused; its session then goes with it, if it is the first."""
    accepted = asyncio.Event()
    running = run_prompt(
        client,
        workspace_id,
        prompt,
        is_first=is_first,
        view=watch.view,
        on_event=watch.on_event,
        on_accepted=lambda receipt: accepted.set(),
    )
    return await watch.outcome(running, wait_s, accepted)


async def follow(client: Client, workspace_id: str, run: Run, watch: RunWatch, wait_s: float) -> RunComplete | None:
    running = follow_run(client, workspace_id, run, view=watch.view, on_event=watch.on_event)
    return await watch.outcome(running, wait_s)


def _line(state: str, call: ToolCall) -> str:
    text = "".join(span.text for span in call_line(call).spans)
    return f"{state}: {text}"[:300]
