"""Questions: what keys and clicks answer them, and when all of the answers are sent. Pure.

Looking answers none: Enter goes on from a choice that somebody has made or gone to, and an untouched question keeps it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from msgspec import structs

from covey.protocol.events import QuestionBatchRequest, QuestionItem
from covey.protocol.requests import QuestionResponse
from covey.tui.face.editor import Editor
from covey.tui.face.effects import AnswerBatch
from covey.tui.face.state import AskPanel
from covey.tui.face.step import FaceStep
from covey.tui.inputs import Key


def shown_item(panel: AskPanel, batch: QuestionBatchRequest) -> QuestionItem:
    """The question that is shown."""
    return batch.questions[min(panel.question, len(batch.questions) - 1)]


def answer_of(panel: AskPanel, item: QuestionItem) -> QuestionResponse:
    return next((a for a in panel.answers if a.request_id == item.id), QuestionResponse(request_id=item.id))


def _with_answer(panel: AskPanel, item: QuestionItem, **changes: object) -> AskPanel:
    """The panel with another answer to one question; the others stay as they are."""
    answer = structs.replace(answer_of(panel, item), **changes)
    others = tuple(a for a in panel.answers if a.request_id != item.id)
    return replace(panel, answers=(*others, answer), words=None, has_moved=False)


def _is_answered(panel: AskPanel, item: QuestionItem) -> bool:
    answer = answer_of(panel, item)
    match item.type:
        case "yes_no":
            return answer.yes is not None
        case "free_text":
            return bool(answer.fill_in_text)
        case "single_choice" | "multi_choice":
            return bool(answer.selected_ids or answer.notes)
        case _:
            assert_never(item.type)


def key(step: FaceStep, batch: QuestionBatchRequest, intent: str, pressed: Key) -> FaceStep | None:
    """What a key does to the question that is shown; None: nothing."""
    panel = step.state.ask
    item = shown_item(panel, batch)
    match intent:
        case "choice_up" | "choice_down" if item.choices:
            at = panel.choice + (1 if intent == "choice_down" else -1)
            return step.set(ask=replace(panel, choice=max(0, min(at, len(item.choices) - 1)), has_moved=True))
        case "choose":
            return choose(step, batch, panel.choice)
        case "question_yes" | "question_no" if item.type == "yes_no":
            return step.set(ask=_with_answer(panel, item, yes=intent == "question_yes"))
        case "question_words":
            given = answer_of(panel, item)
            text = given.fill_in_text or (given.notes if isinstance(given.notes, str) else "")
            return step.set(ask=replace(panel, words=Editor(text, len(text))))
        case "question_back":
            return step.set(ask=_at(panel, batch, max(panel.question - 1, 0)))
        case "question_next":
            return _next(step, batch)
        case "question_refuse":
            return step.answer(AnswerBatch(batch.id, ()))
    if pressed.name.isdecimal() and 0 < int(pressed.name) <= len(item.choices):
        return choose(step, batch, int(pressed.name) - 1)
    return None


def choose(step: FaceStep, batch: QuestionBatchRequest, number: int) -> FaceStep:
    """Choose, or of several choices take one back; nothing is sent."""
    panel = replace(step.state.ask, choice=number)
    item = shown_item(panel, batch)
    if item.type == "free_text":
        return step.set(ask=replace(panel, words=Editor()))
    if number >= len(item.choices):
        return step
    chosen, given = item.choices[number].id, answer_of(panel, item).selected_ids
    if item.type == "single_choice":
        selected: tuple[str, ...] = (chosen,)
    else:
        selected = tuple(i for i in given if i != chosen) if chosen in given else (*given, chosen)
    return step.set(ask=_with_answer(panel, item, selected_ids=selected))


def said(step: FaceStep, batch: QuestionBatchRequest, text: str) -> FaceStep:
    """Words were written, and Enter: where they are the answer it goes on, else they stand beside a choice."""
    panel = step.state.ask
    item = shown_item(panel, batch)
    if item.type != "free_text":
        return step.set(ask=_with_answer(panel, item, notes=text))
    if not text:
        return step.say("write an answer, or esc: x answers none")
    return _next(step.set(ask=_with_answer(panel, item, fill_in_text=text)), batch)


def written_to(panel: AskPanel, batch: QuestionBatchRequest) -> AskPanel:
    """Where words are the only answer, whoever types writes it: no letter is a key there, or begins a prompt."""
    item = shown_item(panel, batch)
    if item.type != "free_text" or panel.words is not None or _is_answered(panel, item):
        return panel
    return replace(panel, words=Editor())


def takes_marked(panel: AskPanel, batch: QuestionBatchRequest) -> bool:
    """Enter chooses the marked one, as in every list: somebody has gone to it, and only one can be chosen."""
    return panel.has_moved and shown_item(panel, batch).type == "single_choice"


def _at(panel: AskPanel, batch: QuestionBatchRequest, number: int) -> AskPanel:
    """The panel with another of the questions."""
    return written_to(replace(panel, question=number, choice=0, has_moved=False), batch)


def _next(step: FaceStep, batch: QuestionBatchRequest) -> FaceStep:
    """Enter goes on; on the last question it sends, once every question has an answer."""
    if takes_marked(step.state.ask, batch):
        step = choose(step, batch, step.state.ask.choice)
    panel = step.state.ask
    item = shown_item(panel, batch)
    if not _is_answered(panel, item):
        if item.type == "free_text":
            return step.set(ask=replace(panel, words=Editor()))
        return step.say("choose first: ↑ ↓, space or a number; e answers in words, x answers none")
    if panel.question + 1 < len(batch.questions):
        return step.set(ask=_at(panel, batch, panel.question + 1))
    missing = [n for n, each in enumerate(batch.questions) if not _is_answered(panel, each)]
    if missing:
        return step.set(ask=_at(panel, batch, missing[0])).say("this one has no answer yet")
    return step.answer(AnswerBatch(batch.id, tuple(answer_of(panel, each) for each in batch.questions)))
