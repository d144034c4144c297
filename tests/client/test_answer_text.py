"""The words of an answer in pieces: nothing is missing or doubled, whatever the stream went through."""

from __future__ import annotations

from covey.client.answer_text import AnswerText
from covey.client.transcript import Transcript
from covey.protocol.events import Event, created, updated
from covey.protocol.runs import RunComplete
from tests.client.values import text_delta, text_message


def pieces(*events: Event) -> list[str]:
    text, transcript = AnswerText("r1"), Transcript()
    return [piece for event in events if (piece := text.take(event, transcript.apply(event)))]


def end(text: str) -> Event:
    return created(RunComplete(session_id="s1", run_id="r1", message_id="m", text=text))


def test_growth_comes_as_it_is_and_what_a_message_began_with_comes_too() -> None:
    assert pieces(
        created(text_message("m", "one ")),
        updated(text_delta("m", 4, "two ")),
        updated(text_delta("m", 4, "two ")),
        updated(text_delta("m", 8, "three")),
        updated(text_message("m", "one two three", finish="end_turn")),
        end("one two three"),
    ) == ["one ", "two ", "three"]


def test_a_message_that_was_tried_again_comes_again_when_it_is_finished() -> None:
    assert pieces(
        created(text_message("m", "first ")),
        updated(text_delta("m", 6, "try")),
        updated(text_message("m", "second ")),
        updated(text_delta("m", 7, "try")),
        updated(text_message("m", "second try", finish="end_turn")),
        end("second try"),
    ) == ["first ", "try", "\nsecond try"]


def test_what_was_lost_on_the_way_comes_with_the_end_and_other_runs_do_not() -> None:
    other = created(text_message("x", "not ours", run_id="other"))
    assert pieces(other, created(text_message("m", "a")), end("a b")) == ["a", " b"]


def test_each_message_begins_on_a_line_of_its_own() -> None:
    events = (created(text_message("a", "I look.")), created(text_message("m", "Done.")))
    assert pieces(*events) == ["I look.", "\nDone."]
