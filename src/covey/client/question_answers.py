"""What a program may answer to questions, and what is sent for it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, assert_never

from covey.protocol.errors import CoveyError
from covey.protocol.events import QuestionBatchRequest, QuestionItem
from covey.protocol.requests import QuestionResponse

QuestionAnswer = str | bool | Sequence[str] | QuestionResponse
"""To one question: words, such as the id or the label of a choice; a list of them; True or False for yes or no."""
QuestionAnswers = QuestionAnswer | Sequence[QuestionAnswer] | None
"""One answer for each question of a batch, in their order; of a single question, also the answer itself.

None of them, as an empty list: the agent goes on without. None: somebody else answers, such as another client.
"""
_YES_OR_NO = {"y": True, "yes": True, "n": False, "no": False}


def responses_of(batch: QuestionBatchRequest, answers: QuestionAnswers) -> tuple[QuestionResponse, ...]:
    """What is sent for what a function has returned that answers. Raises CoveyError if that is no answer."""
    given: Any = [answers] if isinstance(answers, str | bool | QuestionResponse) else answers
    count = len(batch.questions)
    if not isinstance(given, list | tuple) or len(given) != count:
        wanted = "the answer" if count == 1 else f"a list of {count} answers, one for each question"
        raise _wrong(f"on_question returned {answers!r:.200}, and {wanted} is wanted: {_asked(batch)}")
    return tuple(_response(item, answer) for item, answer in zip(batch.questions, given, strict=True))


def _response(item: QuestionItem, answer: Any) -> QuestionResponse:
    if isinstance(answer, QuestionResponse):
        return answer
    if item.type == "yes_no":
        said = answer if isinstance(answer, bool) else _YES_OR_NO.get(str(answer).strip().lower())
        if said is None:
            raise _unfit(item, answer, "yes or no")
        return QuestionResponse(request_id=item.id, yes=said)
    words = [answer] if isinstance(answer, str) else answer
    if not isinstance(words, list | tuple) or not all(isinstance(word, str) and word.strip() for word in words):
        raise _unfit(item, answer, "a text" if item.type != "multi_choice" else "a list of texts")
    match item.type:
        case "single_choice" | "free_text" if len(words) != 1:
            raise _unfit(item, answer, "one text")
        case "free_text":
            return QuestionResponse(request_id=item.id, fill_in_text=words[0])
        case "single_choice" | "multi_choice":
            return _choice(item, words)
        case _:
            assert_never(item.type)


def _choice(item: QuestionItem, words: Sequence[str]) -> QuestionResponse:
    """What is neither the id nor the label of a choice is an answer of one's own."""
    known = {choice.label.strip().lower(): choice.id for choice in item.choices}
    known |= {choice.id.lower(): choice.id for choice in item.choices}
    found = [(word, known.get(word.strip().lower())) for word in words]
    chosen = tuple(dict.fromkeys(choice for _, choice in found if choice is not None))
    own = ", ".join(word for word, choice in found if choice is None)
    return QuestionResponse(request_id=item.id, selected_ids=chosen, fill_in_text=own)


def _asked(batch: QuestionBatchRequest) -> str:
    return " · ".join(f"{item.question} ({item.type})" for item in batch.questions)


def _unfit(item: QuestionItem, answer: object, wanted: str) -> CoveyError:
    return _wrong(f"on_question answered {answer!r:.200} to {item.question!r}, and {wanted} is wanted")


def _wrong(message: str) -> CoveyError:
    return CoveyError(message, "wrong_answer")
