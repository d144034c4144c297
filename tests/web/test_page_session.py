"""A session on the page: prompts, answers, asks, the queue. The numbers are those of the statements in docs/PAGE.md."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from playwright.sync_api import Route

from tests.support.fake_model import FakeModel, Reply
from tests.web.pages import Site, Tab, expect, until

TOUCH = {"tools": [{"name": "bash", "input": {"command": "touch made && echo done"}}]}


def test_a_prompt_is_answered_and_its_session_has_a_link(site: Site, tab: Tab) -> None:
    tab.tell({"text": "Hello **you**."})
    tab.sees("Hello you.")
    tab.idle()
    assert tab.page.locator("article.assistant strong").inner_text() == "you"
    tab.page.reload()
    tab.sees("Hello you.")


def test_w07_one_tap_is_one_run_also_with_a_double_tap_and_a_lost_answer(site: Site, tab: Tab) -> None:
    session = site.session()
    site.show(tab, session)
    tab.may_fail = True
    lost: list[str] = []

    def lose_the_first(route: Route) -> None:
        if not lost:
            lost.append("once")
            route.fetch()
            route.abort()
        else:
            route.continue_()

    tab.page.route("**/agent?*", lose_the_first)
    tab.page.fill("#prompt", "Once, please.")
    tab.page.dblclick("#send")
    tab.sees("Hello from the fake model.")
    tab.idle()
    assert lost == ["once"]
    assert len(site.workspace.get(f"/runs?session_id={session}")) == 1


def test_w07_one_tap_is_one_run_also_when_the_server_dies_before_it_answers(
    site: Site, tab: Tab, model: FakeModel
) -> None:
    session = site.session()
    site.show(tab, session)
    model.on(lambda request: Reply(gates={0: "never"}))
    lost: list[str] = []

    def lose_the_first(route: Route) -> None:
        if lost:
            route.continue_()
            return
        lost.append("once")
        route.fetch()
        until(lambda: model.requests)
        site.stop(killed=True)
        route.abort()
        site.start()  # last: nothing of the test goes on before this has ended

    tab.page.route("**/agent?*", lose_the_first)
    tab.page.fill("#prompt", "Once, please.")
    tab.page.dblclick("#send")
    tab.sees("interrupted")
    tab.idle()
    assert lost == ["once"] and len(model.requests) == 1
    assert len(site.workspace.get(f"/runs?session_id={session}")) == 1


def test_w20_a_draft_survives_switching_reload_and_a_card_and_what_was_sent_does_not_come_back(
    site: Site, tab: Tab, midway: Callable[[], bool]
) -> None:
    first, second = site.session("First"), site.session("Second")
    site.show(tab, first)
    tab.page.fill("#prompt", "half a thought")
    tab.page.set_input_files("#file", {"name": "a [b] c.txt", "mimeType": "text/plain", "buffer": b"words"})
    expect(tab.page.locator("#chips .chip")).to_have_count(1)
    site.show(tab, second)
    expect(tab.page.locator("#prompt")).to_have_value("")
    site.show(tab, first)
    expect(tab.page.locator("#prompt")).to_have_value("half a thought")
    expect(tab.page.locator("#chips .chip")).to_contain_text("a [b] c.txt")
    midway()
    site.workspace.prompt(first, f"[{json.dumps([TOUCH])}]")
    tab.waits_for(".ask")
    expect(tab.page.locator("#prompt")).to_have_value("half a thought")
    tab.page.reload()
    tab.waits_for(".ask")
    expect(tab.page.locator("#prompt")).to_have_value("half a thought")
    expect(tab.page.locator("#chips .chip")).to_have_count(1)
    tab.page.click("#send")
    expect(tab.page.locator("#prompt")).to_have_value("")
    tab.page.reload()
    tab.waits_for(".ask")
    expect(tab.page.locator("#prompt")).to_have_value("")
    expect(tab.page.locator("#chips .chip")).to_have_count(0)


def test_w21_an_enter_that_ends_a_composition_does_not_send(site: Site, tab: Tab, midway: Callable[[], bool]) -> None:
    tab.page.fill("#prompt", "かんじ")
    midway()
    for change in ("{isComposing: true}", "{keyCode: 229}"):
        tab.page.evaluate(
            f"document.getElementById('prompt').dispatchEvent(new KeyboardEvent('keydown', "
            f"{{key: 'Enter', bubbles: true, cancelable: true, ...{change}}}))"
        )
    expect(tab.page.locator("#prompt")).to_have_value("かんじ")
    assert site.workspace.get("/runs") == []
    tab.page.press("#prompt", "Enter")
    tab.sees("Hello from the fake model.")
    assert [run["prompt"] for run in site.workspace.get("/runs")] == ["かんじ"]


def test_w22_on_a_phone_enter_makes_a_line_and_send_and_stop_are_two_buttons(
    site: Site, model: FakeModel, midway: Callable[[], bool]
) -> None:
    phone = site.let_in(width=390, height=800, is_phone=True)
    phone.page.tap("#prompt")
    phone.page.keyboard.type("one")
    phone.page.keyboard.press("Enter")
    phone.page.keyboard.type("two")
    expect(phone.page.locator("#prompt")).to_have_value("one\ntwo")
    model.on(lambda request: Reply(gates={1: "go"}))
    phone.page.tap("#send")
    until(lambda: model.requests)  # before its first step it would take what is said next with it
    phone.waits_for("#stop")
    phone.page.fill("#prompt", "and then this")
    phone.page.tap("#send")
    phone.waits_for(".queue-list li", 1)
    if midway():  # both have ended, and say so; the buttons are for what comes next
        phone.idle()
        assert {run["state"] for run in site.workspace.get("/runs")} == {"cancelled"}
        phone.page.fill("#prompt", "and then this")
        phone.page.tap("#send")
        until(lambda: len(model.requests) == 2)
    model.release("go")
    phone.sees("and then this")
    phone.idle()


def test_w24_what_cannot_be_attached_says_why(site: Site, tab: Tab, midway: Callable[[], bool]) -> None:
    tab.page.set_input_files("#file", {"name": "a (b) [c].zip", "mimeType": "application/zip", "buffer": b"PK"})
    tab.was_told("a (b) [c].zip was not attached")
    tab.page.set_input_files("#file", {"name": "empty.txt", "mimeType": "text/plain", "buffer": b""})
    tab.was_told("empty.txt is empty")
    tab.page.set_input_files("#file", {"name": "mein [Plan] 1.md", "mimeType": "", "buffer": "é".encode()})
    expect(tab.page.locator("#chips .chip")).to_have_count(1)
    midway()
    tab.prompt("Read it.")
    tab.sees("Hello from the fake model.")
    tab.idle()
    sent = site.workspace.messages(tab.session)[0]["parts"]
    assert [part["data"]["Path"] for part in sent if part["type"] == "binary"] == ["mein [Plan] 1.md"]


TAKES = """([how, name, type]) => { const data = new DataTransfer();
  data.items.add(new File(['some words'], name, {type}));
  const event = how === 'paste' ? new ClipboardEvent('paste', {clipboardData: data, bubbles: true, cancelable: true})
    : new DragEvent('drop', {dataTransfer: data, bubbles: true, cancelable: true});
  return document.getElementById('prompt').dispatchEvent(event); }"""


def test_what_is_pasted_or_dropped_is_attached(site: Site, tab: Tab) -> None:
    for how, name, kind in (("paste", "shot.png", "image/png"), ("drop", "a b.py", "text/x-python")):
        assert tab.page.evaluate(TAKES, [how, name, kind]) is False  # the browser is not to open it instead
        expect(tab.page.locator("#chips")).to_contain_text(name)
    tab.page.get_by_role("button", name="Remove shot.png").click()
    tab.page.fill("#prompt", "Read it.")
    tab.page.click("#send")
    tab.sees("Hello from the fake model.")
    sent = site.workspace.messages(tab.session)[0]["parts"]
    assert [part["data"]["Path"] for part in sent if part["type"] == "binary"] == ["a b.py"]


def test_w25_five_asks_are_on_every_client_that_attaches_after_reload_and_restart(site: Site, tab: Tab) -> None:
    calls = [{"name": "view", "input": {"file_path": f"/etc/passwd{n}"}} for n in range(5)]
    tab.tell({"tools": calls})
    tab.waits_for(".ask", 5)
    other = site.let_in()
    site.show(other, tab.session)
    other.waits_for(".ask", 5)
    tab.page.reload()
    tab.waits_for(".ask", 5)
    site.restart()
    tab.waits_for(".ask", 0)  # the run ended with the server, and so did what it asked
    other.waits_for(".ask", 0)


def test_w26_an_answer_takes_effect_once_and_the_card_leaves_everywhere(
    site: Site, tab: Tab, midway: Callable[[], bool]
) -> None:
    tab.tell(TOUCH, {"text": "Made it."})
    tab.waits_for(".ask", 1)
    other = site.let_in()
    site.show(other, tab.session)
    other.waits_for(".ask", 1)
    if midway():  # the run has ended: the card leaves everywhere, and nothing was done
        for each in (tab, other):
            each.waits_for(".ask", 0)
        assert not (site.server.project / "made").exists()
        tab.tell(TOUCH, {"text": "Made it."}, about="Again.")
        tab.waits_for(".ask", 1)
    other.allow()
    tab.waits_for(".ask", 0)
    other.waits_for(".ask", 0)
    tab.was_told("Allowed by")
    tab.sees("Made it.")
    until(lambda: (site.server.project / "made").exists())


def test_w26_an_answer_that_is_lost_says_so_and_can_be_given_again(site: Site, tab: Tab) -> None:
    tab.tell(TOUCH, {"text": "Made it."})
    tab.waits_for(".ask", 1)
    tab.may_fail = True
    tab.page.route("**/permissions/grant*", lambda route: route.abort())
    tab.allow()
    tab.sees("Not answered", within=".ask")
    tab.page.unroute("**/permissions/grant*")
    tab.allow()
    tab.sees("Made it.")


def test_w26_an_answer_that_the_end_of_the_server_swallowed_did_nothing_and_says_so(site: Site, tab: Tab) -> None:
    tab.tell(TOUCH, {"text": "Made it."})
    tab.waits_for(".ask", 1)

    def die(route: Route) -> None:
        site.stop(killed=True)
        route.abort()

    tab.page.route("**/permissions/grant*", die)
    tab.allow()
    tab.sees("Not answered", within=".ask")
    tab.page.unroute("**/permissions/grant*")
    site.start()
    tab.waits_for(".ask", 0)
    tab.sees("interrupted")
    assert not (site.server.project / "made").exists()


def test_w26_the_card_leaves_when_the_run_is_stopped(site: Site, tab: Tab) -> None:
    tab.tell(TOUCH)
    tab.waits_for(".ask")
    tab.page.click("#stop")
    tab.waits_for(".ask", 0)


HIDDEN = "echo safe \u202e; rm -rf \u200b~ \u0007"


def test_w27_a_card_shows_the_whole_command_and_its_buttons_stay_in_view(
    site: Site, sized: Tab, midway: Callable[[], bool]
) -> None:
    midway()
    command = f"{HIDDEN}\n" + "\n".join(f"echo line {n} {'x' * 80}" for n in range(200))
    sized.tell({"tools": [{"name": "bash", "input": {"command": command}}]})
    card = sized.waits_for(".ask")
    shown = card.locator(".command").inner_text()
    assert "⟨U+202E⟩" in shown and "⟨U+200B⟩" in shown and "⟨U+0007⟩" in shown and "line 199" in shown
    assert "\u202e" not in shown
    assert str(site.server.project) in card.inner_text()
    for text in ("one", "two", "three", "four"):
        sized.prompt(text)
    sized.waits_for(".queue-list li", 4)
    for name in ("Allow once", "Deny"):
        button = card.get_by_role("button", name=name, exact=True)
        box, dock = button.bounding_box(), sized.page.locator("#asks").bounding_box()
        assert box and dock and dock["y"] <= box["y"] and box["y"] + box["height"] <= dock["y"] + dock["height"]
    assert sized.widths()[0] <= sized.widths()[1]


def test_w27_a_rule_that_always_would_add_is_written_on_its_button(site: Site, tab: Tab) -> None:
    tab.tell({"tools": [{"name": "bash", "input": {"command": "make test"}}]})
    tab.waits_for(".ask")
    buttons = tab.page.locator(".ask .rule").all_inner_texts()
    (asked,) = site.workspace.get("/permissions")
    assert asked["rules"] and any(" ".join(asked["rules"]) in text for text in buttons)


def test_w28_enter_in_the_composer_never_approves_and_early_clicks_do_nothing(
    site: Site, tab: Tab, midway: Callable[[], bool]
) -> None:
    midway()
    tab.page.evaluate(
        """new MutationObserver((changes, observer) => {
             const button = document.querySelector('.ask .primary');
             if (!button) return;
             observer.disconnect();
             for (let n = 0; n < 5; n++) button.click();
             document.body.dataset.early = 'clicked';
           }).observe(document.getElementById('asks'), {childList: true, subtree: true})"""
    )
    tab.tell(TOUCH, {"text": "Done."})
    tab.waits_for(".ask")
    expect(tab.page.locator("body")).to_have_attribute("data-early", "clicked")
    tab.page.focus("#prompt")
    for key in ("Enter", "y", "Enter"):
        tab.page.keyboard.press(key)
    tab.page.locator(".ask header").click()
    tab.waits_for(".queue-list li", 1)  # what was typed waits as a prompt
    assert len(site.workspace.get("/permissions")) == 1
    assert not (site.server.project / "made").exists()
    assert tab.page.evaluate("document.activeElement.id") != "asks"
    expect(tab.page.locator(".ask .primary")).to_be_enabled()
    tab.page.locator(".ask .primary").focus()
    tab.page.keyboard.press("y")
    tab.waits_for(".ask", 0)
    until(lambda: (site.server.project / "made").exists())


def test_w29_stop_changes_at_once_says_what_it_covered_and_twice_is_harmless(
    site: Site, tab: Tab, model: FakeModel, midway: Callable[[], bool]
) -> None:
    model.on(lambda request: Reply(text="word ", chunks=50, gates={5: "never"}))
    tab.prompt("Go on for long.")
    tab.sees("word word")
    tab.prompt("And this.")
    tab.waits_for(".queue-list li", 1)
    looks = tab.page.evaluate(
        "(() => { const stop = document.getElementById('stop'); stop.click(); stop.click(); return stop.className; })()"
    )
    assert "stopping" in looks
    tab.was_told("Stopped 1 run, dropped 1 queued")
    if midway():
        tab.page.reload()
        tab.sees("word word")
    tab.idle()
    assert {run["state"] for run in site.workspace.get("/runs")} == {"cancelled"}


def test_a_question_is_answered(site: Site, tab: Tab) -> None:
    asked = {
        "questions": [{"type": "single_choice", "question": "Which?", "choices": [{"label": "red"}, {"label": "blue"}]}]
    }
    tab.tell({"tools": [{"name": "question", "input": asked}]}, {"text": "Thank you."})
    card = tab.waits_for(".ask.question")
    card.get_by_role("button", name="Answer", exact=True).click()
    tab.sees("Answer every question", within=".ask")
    card.locator("input").nth(1).check()
    card.get_by_role("button", name="Answer", exact=True).click()
    tab.sees("Thank you.")
    tab.idle()


@pytest.mark.parametrize("how", ["fold", "own_turn", "interrupt"])
def test_a_prompt_steers_waits_or_interrupts_as_it_is_told(site: Site, tab: Tab, model: FakeModel, how: str) -> None:
    model.on(lambda request: Reply(gates={1: "go"}) if len(model.requests) == 1 else Reply(text="Second."))
    tab.prompt("First.")
    until(lambda: model.requests)
    tab.waits_for("#stop")
    tab.page.select_option("#mode", how)
    tab.prompt("Second, please.")
    if how == "own_turn":
        tab.waits_for(".queue-list li", 1)
    model.release("go")
    tab.sees("Second.")
    tab.idle()
    runs = site.workspace.get("/runs")
    assert runs[0]["mode"] == how


def test_a_queued_prompt_is_edited_moved_and_dropped_in_its_place(site: Site, tab: Tab, model: FakeModel) -> None:
    model.on(
        lambda request: Reply(gates={1: "go"}) if len(model.requests) == 1 else Reply(text=f"Did {request.prompt}")
    )
    tab.prompt("First.")
    until(lambda: model.requests)
    tab.waits_for("#stop")
    tab.page.select_option("#mode", "own_turn")
    for text in ("alpha", "beta", "gamma"):
        tab.prompt(text)
    tab.waits_for(".queue-list li", 3)
    rows = tab.page.locator(".queue-list li")
    rows.nth(2).get_by_role("button", name="Sooner").click()
    expect(rows.nth(1)).to_contain_text("gamma")
    rows.nth(0).get_by_role("button", name="Drop").click()
    tab.waits_for(".queue-list li", 2)
    rows.nth(0).get_by_role("button", name="Edit").click()
    tab.page.fill(".queue-list textarea", "delta")
    tab.page.get_by_role("button", name="Save").click()
    expect(rows.nth(0)).to_contain_text("delta")
    rows.nth(0).get_by_role("button", name="Hold it back").click()
    expect(rows.nth(0)).to_contain_text("held back")
    rows.nth(0).get_by_role("button", name="Edit").click()
    tab.page.fill(".queue-list textarea", "epsilon")
    tab.page.get_by_role("button", name="Save").click()
    expect(rows.nth(0)).to_contain_text("epsilonheld back")  # who edits it does not let it run
    model.release("go")
    tab.sees("Did beta")
    rows.nth(0).get_by_role("button", name="Let it run").click()
    tab.sees("Did epsilon")
    tab.idle()
    assert [request.prompt for request in model.requests][-2:] == ["beta", "epsilon"]
