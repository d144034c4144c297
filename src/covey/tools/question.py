"""The question tool: ask the people who work with the session, and wait for them."""

from __future__ import annotations

from typing import Annotated

import msgspec

from covey.permissions.judge import Intent
from covey.protocol.effects import Effect
from covey.tools.base import Question, Tool, ToolContext, ToolFailed, ToolOutput, built_in

QUESTIONS_LIMIT = 5
"""What one reads and answers in one go."""
CHOICES_LIMIT = 10
QUESTION_CHARACTERS = 500
DESCRIPTION_CHARACTERS = 2_000
LABEL_CHARACTERS = 200
"""What a dialog on a small screen can show."""

NOBODY = "Nobody answered. Go on with what is safest and easiest to undo, and say at the end what you assumed."


class QuestionParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    questions: Annotated[
        tuple[Question, ...],
        msgspec.Meta(min_length=1, max_length=QUESTIONS_LIMIT, description="1 to 5 questions, shown together."),
    ]


def question_tool() -> Tool[QuestionParams]:
    return built_in("question", Effect.TALKS, QuestionParams, intent=_intent, run=_run)


def _intent(params: QuestionParams, context: ToolContext) -> Intent:
    return Intent("question", "ask", params.questions[0].question, harmless=True)


async def _run(params: QuestionParams, context: ToolContext) -> ToolOutput:
    for number, question in enumerate(params.questions, 1):
        if trouble := _trouble(question):
            raise ToolFailed(f"Question {number} cannot be asked: {trouble}. Nothing was asked.")
    answers = await context.host.ask(context, params.questions)
    if answers is None:
        return ToolOutput(NOBODY, metadata={"answers": None})
    answers = [*answers, *[""] * (len(params.questions) - len(answers))]
    answered = zip(params.questions, answers, strict=False)
    lines = [
        f"{number}. {question.question}\n   {_answer(answer)}" for number, (question, answer) in enumerate(answered, 1)
    ]
    return ToolOutput("\n".join(lines), metadata={"answers": answers})


def _answer(answer: str) -> str:
    return answer.strip().replace("\n", "\n   ") or "(no answer)"


def _trouble(question: Question) -> str:
    """Why it cannot be shown; empty if it can."""
    labels = [choice.label.strip() for choice in question.choices]
    if not question.question.strip():
        return "it is empty"
    if len(question.question) > QUESTION_CHARACTERS:
        return f"it is longer than {QUESTION_CHARACTERS} characters; put what explains it into description"
    if max(len(text) for text in ("", question.description, *(choice.description for choice in question.choices))) > (
        DESCRIPTION_CHARACTERS
    ):
        return f"a description is longer than {DESCRIPTION_CHARACTERS} characters"
    if question.type not in ("single_choice", "multi_choice"):
        return f"{question.type} has no choices" if labels else ""
    if not 2 <= len(labels) <= CHOICES_LIMIT:
        return f"{question.type} needs 2 to {CHOICES_LIMIT} choices"
    if not all(labels) or len(set(labels)) < len(labels) or max(map(len, labels)) > LABEL_CHARACTERS:
        return f"each choice needs a label of its own, of at most {LABEL_CHARACTERS} characters"
    return ""
