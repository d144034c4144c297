"""Notifications in earnest: the browser shows them, when they were asked for and nobody looks."""

from __future__ import annotations

import json

from tests.web.pages import Site, Tab, expect, until

NOTICES = """(() => { const Real = Notification; window.__notices = [];
  window.Notification = class extends Real { constructor(...given) { super(...given); window.__notices.push(this);
    this.addEventListener('show', () => { this.wasShown = true; }); } }; })()"""
"""The browser's own, which are noted."""
SEEN = "window.__notices.map((each) => [each.title, each.body, each.wasShown === true])"
LOOK = """(isHidden) => { Object.defineProperty(document, 'hidden', {value: isHidden, configurable: true});
  document.dispatchEvent(new Event('visibilitychange')); }"""
"""A browser without a screen hides no tab, so the page is told that it is."""
TOUCH = [{"tools": [{"name": "bash", "input": {"command": "touch made"}}]}, {"text": "Made it."}]


def noticing(site: Site) -> Tab:
    context = site.context(permissions=["notifications"])
    context.add_init_script(NOTICES)
    tab = site.open(context, f"#code={site.code()}")
    site.connected(tab)
    return tab


def turn_on(tab: Tab) -> None:
    tab.page.click("#settings")
    tab.page.get_by_role("menuitem", name="Notifications: off").click()
    tab.was_told("You are told when a run ends or needs you")


def ends(site: Site, session: str) -> None:
    site.workspace.ended(site.workspace.prompt(session, "Work, please.")["run_id"])


def test_whoever_asked_for_it_is_notified_of_ends_and_asks_while_nobody_looks(site: Site) -> None:
    tab = noticing(site)
    watched, other = site.session("Watched"), site.session("Elsewhere")
    site.show(tab, watched)
    tab.page.evaluate(LOOK, True)
    ends(site, watched)  # nobody asked for it yet
    tab.sees("Hello from the fake model.")
    tab.page.evaluate(LOOK, False)
    turn_on(tab)
    ends(site, other)  # the tab is looked at
    expect(tab.page.locator(f'a[data-session="{other}"]')).to_contain_text("new")
    assert tab.page.evaluate(SEEN) == []
    tab.page.evaluate(LOOK, True)
    ends(site, other)
    until(lambda: tab.page.evaluate(SEEN) == [["Elsewhere", "A run has ended", True]])
    site.workspace.prompt(other, f"[{json.dumps(TOUCH)}]")
    until(lambda: tab.page.evaluate(SEEN)[1:] == [["Elsewhere", "Needs your permission: bash", True]])
    tab.page.evaluate("window.__notices.at(-1).dispatchEvent(new Event('click'))")
    expect(tab.page.locator("body")).to_have_attribute("data-session", other)
    tab.page.evaluate(LOOK, False)
    tab.waits_for(".ask", 1)


def test_a_question_and_a_failure_are_told_and_the_choice_is_kept(site: Site) -> None:
    tab = noticing(site)
    session = site.session("Asks")
    turn_on(tab)
    tab.page.reload()
    site.connected(tab)
    tab.page.evaluate(LOOK, True)
    asked = {"questions": [{"type": "free_text", "question": "Which?"}]}
    site.workspace.prompt(session, f"[{json.dumps([{'tools': [{'name': 'question', 'input': asked}]}])}]")
    until(lambda: tab.page.evaluate(SEEN) == [["Asks", "The agent asks you something", True]])
    failing = site.session("Fails")
    site.workspace.prompt(failing, f"[{json.dumps([{'status': 401, 'body': '{}'}])}]")
    until(lambda: ["Fails", "A run failed", True] in tab.page.evaluate(SEEN))


def test_a_browser_that_allows_none_is_believed_and_says_so(site: Site, tab: Tab) -> None:
    tab.page.click("#settings")
    tab.page.get_by_role("menuitem", name="Notifications: off").click()
    tab.was_told("The browser does not allow notifications")
    tab.page.click("#settings")
    expect(tab.page.get_by_role("menuitem", name="Notifications: off")).to_be_visible()
