"""The tools that other agents get: names, what they take, and reading it. Pure."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from covey.protocol.messages import Wire
from covey.rpc.messages import Params

LONGEST_WAIT_S = 600.0
USUAL_WAIT_S = 240.0
"""Most agents give up on a tool after five minutes, unless they are told of progress."""
MOST_SESSIONS = 50
MOST_MESSAGES = 50

Directory = Annotated[str, msgspec.Meta(description="The directory, absolute; default: the one Covey was started for.")]
Wait = Annotated[
    float,
    msgspec.Meta(ge=0, le=LONGEST_WAIT_S, description="Answer after so many seconds, also if it still runs."),
]


class PromptCall(Wire, frozen=True):
    """Give Covey a task. Answers with the result, or with what it asks, or that it still runs."""

    prompt: Annotated[str, msgspec.Meta(min_length=1, description="The task, in words.")]
    session_id: Annotated[str, msgspec.Meta(description="Go on in this session; default: a new one.")] = ""
    cwd: Directory = ""
    model: Annotated[str, msgspec.Meta(description="provider/model, for this task only.")] = ""
    plan: Annotated[bool, msgspec.Meta(description="Look, and say what it would do; change nothing.")] = False
    wait_s: Wait = USUAL_WAIT_S


class WaitCall(Wire, frozen=True):
    """Wait for a run that still works, or that waited for an answer."""

    run_id: str
    cwd: Directory = ""
    wait_s: Wait = USUAL_WAIT_S


class CancelCall(Wire, frozen=True):
    """Cancel one run, and not its neighbours."""

    run_id: str
    cwd: Directory = ""


class AnswerToQuestion(Wire, frozen=True):
    """One answer: which of the fields counts depends on the question."""

    question_id: str
    yes: bool | None = None
    choice_ids: tuple[str, ...] = ()
    text: str = ""


class AnswerCall(Wire, frozen=True):
    """Answer what a run asks: a permission with `action`, questions with `answers` (none: it goes on without)."""

    ask_id: str
    action: Literal["allow", "allow_session", "deny"] | None = None
    reason: Annotated[str, msgspec.Meta(description="With deny: why, which the model reads.")] = ""
    network: Annotated[bool, msgspec.Meta(description="With allow: the command may use the network.")] = False
    answers: tuple[AnswerToQuestion, ...] = ()
    cwd: Directory = ""


class ListCall(Wire, frozen=True):
    """The sessions of a directory, the last changed first."""

    cwd: Directory = ""
    before: Annotated[str, msgspec.Meta(description="The id after which to go on: the last one that you have.")] = ""
    limit: Annotated[int, msgspec.Meta(ge=1, le=MOST_SESSIONS)] = 20


class ReadCall(Wire, frozen=True):
    """The newest messages of a session, as Markdown."""

    session_id: str
    cwd: Directory = ""
    before: Annotated[str, msgspec.Meta(description="Only messages before this one: `older` of an answer.")] = ""
    limit: Annotated[int, msgspec.Meta(ge=1, le=MOST_MESSAGES)] = 20


ToolCallParams = PromptCall | WaitCall | CancelCall | AnswerCall | ListCall | ReadCall

CALLS: dict[str, type[ToolCallParams]] = {
    "prompt": PromptCall,
    "wait": WaitCall,
    "cancel": CancelCall,
    "answer": AnswerCall,
    "list_sessions": ListCall,
    "read_session": ReadCall,
}
_LOOKS = ("wait", "list_sessions", "read_session")


class WrongArguments(Exception):
    """What was given does not fit; the sentence is for the model that gave it."""


def definitions() -> list[Params]:
    return [_definition(name, call) for name, call in CALLS.items()]


def _definition(name: str, call: type[ToolCallParams]) -> Params:
    (schema,), components = msgspec.json.schema_components([call], ref_template="#/$defs/{name}")
    own = dict(components.pop(call.__name__) if "$ref" in schema else schema)
    description = str(own.pop("description", call.__doc__))
    if components:
        own["$defs"] = components
    return {
        "name": name,
        "title": name.replace("_", " ").capitalize(),
        "description": description,
        "inputSchema": {**own, "type": "object", "additionalProperties": False},
        "annotations": {"readOnlyHint": name in _LOOKS, "openWorldHint": name == "prompt"},
    }


def read_call(name: str, arguments: Any) -> ToolCallParams | None:
    """What was called, checked; None: there is no such tool."""
    call = CALLS.get(name)
    if call is None:
        return None
    given = arguments if arguments is not None else {}
    known = {field.encode_name for field in msgspec.structs.fields(call)}
    if isinstance(given, dict) and (unknown := sorted(set(given) - known)):
        raise WrongArguments(f"{name} takes {', '.join(sorted(known))}; not {', '.join(unknown)[:200]}.")
    try:
        return msgspec.convert(given, call)
    except msgspec.ValidationError as error:
        raise WrongArguments(f"{name}: {error}") from None
