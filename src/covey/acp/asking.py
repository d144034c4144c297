"""What waits for a person, as an editor asks it, and what its answer means to the server. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, assert_never

import msgspec

from covey.acp.calls import permission_call
from covey.acp.content import Json, fenced, shown, text_block
from covey.lines.permission import ALWAYS, reach_words
from covey.lines.plain_text import visible
from covey.protocol.events import PermissionRequest, QuestionBatchRequest, QuestionItem
from covey.protocol.extensions import ApprovalRequest
from covey.protocol.requests import PermissionAction, QuestionResponse


@dataclass(frozen=True, slots=True)
class ChosenOption:
    action: PermissionAction
    reason: str = ""
    further: Mapping[str, bool] = field(default_factory=dict)
    """What else there is in `Grant`."""


_PLAIN: tuple[PermissionAction, ...] = ("allow", "allow_session", "allow_always", "allow_prefix")
_ANSWERS: dict[str, ChosenOption] = {
    **{action: ChosenOption(action) for action in _PLAIN},
    "allow_network": ChosenOption("allow", further={"network": True}),
    "allow_offline": ChosenOption("allow"),
    "allow_unsandboxed": ChosenOption("allow", further={"unsandboxed": True}),
    "deny": ChosenOption("deny"),
}
_NETWORKED: dict[str, ChosenOption] = {action: ChosenOption(action, further={"network": True}) for action in _PLAIN}
"""What the plain ones mean where the call asks for the network."""
NOBODY_THERE = ChosenOption("deny", further={"unattended": True})
"""The editor cannot ask anybody."""


def permission_params(session_id: str, request: PermissionRequest) -> Json:
    return {"sessionId": session_id, "toolCall": permission_call(request), "options": _options(request)}


def _options(request: PermissionRequest) -> list[Json]:
    reach = reach_words(request)
    options = [_option("allow", f"Allow once{reach}", "allow_once")]
    covers = ALWAYS.get(request.action, "exactly this")
    options.append(_option("allow_session", f"Allow in this session{reach}: {covers}", "allow_always"))
    if request.rules:
        options.append(_option("allow_always", f"Always here{reach}: {' '.join(request.rules)}", "allow_always"))
    if request.prefix_rules:
        options.append(_option("allow_prefix", f"Always here{reach}: {request.prefix_rules[-1]}", "allow_always"))
    if request.confined:
        if request.yes_has_network:
            options.append(_option("allow_offline", "Allow once, without network", "allow_once"))
        else:
            options.append(_option("allow_network", "Allow once, with network", "allow_once"))
        options.append(_option("allow_unsandboxed", "Allow once, outside the sandbox", "allow_once"))
    return [*options, _option("deny", "Reject", "reject_once")]


def _option(id: str, name: str, kind: str) -> Json:
    return {"optionId": id, "name": visible(name), "kind": kind}


def permission_answer(request: PermissionRequest, result: Any) -> ChosenOption | None:
    """What somebody chose; None: the question was put away, or the answer cannot be read."""
    chosen = _selected(result)
    return (_NETWORKED.get(chosen) if request.yes_has_network else None) or _ANSWERS.get(chosen)


def _selected(result: Any) -> str:
    outcome = result.get("outcome") if isinstance(result, dict) else None
    if not isinstance(outcome, dict) or outcome.get("outcome") != "selected":
        return ""
    return str(outcome.get("optionId"))


# ── approvals ──


def approval_params(session_id: str, request: ApprovalRequest) -> Json:
    """An extension that nobody has approved as it is: all of it, since that is what a yes is about."""
    told = msgspec.json.format(msgspec.json.encode(request)).decode()
    about = "its tools, as they are now," if request.what == "tools" else "it"
    tools = f"{len(request.tools)} tools of " if request.what == "tools" else ""
    call = {
        "toolCallId": approval_call_id(request),
        "title": visible(f"Use {tools}{request.kind} {request.name}, which {request.source} names"),
        "kind": "other",
        "rawInput": msgspec.to_builtins(request),
        "status": "pending",
        "content": [
            shown(text_block(f"Nobody has approved {about} yet.")),
            shown(text_block(fenced("\n".join(visible(line) for line in told.split("\n")), "json"))),
            *(shown(text_block(visible(warning))) for warning in request.warnings),
        ],
    }
    options = [_option("approve", "Approve", "allow_always"), _option("refuse", "Refuse", "reject_always")]
    return {"sessionId": session_id, "toolCall": call, "options": options}


def approval_call_id(request: ApprovalRequest) -> str:
    return f"approval-{request.id}"


def approval_answer(result: Any) -> bool | None:
    """None: it was put away, and stays open for others."""
    return {"approve": True, "refuse": False}.get(_selected(result))


# ── questions ──


def question_params(session_id: str, batch: QuestionBatchRequest) -> Json:
    """As a form, with one field for each question and one for whatever else there is to say."""
    return {
        "sessionId": session_id,
        "mode": "form",
        "message": question_text(batch.questions),
        "requestedSchema": {
            "type": "object",
            "properties": {item.id: _field(item) for item in batch.questions},
            "required": [item.id for item in batch.questions if item.type in ("yes_no", "single_choice")],
        },
    }


def question_text(questions: Sequence[QuestionItem]) -> str:
    """What is asked, to be read."""
    lines: list[str] = []
    for item in questions:
        lines += [visible(item.question), *([visible(item.description)] if item.description else [])]
        lines += [f"- {visible(choice.label)}" for choice in item.choices]
    return "\n".join(lines)


def _field(item: QuestionItem) -> Json:
    about: Json = {"title": visible(item.question)}
    if item.description:
        about["description"] = visible(item.description)
    choices = [{"const": choice.id, "title": visible(choice.label)} for choice in item.choices]
    match item.type:
        case "yes_no":
            return {"type": "boolean", **about}
        case "single_choice":
            return {"type": "string", "oneOf": choices, **about}
        case "multi_choice":
            return {"type": "array", "items": {"anyOf": choices}, **about}
        case "free_text":
            return {"type": "string", **about}
        case _:
            assert_never(item.type)


def question_answers(batch: QuestionBatchRequest, result: Any) -> list[QuestionResponse]:
    """The answers to all questions; none: the agent goes on without."""
    fields = result if isinstance(result, dict) else {}
    content = fields.get("content")
    if fields.get("action") != "accept" or not isinstance(content, dict):
        return []
    return [_response(item, content.get(item.id)) for item in batch.questions]


def _response(item: QuestionItem, value: Any) -> QuestionResponse:
    known = {choice.id for choice in item.choices}
    match item.type:
        case "yes_no":
            return QuestionResponse(request_id=item.id, yes=value is True)
        case "single_choice" | "multi_choice":
            chosen = value if isinstance(value, list) else [value]
            return QuestionResponse(request_id=item.id, selected_ids=tuple(id for id in chosen if id in known))
        case "free_text":
            return QuestionResponse(request_id=item.id, fill_in_text=value if isinstance(value, str) else "")
        case _:
            assert_never(item.type)
