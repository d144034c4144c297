"""Questions: looking answers none, each answer is kept, and words are written where words are asked for."""

from __future__ import annotations

import pytest
from msgspec import structs

from covey.protocol.events import QuestionBatchNotification, QuestionChoice, QuestionItem
from covey.tui.face.effects import AnswerBatch, Cancel
from covey.tui.face.facts import CancelDone
from tests.tui.face.desk import Desk, a_batch, a_run


@pytest.fixture
def desk() -> Desk:
    desk = Desk()
    desk.event(a_run(waiting_on="question"))
    desk.look()
    return desk


COLOURS = QuestionItem(
    id="i1",
    type="single_choice",
    question="Which colour?",
    choices=(QuestionChoice(id="r", label="red"), QuestionChoice(id="b", label="blue")),
)
SHALL = QuestionItem(id="i2", type="yes_no", question="Shall I?")
NAME = QuestionItem(id="i3", type="free_text", question="Its name?")


def test_row_29_scrolling_and_looking_do_not_answer_a_question(desk: Desk) -> None:
    desk.event(a_batch(COLOURS, SHALL))
    desk.look()
    desk.wait(1)
    desk.keys("pageup", "pagedown", "f", "down", "escape", "enter", "enter")
    assert desk.did(AnswerBatch) == []
    assert "Which colour?" in desk.text


def test_row_29_every_answer_is_kept_also_one_in_words_that_stays_empty(desk: Desk) -> None:
    desk.event(a_batch(COLOURS, SHALL, NAME))
    desk.look()
    desk.wait(1)
    desk.keys("2", "e", "enter", "enter")  # blue, and no further words
    assert "Shall I?" in desk.text
    desk.keys("y", "enter", "enter")
    desk.write("kestrel")
    desk.keys("enter")
    [sent] = desk.did(AnswerBatch)
    colour, shall, name = sent.responses
    assert (colour.selected_ids, shall.yes, name.fill_in_text) == (("b",), True, "kestrel")


def test_where_words_are_the_only_answer_typing_writes_it(desk: Desk) -> None:
    desk.event(a_batch(NAME))
    desk.look()
    desk.wait(1)
    desk.write("x, or any fey name")  # letters that are keys at other questions
    assert desk.draft == "" and "> x, or any fey name" in desk.text
    assert "⏎ send" in desk.text
    desk.keys("enter")
    [sent] = desk.did(AnswerBatch)
    assert sent.responses[0].fill_in_text == "x, or any fey name"


def test_enter_chooses_what_somebody_went_to_and_goes_on(desk: Desk) -> None:
    desk.event(a_batch(COLOURS, SHALL))
    desk.look()
    desk.wait(1)
    desk.keys("enter")
    assert "choose first" in desk.text and "Which colour?" in desk.text
    desk.keys("down")
    assert "⏎ choose it, and next" in desk.text
    desk.keys("enter")
    assert "Shall I?" in desk.text and desk.did(AnswerBatch) == []
    desk.keys("y", "enter")
    [sent] = desk.did(AnswerBatch)
    assert sent.responses[0].selected_ids == ("b",)


@pytest.mark.parametrize(("keys", "chosen"), [(("2", "up"), ("r",)), (("down", "1"), ("r",)), (("1", "down"), ("b",))])
def test_enter_sends_the_choice_that_somebody_went_to_or_made_last(
    desk: Desk, keys: tuple[str, ...], chosen: tuple[str, ...]
) -> None:
    desk.event(a_batch(COLOURS))
    desk.look()
    desk.wait(1)
    desk.keys(*keys, "enter")
    assert desk.did(AnswerBatch)[0].responses[0].selected_ids == chosen


def test_words_are_the_answer_of_whoever_looked_at_the_choices_before(desk: Desk) -> None:
    desk.event(a_batch(COLOURS))
    desk.look()
    desk.wait(1)
    desk.keys("down", "e")
    desk.write("green")
    desk.keys("enter", "enter")
    assert [(a.selected_ids, a.notes) for a in desk.did(AnswerBatch)[0].responses] == [((), "green")]


def test_of_several_choices_enter_takes_none_that_was_not_chosen(desk: Desk) -> None:
    desk.event(a_batch(structs.replace(COLOURS, type="multi_choice")))
    desk.look()
    desk.wait(1)
    desk.keys("down", "enter")
    assert desk.did(AnswerBatch) == []
    desk.keys("space", "enter")
    assert desk.did(AnswerBatch)[0].responses[0].selected_ids == ("b",)


def test_a_question_whose_run_is_cancelled_does_not_say_that_the_agent_goes_on(desk: Desk) -> None:
    desk.event(a_batch(COLOURS))
    desk.look()
    desk.wait(1)
    desk.keys("escape", "escape")
    assert desk.did(Cancel) == [Cancel("s1")]
    desk.feed(CancelDone(1))
    desk.event(QuestionBatchNotification(batch_id="q1", session_id="s1"))
    desk.look()
    assert "cancelled 1 run" in desk.text and "goes on without" not in desk.text


def test_whoever_writes_goes_on_writing_when_words_are_asked_for(desk: Desk) -> None:
    desk.write("add a ", every=0.04)
    desk.event(a_batch(NAME))
    desk.look()
    desk.wait(1)
    desk.write("nest")
    assert desk.draft == "add a nest"


@pytest.mark.parametrize(("item", "keys", "leads"), [(NAME, "", "other keys"), (COLOURS, "e", "back")])
def test_every_row_says_the_same_of_escape(desk: Desk, item: QuestionItem, keys: str, leads: str) -> None:
    desk.event(a_batch(item))
    desk.look()
    desk.wait(1)
    desk.keys(*keys)
    assert desk.text.count(f"esc {leads}") == 2 and f"esc {leads}" in desk.screen[-1]
    assert "keep typing" not in desk.text
    desk.keys("escape")
    assert "esc keep typing" in desk.screen[-1] and "keep typing: esc" in desk.text


def test_after_escape_a_question_for_words_can_be_left_without_an_answer(desk: Desk) -> None:
    desk.event(a_batch(NAME))
    desk.look()
    desk.wait(1)
    desk.keys("enter")
    assert "write an answer, or esc" in desk.text and desk.did(AnswerBatch) == []
    desk.keys("escape")
    desk.keys("x")
    desk.wait(0.3)
    assert desk.did(AnswerBatch) == [AnswerBatch("q1", ())]
