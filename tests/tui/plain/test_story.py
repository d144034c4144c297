"""What happens in a session, as lines: the same sentences as on every other face."""

from __future__ import annotations

import msgspec
import pytest

from covey.client.view.commands import LoadMessages, LoadRuns
from covey.client.view.inputs import Connected, MessagesLoaded, Received, RunsLoaded
from covey.client.view.view import View
from covey.protocol.events import AgentEvent, Event, created, updated
from covey.protocol.messages import Message
from covey.protocol.runs import RunOptions
from covey.tui.plain.story import LineStory
from tests.client.values import run_complete, some_run, text_message


class Told:
    """A story of session s1 at second 100, fed with events."""

    def __init__(self) -> None:
        self.view = View("s1", loads=False)
        self.story = LineStory(self.view, 80, "/project", lambda: 100.0, echoes=False, is_new=True)
        self.story.posted("r1")

    def event(self, event: Event) -> list[str]:
        return [row.text for row in self.story.take(Received(event), self.view.event(event))]


@pytest.mark.parametrize(("is_asked_for", "why"), [(True, ""), (False, "became long, and ")])
def test_a_summary_that_was_asked_for_is_not_explained(is_asked_for: bool, why: str) -> None:
    told = Told()
    told.event(updated(msgspec.structs.replace(some_run(), options=RunOptions(summarize=is_asked_for))))
    summary = msgspec.structs.replace(text_message("m1", "x", finish="end_turn", run_id="r1"), is_summary_message=True)
    assert told.event(created(summary)) == [f"The conversation {why}goes on from a summary of it."]


def test_a_retry_is_said_as_elsewhere_with_when_it_will_be() -> None:
    told = Told()
    told.event(updated(some_run()))
    retry = AgentEvent(type="retry", session_id="s1", run_id="r1", reason="It is busy.", attempt=2, retry_at=107.0)
    assert told.event(created(retry)) == ["It is busy (attempt 2); trying again in 7 s."]


def _loaded(told: Told, *messages: Message) -> list[str]:
    """What is told to somebody who comes while the run goes on."""
    commands = told.view.apply(Connected(1.0)).commands
    [messages_load] = [each.load for each in commands if isinstance(each, LoadMessages)]
    runs_load = next(each.load for each in commands if isinstance(each, LoadRuns) and each.session_id)
    answers = (RunsLoaded(runs_load, (some_run(),)), MessagesLoaded(messages_load, messages, has_older=True))
    return [row.text for answer in answers for row in told.story.take(answer, told.view.apply(answer))]


def _late() -> Told:
    told = Told()
    told.view = View("s1")
    told.story = LineStory(told.view, 80, "/project", lambda: 100.0, echoes=False)
    return told


PROMPT = text_message("m1", "Do it.", role="user")


@pytest.mark.parametrize(("is_first_known", "end"), [(True, "Done: 2 steps."), (False, "Done.")])
def test_steps_from_before_are_counted_or_none_is(is_first_known: bool, end: str) -> None:
    told = _late()
    known = [PROMPT] if is_first_known else []
    _loaded(told, *known, text_message("m2", "First.", finish="tool_use"))
    told.event(created(text_message("m3", "Second.", finish="end_turn")))
    assert told.event(created(run_complete(text="Second.", message_id="m3")))[-1] == end


def test_an_answer_that_is_being_written_is_told_once_and_goes_on() -> None:
    told = _late()
    said = _loaded(told, PROMPT, text_message("m2", "One line.\n\nHalf a"))
    assert said[:4] == ["This session has 2 messages or more. The last of them:", "You: ", "Do it.", "One line."]
    said += told.event(created(text_message("m2", "One line.\n\nHalf a line.", finish="end_turn")))
    said += told.event(created(run_complete(text="One line.\n\nHalf a line.", message_id="m2")))
    assert said[4:] == ["", "Half a line.", "Done: 1 step."]
