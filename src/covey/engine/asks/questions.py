"""The desk where the agent asks people what only they can know. Several batches may wait; each is answered once.

A batch outlives the client that saw it: whoever attaches later gets it too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from covey.engine.asks.pending import Pending
from covey.engine.world import World
from covey.protocol.errors import BadRequest
from covey.protocol.events import (
    QuestionBatchNotification,
    QuestionBatchRequest,
    QuestionChoice,
    QuestionItem,
    created,
)
from covey.protocol.requests import QuestionResponse
from covey.protocol.who import NOBODY, Who
from covey.store.journal import WorkspaceJournal
from covey.tools.base import Question, ToolContext


class _Answers(NamedTuple):
    words: list[str] | None
    """None: refused, or the call was cancelled."""
    by: str | None = None


class QuestionDesk:
    """The batches of questions that wait in one workspace."""

    def __init__(self, journal: WorkspaceJournal, world: World) -> None:
        self._journal = journal
        self._world = world
        self._pending: Pending[QuestionBatchRequest, _Answers] = Pending()

    @property
    def pending(self) -> list[QuestionBatchRequest]:
        return self._pending.requests

    async def ask(self, context: ToolContext, questions: Sequence[Question]) -> list[str] | None:
        """Wait until somebody answers; None: somebody refused. If the call is cancelled, the batch is closed."""
        batch = QuestionBatchRequest(
            id=self._world.new_id(),
            session_id=context.session_id,
            tool_call_id=context.call_id,
            questions=tuple(_item(number, question) for number, question in enumerate(questions, 1)),
            run_id=context.run_id,
        )
        self._journal.write((), (created(batch),))
        answers = _Answers(None)
        try:
            answers = await self._pending.wait(batch.id, batch)
        finally:
            notification = QuestionBatchNotification(
                batch_id=batch.id,
                session_id=batch.session_id,
                run_id=batch.run_id,
                answered=answers.words is not None,
                answered_by=answers.by,
            )
            self._journal.write((), (created(notification),))
        return answers.words

    def answer(self, batch_id: str, responses: Sequence[QuestionResponse], who: Who = NOBODY) -> bool:
        """False: somebody else was first. Raises BadRequest, and leaves the batch open, if an answer is missing."""
        batch = self._pending.find(self._meant(batch_id))
        if batch is None:
            return False
        given = {response.request_id: response for response in responses}
        unknown = given.keys() - {item.id for item in batch.questions}
        if unknown:
            raise BadRequest(f"there is no question {min(unknown)!r} in this batch", "invalid_answer")
        words = [_words(item, given.get(item.id)) for item in batch.questions]
        return self._pending.answer(batch.id, _Answers(words, who.label))

    def refuse(self, batch_id: str, who: Who = NOBODY) -> bool:
        return self._pending.answer(self._meant(batch_id), _Answers(None, who.label))

    def _meant(self, batch_id: str) -> str:
        """A client that names no batch means the one that waits. Of several, none is guessed at."""
        waiting = [batch.id for batch in self.pending]
        if batch_id or not waiting:
            return batch_id
        if len(waiting) > 1:
            raise BadRequest(
                f"{len(waiting)} batches of questions wait: say which, by batch_request_id", "invalid_answer"
            )
        return waiting[0]


def _item(number: int, question: Question) -> QuestionItem:
    choices = tuple(
        QuestionChoice(id=str(index), label=choice.label, description=choice.description or None)
        for index, choice in enumerate(question.choices, 1)
    )
    return QuestionItem(
        id=str(number),
        type=question.type,
        question=question.question,
        description=question.description or None,
        choices=choices,
    )


def _words(item: QuestionItem, response: QuestionResponse | None) -> str:
    """An answer as the model reads it."""
    if response is None:
        raise BadRequest(f"the answer to {item.question!r} is missing", "invalid_answer")
    answer = _chosen(item, response)
    if notes := _notes(item, response):
        answer = f"{answer} ({notes})" if answer else notes
    if not answer:
        raise BadRequest(f"the answer to {item.question!r} is empty", "invalid_answer")
    return answer


def _notes(item: QuestionItem, response: QuestionResponse) -> str:
    """What was added in words; what is about one choice follows its label."""
    if isinstance(response.notes, str):
        return response.notes.strip()
    labels = {choice.id: choice.label for choice in item.choices}
    notes = [(labels.get(about, ""), note.strip()) for about, note in response.notes.items()]
    return "; ".join(f"{label}: {note}" if label else note for label, note in notes if note)


def _chosen(item: QuestionItem, response: QuestionResponse) -> str:
    own_words = response.fill_in_text.strip()
    if item.type == "free_text" or (own_words and not response.selected_ids):
        return own_words
    if item.type == "yes_no":
        return "" if response.yes is None else "yes" if response.yes else "no"
    labels = {choice.id: choice.label for choice in item.choices}
    unknown = [chosen for chosen in response.selected_ids if chosen not in labels]
    if unknown:
        raise BadRequest(f"{item.question!r} has no choice {unknown[0]!r}", "invalid_answer")
    if item.type == "single_choice" and len(response.selected_ids) > 1:
        raise BadRequest(f"{item.question!r} has one answer, not several", "invalid_answer")
    return ", ".join([*(labels[chosen] for chosen in response.selected_ids), *([own_words] if own_words else [])])
