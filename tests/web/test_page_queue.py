"""What a prompt does to a run that is under way, on the page."""

from __future__ import annotations

import pytest

from tests.support.fake_model import FakeModel, Reply
from tests.web.pages import Site, Tab, expect, until


@pytest.mark.parametrize(("key", "mode"), [("Enter", "fold"), ("Alt+Enter", "own_turn")])
def test_while_it_works_enter_steers_and_alt_enter_queues_as_in_the_terminal(
    site: Site, tab: Tab, model: FakeModel, key: str, mode: str
) -> None:
    model.on(lambda request: Reply(gates={1: "go"}) if len(model.requests) == 1 else Reply(text="Second."))
    tab.prompt("First.")
    until(lambda: model.requests)
    tab.waits_for("#stop")
    tab.page.fill("#prompt", "Second, please.")
    tab.sees("Steer: joins what is being done, at its next step · Alt Enter: Queue", within="#hint")
    tab.page.press("#prompt", key)
    expect(tab.waits_for(".queue-list li small", int(mode == "fold"))).to_have_text(
        ["joins the turn"] * (mode == "fold")
    )
    model.release("go")
    tab.sees("Second.")
    tab.idle()
    assert site.workspace.get("/runs")[0]["mode"] == mode
