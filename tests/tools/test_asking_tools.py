"""todos, question and agent: what they ask of the server, and what they tell the model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from covey.tools.agent import agent_tool
from covey.tools.base import NoHost, Todo, Tool, ToolContext, ToolFailed, ToolOutput
from covey.tools.base import Question as Asked
from covey.tools.question import NOBODY, question_tool
from covey.tools.todos import todos_tool

pytestmark = pytest.mark.anyio


class Host(NoHost):
    """Notes what it is asked for."""

    def __init__(self, answers: list[str] | None = None, report: str = "") -> None:
        self.answers = answers
        self.report = report
        self.todos: dict[str, Sequence[Todo]] = {}
        self.asked: list[Asked] = []
        self.prompts: list[str] = []

    def set_todos(self, session_id: str, todos: Sequence[Todo]) -> None:
        self.todos[session_id] = todos

    async def ask(self, context: ToolContext, questions: Sequence[Asked]) -> list[str] | None:
        self.asked += questions
        return self.answers

    async def delegate(self, context: ToolContext, prompt: str, *, writes: bool = False, agent: str = "") -> str:
        self.prompts.append(f"(writes) {prompt}" if writes else prompt)
        return self.report


async def call(tool: Tool[Any], context: ToolContext, host: Host, **params: Any) -> ToolOutput:
    decoded = tool.decode(json.dumps(params))
    assert tool.intent(decoded, context).harmless
    return await tool.run(decoded, replace(context, host=host))


# ── todos ──


async def test_the_list_is_replaced(context: ToolContext) -> None:
    host = Host()
    todos = [
        {"content": "Look", "status": "completed"},
        {"content": "Think", "status": "in_progress", "active_form": "Thinking"},
        {"content": "Write", "status": "pending"},
    ]
    output = await call(todos_tool(), context, host, todos=todos)
    assert output.content == "The list is saved: 1 completed, 1 in_progress, 1 pending."
    assert host.todos == {
        "s1": (Todo("Look", "completed"), Todo("Think", "in_progress", "Thinking"), Todo("Write", "pending"))
    }
    assert json.dumps(output.metadata)
    assert (await call(todos_tool(), context, host, todos=[])).content == "The list is empty now."
    assert host.todos == {"s1": ()}


@pytest.mark.parametrize(
    ("todos", "message"),
    [
        ([{"content": "a", "status": "in_progress"}] * 2, "2 items are in_progress"),
        ([{"content": "a", "status": "pending"}, {"content": " ", "status": "pending"}], "Item 2 has no content"),
        ([{"content": "a" * 501, "status": "pending"}], "Item 1 is longer than 500"),
        ([{"content": "a", "status": "pending", "active_form": "b" * 501}], "Item 1 is longer than 500"),
        ([{"content": "a", "status": "pending"}] * 101, "length <= 100"),
        ([{"content": "a", "status": "done"}], "Invalid enum value 'done'"),
        ([{"content": "a"}], "missing required field `status`"),
        ("a", "Expected `array`"),
    ],
)
async def test_a_list_that_cannot_be_kept_replaces_nothing(context: ToolContext, todos: Any, message: str) -> None:
    host = Host()
    with pytest.raises(ToolFailed, match=message):
        await call(todos_tool(), context, host, todos=todos)
    assert host.todos == {}


async def test_without_a_server_there_is_no_list(context: ToolContext) -> None:
    with pytest.raises(ToolFailed, match="no list"):
        await todos_tool().run(todos_tool().decode('{"todos": []}'), context)


# ── question ──

CHOICES = [{"label": "red"}, {"label": "blue", "description": "like the sea"}]


async def test_answers_come_with_their_questions(context: ToolContext) -> None:
    host = Host(["yes", "red", "one\ntwo", " "])
    questions = [
        {"question": "Go on?", "type": "yes_no"},
        {"question": "Which?", "type": "single_choice", "choices": CHOICES},
        {"question": "Why?", "type": "free_text", "description": "In short."},
        {"question": "And?", "type": "free_text"},
    ]
    output = await call(question_tool(), context, host, questions=questions)
    assert output.content == ("1. Go on?\n   yes\n2. Which?\n   red\n3. Why?\n   one\n   two\n4. And?\n   (no answer)")
    assert [question.question for question in host.asked] == ["Go on?", "Which?", "Why?", "And?"]
    assert output.metadata == {"answers": host.answers}


@pytest.mark.parametrize("answers", [[], ["a"], ["a", "b", "c"]])
async def test_answers_that_do_not_fit_in_number_do_no_harm(context: ToolContext, answers: list[str]) -> None:
    questions = [{"question": "A?", "type": "free_text"}, {"question": "B?", "type": "free_text"}]
    content = (await call(question_tool(), context, Host(answers), questions=questions)).content
    assert content.count("?") == 2 and "c" not in content


async def test_nobody_may_answer(context: ToolContext) -> None:
    output = await call(question_tool(), context, Host(None), questions=[{"question": "A?", "type": "yes_no"}])
    assert output.content == NOBODY and not output.is_error


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ({"question": " ", "type": "yes_no"}, "it is empty"),
        ({"question": "a" * 501, "type": "yes_no"}, "longer than 500"),
        ({"question": "A?", "type": "yes_no", "description": "a" * 2001}, "description is longer"),
        ({"question": "A?", "type": "yes_no", "choices": CHOICES}, "yes_no has no choices"),
        ({"question": "A?", "type": "single_choice"}, "needs 2 to 10 choices"),
        ({"question": "A?", "type": "multi_choice", "choices": CHOICES[:1]}, "needs 2 to 10 choices"),
        ({"question": "A?", "type": "multi_choice", "choices": CHOICES * 6}, "needs 2 to 10 choices"),
        ({"question": "A?", "type": "multi_choice", "choices": CHOICES * 2}, "a label of its own"),
        ({"question": "A?", "type": "single_choice", "choices": [{"label": "a"}, {"label": ""}]}, "a label of its own"),
        ({"question": "A?", "type": "free"}, "Invalid enum value 'free'"),
    ],
)
async def test_a_question_that_cannot_be_shown_is_not_asked(
    context: ToolContext, question: dict[str, Any], message: str
) -> None:
    host = Host(["x", "y"])
    with pytest.raises(ToolFailed, match=message):
        await call(question_tool(), context, host, questions=[{"question": "Fine?", "type": "yes_no"}, question])
    assert host.asked == []


@pytest.mark.parametrize("count", [0, 6])
async def test_how_many_questions_there_may_be(context: ToolContext, count: int) -> None:
    with pytest.raises(ToolFailed, match="length"):
        await call(question_tool(), context, Host(), questions=[{"question": "A?", "type": "yes_no"}] * count)


# ── agent ──


async def test_the_report_comes_back(context: ToolContext) -> None:
    host = Host(report="\nIn a.py.\n")
    assert (await call(agent_tool(), context, host, prompt="Where is it?")).content == "In a.py."
    await call(agent_tool(), context, host, prompt="Mend it.", writes=True)
    assert host.prompts == ["Where is it?", "(writes) Mend it."]
    assert agent_tool().parallel
    assert "without a report" in (await call(agent_tool(), context, Host(report=" "), prompt="Where?")).content


async def test_a_prompt_must_say_something(context: ToolContext) -> None:
    host = Host()
    with pytest.raises(ToolFailed, match="prompt is empty"):
        await call(agent_tool(), context, host, prompt=" \n")
    with pytest.raises(ToolFailed, match="length <= 50000"):
        await call(agent_tool(), context, host, prompt="a" * 50_001)
    assert host.prompts == []
