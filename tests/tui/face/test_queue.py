"""The queue: what is said of a prompt that waits is what the lane does with it."""

from __future__ import annotations

import pytest

from covey.protocol.runs import RunOptions
from covey.tui.plain.commands import how_it_goes
from tests.tui.face.desk import Desk, a_run


@pytest.mark.parametrize("options", [None, RunOptions(cwd="src"), RunOptions(accept_edits=True)])
def test_no_prompt_is_said_to_join_a_turn_that_lets_none_in(options: RunOptions | None) -> None:
    desk = Desk()
    desk.event(a_run(options=options))
    desk.event(a_run("r2", "queued", 2, "then this", mode="fold", posted_by="kim"))
    desk.look()
    is_open = options is None or not options.keep_others_out
    for words in ("kim · joins the turn", "⏎ steer", "⇥ queue", "steer it, or write"):
        assert (words in desk.text) == is_open
    for words in ("kim · waits", "⏎ queue", "> write what comes next"):
        assert (words in desk.text) != is_open
    assert how_it_goes("fold", desk.view).startswith("It joins the turn.") == is_open, "so says plain mode"


def test_nothing_joins_a_turn_that_is_being_cancelled() -> None:
    desk = Desk()
    desk.event(a_run(cancelled_by="run_cancel"))
    desk.event(a_run("r2", "queued", 2, "then this", mode="fold", posted_by="kim"))
    desk.look()
    assert "kim · waits" in desk.text
