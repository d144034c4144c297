"""Asks the editor what waits for a person in its session, and takes a question back when somebody else has answered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Container
from typing import assert_never

from covey.acp.asking import (
    NOBODY_THERE,
    ChosenOption,
    approval_answer,
    approval_call_id,
    approval_params,
    permission_answer,
    permission_params,
    question_answers,
    question_params,
)
from covey.acp.content import Json
from covey.client.follower import Follower
from covey.client.view.records import AskRequest, OpenAsk
from covey.protocol.events import PermissionRequest, QuestionBatchRequest
from covey.protocol.extensions import ApprovalRequest
from covey.rpc.messages import RpcAnswer
from covey.rpc.peer import Asked, Peer

METHOD_UNKNOWN = -32601


class AskDesk:
    """For one session. `look` after each change of the view; an answer of the editor goes to the server by itself."""

    def __init__(
        self,
        peer: Peer,
        follower: Follower,
        session_id: str,
        *,
        can_ask_questions: bool,
        being_cancelled: Container[str | None],
        is_prompting: Callable[[], bool],
        tell: Callable[[QuestionBatchRequest], None],
    ) -> None:
        self._peer = peer
        self._follower = follower
        self._session_id = session_id
        self._can_ask_questions = can_ask_questions
        self._being_cancelled = being_cancelled
        self._is_prompting = is_prompting
        self._tell = tell
        self._asked: dict[str, Asked | None] = {}
        """By ask: the request to the editor; None: it was only told, or has answered."""
        self._approvals: dict[str, str] = {}
        """By ask: the call as which the editor shows an approval."""

    def look(self) -> None:
        """Ask what is new, and take back what nobody can answer here any more."""
        asks = self._follower.view.asks.open
        waiting = {ask_id: ask.request for ask_id, ask in asks.items() if self._concerns(ask_id, ask)}
        for ask_id in [ask_id for ask_id in self._asked if ask_id not in waiting]:
            self._take_back(self._asked.pop(ask_id))
            if call_id := self._approvals.pop(ask_id, ""):
                self._show({"sessionUpdate": "tool_call_update", "toolCallId": call_id, "status": "completed"})
        for ask_id, request in waiting.items():
            if ask_id not in self._asked:
                self._asked[ask_id] = self._ask(request)

    def _concerns(self, ask_id: str, ask: OpenAsk) -> bool:
        """An approval concerns the whole workspace: it is asked where the editor waits for something."""
        if isinstance(ask.request, ApprovalRequest):
            return ask_id in self._asked or self._is_prompting()
        return ask.session_id == self._session_id

    def close(self) -> None:
        for asked in self._asked.values():
            self._take_back(asked)
        self._asked.clear()

    def _take_back(self, asked: Asked | None) -> None:
        if asked and not asked.answer.done():
            self._peer.forget(asked)
            self._peer.notify("$/cancel_request", {"requestId": asked.id})

    def _show(self, update: Json) -> None:
        self._peer.notify("session/update", {"sessionId": self._session_id, "update": update})

    def _ask(self, request: AskRequest) -> Asked | None:
        match request:
            case PermissionRequest():
                asked = self._peer.ask("session/request_permission", permission_params(self._session_id, request))
            case ApprovalRequest():
                params = approval_params(self._session_id, request)
                self._approvals[request.id] = approval_call_id(request)
                self._show({"sessionUpdate": "tool_call", **params["toolCall"]})
                asked = self._peer.ask("session/request_permission", params)
            case QuestionBatchRequest() if self._can_ask_questions:
                asked = self._peer.ask("elicitation/create", question_params(self._session_id, request))
            case QuestionBatchRequest():
                self._tell(request)
                return None
            case _:
                assert_never(request)
        asked.answer.add_done_callback(lambda answer: self._answered(request, answer))
        return asked

    def _answered(self, request: AskRequest, answer: asyncio.Future[RpcAnswer]) -> None:
        if answer.cancelled() or request.id not in self._follower.view.asks.open:
            return
        response = answer.result()
        match request:
            case PermissionRequest():
                self._permission(request, response)
            case ApprovalRequest():
                approve = approval_answer(response.result)
                if approve is not None:
                    self._follower.answer_approval(request.id, approve=approve)
            case QuestionBatchRequest() if response.error is None:
                self._follower.answer_questions(request.id, question_answers(request, response.result))
            case QuestionBatchRequest():
                self._tell(request)
            case _:
                assert_never(request)

    def _permission(self, request: PermissionRequest, response: RpcAnswer) -> None:
        given = None if response.error else permission_answer(request, response.result)
        if given is None and request.run_id in self._being_cancelled:
            return  # the editor puts it away because its user has cancelled the run: that ends it
        cannot_ask = response.error is not None and response.error.code == METHOD_UNKNOWN
        answer = given or (NOBODY_THERE if cannot_ask else ChosenOption("deny"))
        self._follower.answer_permission(request.id, answer.action, answer.reason, **answer.further)
