"""The todos tool: the session's list of things to do, for the model to keep its plan and for people to see it."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

import msgspec

from covey.permissions.judge import Intent
from covey.protocol.effects import Effect
from covey.tools.base import Todo, Tool, ToolContext, ToolFailed, ToolOutput, built_in

TODOS_LIMIT = 100
"""More is not a plan any more, and the list is sent to every client with each change."""
TEXT_LIMIT = 500
"""Characters of one line."""


class TodosParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    todos: Annotated[
        tuple[Todo, ...],
        msgspec.Meta(max_length=TODOS_LIMIT, description="The whole list, in order."),
    ]


def todos_tool() -> Tool[TodosParams]:
    return built_in("todos", Effect.TALKS, TodosParams, intent=_intent, run=_run)


def _intent(params: TodosParams, context: ToolContext) -> Intent:
    return Intent("todos", "note", "the list of things to do", harmless=True)


async def _run(params: TodosParams, context: ToolContext) -> ToolOutput:
    for number, todo in enumerate(params.todos, 1):
        if not todo.content.strip():
            raise ToolFailed(f"Item {number} has no content: say what to do, or leave it out.")
        if max(len(todo.content), len(todo.active_form)) > TEXT_LIMIT:
            raise ToolFailed(f"Item {number} is longer than {TEXT_LIMIT} characters: shorten it.")
    count = Counter(todo.status for todo in params.todos)
    if count["in_progress"] > 1:
        raise ToolFailed(f"{count['in_progress']} items are in_progress. Only one may be; set the others to pending.")
    context.host.set_todos(context.session_id, params.todos)
    if not params.todos:
        return ToolOutput("The list is empty now.")
    counts = ", ".join(f"{count[status]} {status}" for status in ("completed", "in_progress", "pending"))
    return ToolOutput(f"The list is saved: {counts}.", metadata={"todos": msgspec.to_builtins(params.todos)})
