"""One prompt of a program as a stream of events, and the options that a prompt may have.

    stream = client.stream("What does this project do?")
    async for event in stream: ...
    print(stream.result.text)

Leaving the loop early leaves the run alone: it goes on, as runs do whose client has gone. `cancel` ends it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any, TypedDict

import msgspec

from covey.client.answer import Answer, answer_of
from covey.client.answer_text import AnswerText
from covey.client.answering import Answering, OnPermission, OnQuestion, deny_all, refuse_all
from covey.client.errors import RunTimedOut, ServerUnreachable
from covey.client.prompt import new_run_id, run_prompt
from covey.client.transcript import TranscriptChange
from covey.client.view.inputs import SessionOpened
from covey.client.view.view import View
from covey.protocol.errors import ApiError, CoveyError
from covey.protocol.events import Event, created
from covey.protocol.messages import Attachment, Message
from covey.protocol.requests import PostPrompt
from covey.protocol.runs import CancelReceipt, RunComplete, SandboxMode

if TYPE_CHECKING:
    from covey.client.workspace_client import WorkspaceClient

CANCEL_S = 10.0
"""A cancelled run ends within the server's grace of five seconds; if even this passes, the server is in trouble."""
BEHIND = 64
"""Events that may wait for a slow reader; then the stream waits for it, and the server merges what is still to come."""

Pair = tuple[Event, TranscriptChange | None]


class PromptOptions(TypedDict, total=False):
    """What a prompt may have beside its text. Whatever is not given is as the session or the configuration says."""

    session: str
    """The id of the session to go on in; by default, the prompt begins a new one."""
    run_id: str
    """Of the caller's making: posting the same prompt again with it is the same as posting it once."""
    attachments: Sequence[Attachment]
    model: str
    """`provider/model`, for this run only."""
    plan: bool
    """Look, but change nothing."""
    yolo: bool
    """Ask nobody; deny rules hold all the same."""
    allow: Sequence[str]
    """Rules for this run only, such as `bash:git status*`: what they cover is not asked about."""
    accept_edits: bool
    """Edits in the workspace are not asked about."""
    sandbox: SandboxMode
    max_cost: float
    max_steps: int
    output_schema: dict[str, Any]
    """A JSON Schema: the run ends with JSON that fits it, which is the `output` of its end, or fails."""
    cwd: str
    """Where its author is: a directory of the workspace, from its root. The model is told; `@path` is meant there."""
    on_permission: OnPermission
    """By default every request is denied, with the reason that nobody could be asked."""
    on_question: OnQuestion
    """By default no question is answered."""
    timeout: float
    """Seconds, after which the run is cancelled and `RunTimedOut` is raised."""


_OURS = frozenset({"session", "on_permission", "on_question", "timeout"})
"""The options that are not fields of what is posted."""


