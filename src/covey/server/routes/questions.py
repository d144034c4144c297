"""Routes about questions that the agent asks."""

from __future__ import annotations

from covey.protocol.events import QuestionBatchRequest
from covey.protocol.requests import AnswerQuestions, CancelQuestions, Resolved
from covey.server.endpoint import Call, Endpoint


async def list_questions(call: Call, _body: None) -> list[QuestionBatchRequest]:
    workspace = await call.workspace()
    return workspace.asks.questions()


async def answer_questions(call: Call, body: AnswerQuestions) -> Resolved:
    workspace = await call.workspace()
    return Resolved(resolved=workspace.asks.answer(body.batch_request_id, body.responses, call.who))


async def refuse_questions(call: Call, body: CancelQuestions | None) -> Resolved:
    workspace = await call.workspace()
    return Resolved(resolved=workspace.asks.refuse(body.batch_request_id if body else "", call.who))


Q = "/v1/workspaces/{id}/questions"

ENDPOINTS = (
    Endpoint("GET", Q, list_questions, "Questions that wait for an answer.", answer=list[QuestionBatchRequest]),
    Endpoint(
        "POST", Q + "/answer", answer_questions, "Answer a batch; the first answer wins.",
        AnswerQuestions, Resolved, needs="approve",
    ),
    Endpoint(
        "POST", Q + "/cancel", refuse_questions, "Answer none: the agent goes on alone.",
        CancelQuestions, Resolved, optional_body=True, needs="approve",
    ),
)  # fmt: skip
