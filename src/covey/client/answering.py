"""Answers what one run asks, for a program: by functions of its own or, where it has none, with no.

So no prompt of a program waits for somebody who is not there. Requests of other runs are left to whoever posted those.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from covey.client.client import Client
from covey.client.errors import ServerUnreachable
from covey.client.question_answers import QuestionAnswers, responses_of
from covey.protocol.errors import CoveyError
from covey.protocol.events import (
    Event,
    PermissionNotification,
    PermissionRequest,
    QuestionBatchNotification,
    QuestionBatchRequest,
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Allow:
    """Yes, and how far it goes."""

    action: Literal["allow", "allow_session", "allow_always", "allow_prefix"] = "allow"
    """This call; the same in this session; always in this directory, by the request's `rules` or `prefix_rules`."""
    network: bool = False
    """The command has the network."""
    unsandboxed: bool = False
    """The command runs without the sandbox."""


@dataclass(frozen=True, slots=True)
class Deny:
    """No, and why: the model reads it."""

    reason: str = ""
    unattended: bool = False
    """Nobody could be asked, which is what the model reads then."""


PermissionDecision = bool | Allow | Deny | None
"""True is `Allow()`, False is `Deny()`. None: somebody else answers it, such as another client."""
OnPermission = Callable[[PermissionRequest], PermissionDecision | Awaitable[PermissionDecision]]
"""Called in the event loop: one that waits, for a person or for anything else, has to be asynchronous."""
OnQuestion = Callable[[QuestionBatchRequest], QuestionAnswers | Awaitable[QuestionAnswers]]


def deny_all(request: PermissionRequest) -> PermissionDecision:
    """What a program says that was given no function for this."""
    return Deny(unattended=True)


def refuse_all(request: QuestionBatchRequest) -> QuestionAnswers:
    """The same for questions."""
    return ()


def leave_to_others(request: PermissionRequest | QuestionBatchRequest) -> None:
    """Somebody else answers: another client, or whoever reads the stream. If nobody does, the run waits for ever.

    A function of one's own that returns None says the same.
    """


class Answering:
    """Answers the requests of one run, each in a task of its own. `failed` gets the first error of an answer."""

    def __init__(
        self, client: Client, workspace_id: str, run_id: str, on_permission: OnPermission, on_question: OnQuestion
    ) -> None:
        self._client = client
        self._workspace_id = workspace_id
        self._run_id = run_id
        self._on_permission = on_permission
        self._on_question = on_question
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self.failed: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()

    def event(self, event: Event) -> None:
        match event.payload:
            case PermissionRequest() as request if request.run_id in (None, self._run_id):
                self._begin(request.id, self._permission(request))
            case QuestionBatchRequest() as batch if batch.run_id in (None, self._run_id):
                self._begin(batch.id, self._question(batch))
            case PermissionNotification(permission_id=str(answered)) | QuestionBatchNotification(batch_id=answered):
                if task := self._tasks.get(answered):
                    task.cancel()  # somebody was faster, or the run has ended

    async def close(self) -> None:
        tasks = set(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _begin(self, request_id: str, answering: Coroutine[Any, Any, None]) -> None:
        """A request may come again after a reconnect: it is answered again if the answer may have been lost."""
        if request_id in self._tasks:
            answering.close()
            return
        task = self._tasks[request_id] = asyncio.create_task(answering)
        task.add_done_callback(lambda done: self._ended(request_id, done))

    def _ended(self, request_id: str, task: asyncio.Task[None]) -> None:
        self._tasks.pop(request_id, None)
        error = None if task.cancelled() else task.exception()
        # What could not be sent is asked again when the stream is back.
        if error and not isinstance(error, ServerUnreachable) and not self.failed.done():
            self.failed.set_result(error)

    async def _permission(self, request: PermissionRequest) -> None:
        decision = await _result(self._on_permission(request))
        if decision is None:
            return
        answer = (Allow() if decision else Deny()) if isinstance(decision, bool) else decision
        if not isinstance(answer, Allow | Deny):
            wanted = "True, False, covey.Allow(…), covey.Deny(…) or None"
            raise CoveyError(f"on_permission returned {answer!r:.200}, and {wanted} is wanted", "wrong_answer")
        if isinstance(answer, Deny):
            await self._client.answer_permission(
                self._workspace_id, request.id, "deny", answer.reason, unattended=answer.unattended
            )
        else:
            await self._client.answer_permission(
                self._workspace_id,
                request.id,
                answer.action,
                network=answer.network,
                unsandboxed=answer.unsandboxed,
            )

    async def _question(self, batch: QuestionBatchRequest) -> None:
        answers = await _result(self._on_question(batch))
        if answers is None:
            return
        if isinstance(answers, list | tuple) and not answers:
            await self._client.refuse_questions(self._workspace_id, batch.id)
        else:
            await self._client.answer_questions(self._workspace_id, batch.id, responses_of(batch, answers))


async def _result(value: T | Awaitable[T]) -> T:
    return await value if inspect.isawaitable(value) else value