class PromptStream:
    """For one reader. The prompt is posted when the reading begins; the last event is its `RunComplete`."""

    def __init__(self, client: WorkspaceClient, prompt: str, options: PromptOptions) -> None:
        self._client = client
        self._options = options
        self._request = _request(prompt, options)
        self._result: Answer | None = None
        self._view = View(loads=False)
        """Of the session, from when on the prompt is posted."""
        self._is_read = False

    @property
    def run_id(self) -> str:
        return self._request.run_id

    @property
    def session_id(self) -> str:
        """Empty for a new session until the prompt is posted."""
        return self._request.session_id

    @property
    def result(self) -> Answer:
        """How the run ended, once the stream has. A run that failed is a result too: see `outcome` and `error`."""
        if self._result is None:
            raise CoveyError("the run has not ended yet, as far as this stream was read", "not_ended")
        return self._result

    async def cancel(self) -> CancelReceipt:
        """Cancel the run, and not its neighbours. The stream goes on to its end, which comes soon."""
        return await self._client.cancel_run(self._client.workspace_id, self.run_id)

    async def __aiter__(self) -> AsyncIterator[Event]:
        async with aclosing(self._pairs()) as pairs:
            async for event, _ in pairs:
                yield event

    async def text(self) -> AsyncIterator[str]:
        """Only the words of the answers, as they come."""
        text = AnswerText(self.run_id)
        async with aclosing(self._pairs()) as pairs:
            async for event, change in pairs:
                if piece := text.take(event, change):
                    yield piece

    async def read_to_end(self) -> Answer:
        """The result, without the events on the way."""
        async with aclosing(self._pairs()) as pairs:
            async for _ in pairs:
                pass
        return self.result

    # ── inside ──

    async def _pairs(self) -> AsyncGenerator[Pair, None]:
        if self._is_read:
            raise CoveyError("a stream is read once: post the prompt again for another", "already_read")
        self._is_read = True
        queue = _Queue()
        posting = asyncio.create_task(self._post(queue))
        posting.add_done_callback(lambda _: queue.wake())
        try:
            while queue or not posting.done():
                if queue:
                    yield queue.take()
                else:
                    await queue.wait()
            terminal = posting.result()
            self._result = answer_of(terminal, await self._messages())
            if not queue.has_end_of(self.run_id):
                yield created(terminal), None  # known by asking: the event itself was lost with the connection
        finally:
            posting.cancel()
            await asyncio.wait({posting})

    async def _messages(self) -> Iterable[Message]:
        """Those of the run, which has ended: as the stream brought them or, if it did not get so far, as stored."""
        seen = self._view.conversation
        if self.run_id not in seen.terminals:
            with suppress(ServerUnreachable, ApiError):  # the session may be deleted by now
                return await self._client.messages(self._client.workspace_id, self.session_id)
        return seen.messages

    async def _post(self, queue: _Queue) -> RunComplete:
        client, workspace_id = self._client, self._client.workspace_id
        if is_first := not self._request.session_id:
            session = await client.create_session(workspace_id)
            self._request = msgspec.structs.replace(self._request, session_id=session.id)
        self._view.apply(SessionOpened(self.session_id))
        answering = Answering(
            client,
            workspace_id,
            self.run_id,
            self._options.get("on_permission", deny_all),
            self._options.get("on_question", refuse_all),
        )

        async def on_event(event: Event, change: TranscriptChange | None) -> None:
            answering.event(event)
            await queue.put((event, change))

        prompting = run_prompt(
            client, workspace_id, self._request, is_first=is_first, view=self._view, on_event=on_event
        )
        running = asyncio.create_task(prompting)
        try:
            return await self._outcome(running, answering)
        finally:
            running.cancel()
            await asyncio.wait({running})
            await answering.close()

    async def _outcome(self, running: asyncio.Task[RunComplete], answering: Answering) -> RunComplete:
        timeout = self._options.get("timeout")
        ends: set[asyncio.Future[Any]] = {running, answering.failed}
        await asyncio.wait(ends, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            return running.result()
        with suppress(ServerUnreachable):
            await self.cancel()
        await asyncio.wait({running}, timeout=CANCEL_S)
        if answering.failed.done():
            raise answering.failed.result()
        if running.done() and not running.result().cancelled:
            return running.result()
        raise RunTimedOut(f"The run {self.run_id} took longer than {timeout:g} s and was cancelled.")


class _Queue:
    """Events between the connection and a reader, for one of each."""

    def __init__(self) -> None:
        self._pairs: deque[Pair] = deque()
        self._changed = asyncio.Event()
        self._room = asyncio.Event()
        self._ended = ""

    def __bool__(self) -> bool:
        return bool(self._pairs)

    def wake(self) -> None:
        self._changed.set()

    async def wait(self) -> None:
        await self._changed.wait()
        self._changed.clear()

    def take(self) -> Pair:
        self._room.set()
        return self._pairs.popleft()

    async def put(self, pair: Pair) -> None:
        self._pairs.append(pair)
        if isinstance(terminal := pair[0].payload, RunComplete):
            self._ended = terminal.run_id
        self._changed.set()
        while len(self._pairs) > BEHIND:
            self._room.clear()
            await self._room.wait()

    def has_end_of(self, run_id: str) -> bool:
        """Whether its terminal event has come through here: it is the last that does."""
        return self._ended == run_id


def _request(prompt: str, options: PromptOptions) -> PostPrompt:
    fields: dict[str, Any] = {name: value for name, value in options.items() if name not in _OURS}
    fields |= {name: tuple(fields[name]) for name in ("allow", "attachments") if name in fields}
    fields["unattended"] = "on_permission" not in options
    fields |= {"run_id": options.get("run_id") or new_run_id(), "session_id": options.get("session", "")}
    return PostPrompt(prompt=prompt, **fields)
