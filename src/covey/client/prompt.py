"""One prompt, from posting it, or from some time after that, to its terminal event.

The stream reports the run as it happens. When it is in trouble, `GET runs/{id}` is the authority: it says how the run
ended even if the event itself can no longer be had. Nothing here decides that a run has ended: only the server does.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from msgspec import structs

from covey.client.client import LONG_POLL_S, Client
from covey.client.errors import ServerUnreachable, is_passing
from covey.client.event_stream import FIRST_DELAY_S, LONGEST_DELAY_S, EventStream, OnConnection
from covey.client.transcript import TranscriptChange
from covey.client.view.commands import Reconnect
from covey.client.view.view import View
from covey.protocol.errors import ApiError
from covey.protocol.events import Event, Gap
from covey.protocol.requests import PostPrompt
from covey.protocol.runs import PromptReceipt, Run, RunComplete

POST_S = 30.0
"""How long a prompt is offered to a server that comes and goes: enough for a restart."""
TAIL_S = 2.0
"""How long the stream may take to bring the last events of a run that is known to have ended."""

OnEvent = Callable[[Event, TranscriptChange | None], Awaitable[None] | None]
"""What it returns, if anything, is awaited before the next event is read."""
OnAccepted = Callable[[PromptReceipt], None]


def new_run_id() -> str:
    """Short enough to be typed, and as good as unique among the runs of a workspace."""
    return secrets.token_hex(6)


async def run_prompt(
    client: Client,
    workspace_id: str,
    prompt: PostPrompt,
    *,
    output_schema: dict[str, Any] | None = None,
    is_first: bool = False,
    view: View | None = None,
    on_event: OnEvent = lambda event, change: None,
    on_accepted: OnAccepted = lambda receipt: None,
    on_connection: OnConnection = lambda connected, why: None,
) -> RunComplete:
    """Post the prompt, which must have a run id, and return its terminal event.

    With an `output_schema` (of its own, or given here) a run that completes has the JSON that fits it as `output`.
    `is_first`: its session was made for it, and goes if the prompt is refused.
    `on_event` sees everything that happens in the session from just before the prompt was posted, and what each event
    changed in its messages; a `view` that shows the session has taken the event in by then.
    Cancelling the caller's task leaves the run alone; to end it, call `client.cancel_run` and go on waiting here.
    """
    assert prompt.run_id, "a prompt without a run id cannot be posted again safely"
    if output_schema is not None:
        prompt = structs.replace(prompt, output_schema=output_schema)
    trouble = asyncio.Event()
    async with _stream(client, workspace_id, prompt.session_id, trouble, on_connection) as stream:
        async with removed_if_refused(client, workspace_id, prompt.session_id if is_first else ""):
            receipt = await _post(client, stream, prompt)
        on_accepted(receipt)
        may_have_ended = receipt.state not in ("accepted", "queued", "active")  # it was posted before
        if may_have_ended and (terminal := await _end_of(client, stream.workspace_id, prompt.run_id)):
            return terminal
        return await _until_end(client, stream, prompt.run_id, view, on_event, trouble)


@asynccontextmanager
async def removed_if_refused(client: Client, workspace_id: str, session_id: str) -> AsyncIterator[None]:
    """A session that was made for a prompt which is then refused is nothing that anybody wants to find.

    '': there is none. What a server says that comes and goes is no refusal: it may have accepted the prompt before.
    """
    try:
        yield
    except ApiError as error:
        if session_id and not is_passing(error):
            with suppress(ServerUnreachable, ApiError):
                await client.delete_session(workspace_id, session_id)
        raise


async def follow_run(
    client: Client,
    workspace_id: str,
    run: Run,
    *,
    view: View | None = None,
    on_event: OnEvent = lambda event, change: None,
    on_connection: OnConnection = lambda connected, why: None,
) -> RunComplete:
    """The terminal event of a run that was accepted before, by whomever.

    `on_event` sees the message in progress and the open requests of its session first, then everything that happens
    there. Of messages that were finished before, and of a run that has ended, it sees nothing.
    """
    if run.ended and (terminal := await _end_of(client, workspace_id, run.run_id)):
        return terminal  # its session may be deleted by now, and has no stream then
    trouble = asyncio.Event()
    async with _stream(client, workspace_id, run.session_id, trouble, on_connection) as stream:
        # Only what ends from here on is reported by the stream.
        if terminal := await _end_of(client, stream.workspace_id, run.run_id):
            return terminal
        return await _until_end(client, stream, run.run_id, view, on_event, trouble)


def _stream(
    client: Client, workspace_id: str, session_id: str, trouble: asyncio.Event, on_connection: OnConnection
) -> EventStream:
    """The events of a session; `trouble` is set when the connection is lost."""

    def on_change(connected: bool, why: str) -> None:
        if not connected:
            trouble.set()
        on_connection(connected, why)

    return EventStream(client, workspace_id, session_id=session_id, on_connection=on_change)


async def _until_end(
    client: Client, stream: EventStream, run_id: str, view: View | None, on_event: OnEvent, trouble: asyncio.Event
) -> RunComplete:
    view = view or View(stream.session_id, loads=False)
    follow = asyncio.create_task(_follow(stream, run_id, view, on_event, trouble))
    ask = asyncio.create_task(_ask(client, stream, run_id, trouble))
    try:
        await asyncio.wait({follow, ask}, return_when=asyncio.FIRST_COMPLETED)
        if not follow.done():
            stream.hurry()
            await asyncio.wait({follow}, timeout=TAIL_S)
        return (follow if follow.done() else ask).result()
    finally:
        for task in (follow, ask):
            task.cancel()
        await asyncio.wait({follow, ask})


async def _post(client: Client, stream: EventStream, prompt: PostPrompt) -> PromptReceipt:
    """Offer the prompt until it is accepted or refused: with a run id, twice is the same as once."""
    deadline = time.monotonic() + POST_S
    delay_s = FIRST_DELAY_S
    while True:
        try:
            return await client.post_prompt(stream.workspace_id, prompt)
        except (ServerUnreachable, ApiError) as error:
            if not is_passing(error) or time.monotonic() + delay_s > deadline:
                raise
        await asyncio.sleep(delay_s)
        delay_s = min(delay_s * 2, LONGEST_DELAY_S)
        with suppress(ServerUnreachable, ApiError):
            await client.revive()
            stream.workspace_id = await client.rejoin(stream.workspace_id)


async def _follow(
    stream: EventStream, run_id: str, view: View, on_event: OnEvent, trouble: asyncio.Event
) -> RunComplete:
    async for event in stream:
        step = view.event(event)
        if taken := on_event(event, step.change):
            await taken
        if Reconnect() in step.commands:
            stream.reconnect()
        match event.payload:
            case RunComplete() as terminal if terminal.run_id == run_id:
                return terminal
            case Gap():
                trouble.set()
    raise AssertionError("an event stream has no end")


async def _ask(client: Client, stream: EventStream, run_id: str, trouble: asyncio.Event) -> RunComplete:
    """Once the stream has been in trouble, ask for the run itself until it has ended."""
    await trouble.wait()
    delay_s = FIRST_DELAY_S
    while True:
        try:
            terminal = await _end_of(client, stream.workspace_id, run_id, wait_s=LONG_POLL_S)
        except (ServerUnreachable, ApiError) as error:
            if getattr(error, "code", "") == "run_not_found":
                raise
            # The stream has the same trouble, and brings the server or the workspace back.
            await asyncio.sleep(delay_s)
            delay_s = min(delay_s * 2, LONGEST_DELAY_S)
        else:
            if terminal:
                return terminal
            delay_s = FIRST_DELAY_S


async def _end_of(client: Client, workspace_id: str, run_id: str, *, wait_s: float = 0) -> RunComplete | None:
    """How the run has ended, by its record; None while it is open."""
    run = await client.run(workspace_id, run_id, wait=wait_s)
    if not run.ended:
        return None
    return terminal_of(run, await client.run(workspace_id, run.folded_into) if run.folded_into else None)


def terminal_of(run: Run, host: Run | None = None) -> RunComplete:
    """The terminal event of a run that has ended, as far as its record shows it. A folded one ended as its host did."""
    assert run.ended, f"{run.run_id} is {run.state}"
    state = (host or run).state
    return RunComplete(
        session_id=run.session_id,
        run_id=run.run_id,
        message_id=run.message_id or "",
        text=run.text,
        error=run.error,
        cancelled=state == "cancelled",
        interrupted=state == "interrupted",
        folded_into=run.folded_into,
        output=run.output,
        at_bound=run.at_bound,
    )
