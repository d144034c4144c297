"""What happens in a session, as lines: the same sentences as on every other face."""

from __future__ import annotations

import msgspec
import pytest

from covey.client.view.inputs import Received
from covey.client.view.view import View
from covey.protocol.events import AgentEvent, Event, created, updated
from covey.protocol.runs import RunOptions
from covey.tui.plain.story import LineStory
from tests.client.values import some_run, text_message


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
