"""Routes about extensions: what there is, and what waits for an approval."""

from __future__ import annotations

from covey.protocol.extensions import AnswerApproval, ApprovalRequest, ExtensionView
from covey.protocol.requests import Resolved
from covey.server.endpoint import Call, Endpoint


async def list_extensions(call: Call, _body: None) -> list[ExtensionView]:
    workspace = await call.workspace()
    return await workspace.extensions.all()


async def get_extension(call: Call, _body: None) -> ExtensionView:
    workspace = await call.workspace()
    return await workspace.extensions.one(call.path["kind"], call.path["name"])


async def list_approvals(call: Call, _body: None) -> list[ApprovalRequest]:
    workspace = await call.workspace()
    return workspace.extensions.approvals()


async def answer_approval(call: Call, body: AnswerApproval) -> Resolved:
    workspace = await call.workspace()
    return Resolved(resolved=await workspace.extensions.answer(body.id, approve=body.approve, who=call.who))


W = "/v1/workspaces/{id}"

ENDPOINTS = (
    Endpoint(
        "GET", W + "/extensions", list_extensions, "Extensions, their states, and what their processes use.",
        answer=list[ExtensionView],
    ),
    Endpoint(
        "GET", W + "/extensions/{kind}/{name}", get_extension, "One of them, with the end of its stderr.",
        answer=ExtensionView,
    ),
    Endpoint("GET", W + "/approvals", list_approvals, "What waits for an approval.", answer=list[ApprovalRequest]),
    Endpoint(
        "POST", W + "/approvals/answer", answer_approval, "Approve or refuse; the first answer wins.",
        AnswerApproval, Resolved, needs="approve",
    ),
)  # fmt: skip
