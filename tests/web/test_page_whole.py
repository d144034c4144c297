"""Whole ways through the page, and what every screen must be: reachable by keys, and nothing serious for axe."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from covey.config.edit import trust
from tests.support.fake_model import FakeModel, Reply
from tests.web.pages import Site, Tab, corrects, expect, serving_pages

AXE = Path(os.environ.get("COVEY_WEB_TOOLS", "")) / "node_modules/axe-core/axe.min.js"


def test_a_fork_a_rename_a_search_an_export_and_a_deep_link(site: Site, tab: Tab, tmp_path: Path) -> None:
    tab.tell({"text": "The quick brown fox."})
    tab.sees("The quick brown fox.")
    tab.idle()
    first = tab.session
    tab.page.click(".message-menu")
    tab.page.get_by_role("menuitem", name="Fork up to here").click()
    expect(tab.page.locator("body")).not_to_have_attribute("data-session", first)
    tab.sees("The quick brown fox.")
    tab.page.click("#menu-button")
    tab.page.get_by_role("menuitem", name="Rename").click()
    tab.page.fill("dialog input", "Foxes [1]")
    tab.page.get_by_role("button", name="Rename", exact=True).click()
    expect(tab.page.locator("#title")).to_have_text("Foxes [1]")
    tab.page.click("#menu-button")
    with tab.page.expect_download() as download:
        tab.page.get_by_role("menuitem", name="Export as Markdown").click()
    download.value.save_as(tmp_path / "out.md")
    assert "quick brown" in (tmp_path / "out.md").read_text()
    tab.page.keyboard.press("Control+k")
    tab.page.fill("dialog input", "quick brown")
    tab.waits_for("dialog li p")
    expect(tab.page.locator("dialog li p b").first).to_have_text("quick")
    tab.page.locator("dialog li", has=tab.page.locator("p")).last.click()
    tab.waits_for("article.found")
    other = site.open(tab.context, tab.page.url.removeprefix(site.url))
    other.waits_for("article.found")


def test_what_was_said_in_another_workspace_is_found_and_opened(site: Site, tab: Tab) -> None:
    elsewhere = site.server.directory / "elsewhere"
    elsewhere.mkdir()
    other = site.server.workspace(elsewhere)
    other.ended(other.prompt(other.session("Elsewhere"), "The unheard melody")["run_id"])
    tab.page.keyboard.press("Control+k")
    tab.page.fill("dialog input", "unheard")
    tab.sees("elsewhere", within="dialog li small")
    tab.page.locator("dialog li", has=tab.page.locator("p")).click()
    expect(tab.page.locator("#workspace")).to_have_text("elsewhere")
    tab.waits_for("article.found")
    other.close()


def test_model_and_mode_of_a_new_session_are_chosen_at_any_width(site: Site, sized: Tab) -> None:
    sized.page.click("#menu-button")
    expect(sized.page.get_by_role("menuitem", name="Model: fake…")).to_be_visible()
    sized.page.get_by_role("menuitem", name="Mode: Ask…").click()
    sized.page.get_by_role("menuitemradio", name="Plan:").click()
    expect(sized.page.locator("#session-mode")).to_have_text("Plan")
    assert site.workspace.get(f"/sessions/{sized.session}")["mode"] == "plan"


def test_files_are_found_read_and_mentioned_and_commands_completed(site: Site, tab: Tab) -> None:
    (site.server.project / "notes [old].txt").write_text("first line\nsecond line\n")
    tab.page.keyboard.press("Alt+r")
    tab.page.get_by_role("tab", name="Files").click()
    tab.page.fill(".files input", "notes")
    tab.page.get_by_role("button", name="notes [old].txt").click()
    tab.sees("second line", within=".file-content")
    tab.page.focus("#prompt")
    tab.page.keyboard.type("look at @not")
    expect(tab.page.locator("#options li").first).to_contain_text("notes [old].txt")
    tab.page.keyboard.press("Enter")
    expect(tab.page.locator("#prompt")).to_have_value('look at @"notes [old].txt" ')
    tab.page.fill("#prompt", "")
    tab.page.keyboard.type("/fi")
    expect(tab.page.locator("#options li").first).to_contain_text("/files")
    tab.page.keyboard.press("Escape")
    expect(tab.page.locator("#options")).to_be_hidden()


@pytest.mark.parametrize("start", ["composer", "palette"])
def test_a_custom_command_is_found_and_run(site: Site, tab: Tab, model: FakeModel, start: str) -> None:
    file = site.server.directory / "config/covey/commands/git/explain.md"
    file.parent.mkdir(parents=True)
    file.write_text("---\ndescription: Say what it does\n---\nExplain to a child: $ARGUMENTS\n")
    if start == "composer":
        tab.page.focus("#prompt")
        tab.page.keyboard.type("/git:ex")
        expect(tab.page.locator("#options li").first).to_contain_text("/git:explain Say what it does")
    else:
        tab.page.keyboard.press("Control+/")
        tab.page.keyboard.type("what it does")
        expect(tab.page.locator("dialog li").first).to_contain_text("/git:explain")
    tab.page.keyboard.press("Enter")
    expect(tab.page.locator("#prompt")).to_be_focused()
    expect(tab.page.locator("#prompt")).to_have_value("/git:explain ")
    tab.page.keyboard.type("area.py")
    tab.page.keyboard.press("Enter")
    tab.sees("Hello from the fake model.")
    expect(tab.page.locator("article.user")).to_contain_text("/git:explain area.py")
    assert "Explain to a child: area.py" in json.dumps(model.requests[0].body)


@pytest.mark.parametrize("is_approved", [True, False], ids=["approved", "refused"])
def test_an_extension_waits_for_an_approval_that_one_browser_gives_and_the_other_hears_of(
    site: Site, tab: Tab, is_approved: bool
) -> None:
    hook = {"matcher": "LS", "hooks": [{"type": "command", "command": "touch hook-ran"}]}
    settings = site.server.project / ".claude/settings.json"
    settings.parent.mkdir()
    settings.write_text(json.dumps({"hooks": {"PreToolUse": [hook]}}))
    trust(
        {"HOME": str(site.server.directory), "XDG_CONFIG_HOME": str(site.server.directory / "config")},
        site.server.project,
    )
    other = site.let_in()
    looks = ({"tools": [{"name": "ls", "input": {"path": "."}}]}, {"text": "Looked."})
    tab.tell(*looks)
    tab.sees("Looked.")
    for each in (tab, other):
        each.waits_for(".ask.approval", 1)
        each.sees("touch hook-ran", within=".ask.approval")
    assert not (site.server.project / "hook-ran").exists()
    other.page.get_by_role("button", name="Approve" if is_approved else "Refuse").click()
    for each in (tab, other):
        each.waits_for(".ask", 0)
    tab.was_told("Allowed by" if is_approved else "Denied by")
    tab.tell(*looks, about="Again.")
    tab.waits_for("article.assistant:has-text('Looked.')", 2)
    tab.idle()
    assert (site.server.project / "hook-ran").exists() == is_approved


def test_a_job_is_listed_with_its_output_and_ended(site: Site, tab: Tab) -> None:
    command = {"command": "echo started; sleep 300", "background": True}
    tab.tell({"tools": [{"name": "bash", "input": command}]}, {"text": "It runs."})
    tab.waits_for(".ask")
    tab.page.click(".ask .primary")
    tab.sees("It runs.")
    tab.page.keyboard.press("Alt+r")
    tab.page.get_by_role("tab", name="Jobs").click()
    tab.page.locator(".job-name").click()
    tab.sees("started", within=".job")
    tab.page.get_by_role("button", name="End", exact=True).click()
    tab.sees("ended", within=".job")


def test_the_overview_shows_who_is_attached_and_which_extensions_there_are_in_all_workspaces(
    tmp_path: Path, model: FakeModel, browser: Browser
) -> None:
    with serving_pages(tmp_path, model, browser, '[mcp.notes]\ncommand = "true"\n') as site:
        tab = site.let_in()
        elsewhere = site.server.directory / "elsewhere"
        elsewhere.mkdir()
        other = site.server.workspace(elsewhere, client_name="kim", client_kind="tui")
        stream = other.stream()
        tab.page.click("#server")
        expect(tab.page.locator("#dashboard li", has_text="kim (terminal)")).to_contain_text("elsewhere")
        expect(tab.page.locator("#dashboard li", has_text="notes (mcp)")).to_have_count(2)
        tab.sees("elsewhere · ", within="#dashboard li:has-text('notes (mcp)') >> nth=-1")
        stream.close()
        other.close()


def test_the_overview_shows_runs_of_all_workspaces_and_what_they_cost(site: Site, tab: Tab, model: FakeModel) -> None:
    elsewhere = site.server.directory / "elsewhere"
    elsewhere.mkdir()
    other = site.server.workspace(elsewhere)
    model.on(lambda request: Reply(gates={1: "go"}))
    run = other.prompt(other.session("Elsewhere"), "Far away work")
    tab.sees("elsewhere", within="#others")
    tab.page.click("#panel-button")
    tab.waits_for("#review")
    tab.page.click("#server")
    expect(tab.page.locator("#review")).to_be_hidden()  # it belongs to a session
    tab.sees("Far away work", within="#dashboard")
    tab.sees("running", within="#dashboard")
    tab.sees("this one", within="#dashboard")  # who is here
    guest = site.let_in()
    expect(tab.page.locator("#dashboard li", has_text="(browser)")).to_have_count(2)
    guest.page.close()
    expect(tab.page.locator("#dashboard li", has_text="(browser)")).to_have_count(1)
    model.release("go")
    other.ended(run["run_id"])
    tab.sees("done", within="#dashboard")
    tab.page.reload()
    tab.sees("Spending", within="#dashboard")
    tab.page.locator("#dashboard .rows a", has_text="Far away work").click()
    expect(tab.page.locator("#workspace")).to_have_text("elsewhere")
    tab.sees("Far away work")
    other.close()


def serious(tab: Tab) -> list[str]:
    """What axe finds that matters. It is evaluated by the test, as the page itself runs no foreign code."""
    tab.page.evaluate(AXE.read_text("utf-8"))
    found = tab.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{each['id']}: {json.dumps([node['target'] for node in each['nodes']])[:300]}"
        for each in found["violations"]
        if each["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_axe_finds_nothing_serious_on_any_screen(site: Site, model: FakeModel, scheme: str, width: int) -> None:
    outside = site.open(site.context(width=width, color_scheme=scheme))
    outside.waits_for(".login-card")
    assert serious(outside) == []
    tab = site.let_in(width=width, is_phone=width < 700, color_scheme=scheme)
    assert serious(tab) == [], "empty"
    corrects(model)
    tab.prompt("Write the area of a circle.")
    tab.waits_for(".ask")
    expect(tab.page.locator(".ask .primary")).to_be_enabled()
    assert serious(tab) == [], "asking"
    tab.page.click(".ask .primary")
    tab.sees("Written.")
    tab.idle()
    tab.page.click("#panel-button")
    tab.waits_for("#review .diff .row")
    assert serious(tab) == [], "review"
    tab.page.get_by_role("button", name="Close the panel").click()
    text = "Fail.\n\n```python\nx = 1  # one\n```\n"
    model.on(lambda request: Reply(text=text, finish="content_filter"))
    tab.prompt("Break.")
    tab.waits_for(".finish:not([hidden])")
    tab.idle()
    assert serious(tab) == [], "error"
    if width < 700:
        tab.page.tap("#drawer")
        expect(tab.page.locator("#new")).to_be_in_viewport()
        assert serious(tab) == [], "drawer"
        tab.page.tap("#home")
    else:
        tab.page.keyboard.press("Control+k")
        tab.waits_for("dialog li")
        assert serious(tab) == [], "palette"
        tab.page.keyboard.press("Escape")
        tab.page.click("#home")
    tab.sees("This server", within="#dashboard")
    assert serious(tab) == [], "overview"


def test_everything_can_be_done_by_keys_and_is_announced(site: Site, tab: Tab, model: FakeModel) -> None:
    corrects(model)
    tab.page.keyboard.type("Write the area of a circle.")
    tab.page.keyboard.press("Enter")
    tab.waits_for(".ask")
    tab.sees("Needs your permission", within="#announcer")
    assert tab.page.evaluate("document.activeElement.id") == "prompt"  # an event moves no focus
    expect(tab.page.locator(".ask .primary")).to_be_enabled()
    tab.page.keyboard.press("Alt+a")
    tab.page.keyboard.press("y")
    tab.sees("Written.")
    tab.sees("Answer complete", within="#announcer")
    tab.page.keyboard.press("Alt+n")
    expect(tab.page.locator("#title")).to_have_text("New session")
    tab.page.keyboard.press("Tab")
    tab.page.evaluate("document.activeElement.blur()")
    tab.page.keyboard.press("?")
    expect(tab.page.locator("dialog")).to_contain_text("Esc Esc")
    tab.page.keyboard.press("Escape")
    tab.page.keyboard.press("]")
    tab.sees("Written.")
    tab.page.keyboard.press("Control+/")
    tab.page.fill("dialog input", "jobs")
    tab.page.keyboard.press("Enter")
    expect(tab.page.get_by_role("tab", name="Jobs")).to_have_attribute("aria-selected", "true")


def test_without_motion_nothing_turns_and_at_200_percent_nothing_is_lost(site: Site) -> None:
    tab = site.let_in(width=640, height=400, reduced_motion="reduce", device_scale_factor=2)
    tab.prompt("Hello.")
    tab.sees("Hello from the fake model.")
    wide, window = tab.widths()
    assert wide <= window
    durations = "[...document.querySelectorAll('*')].map((n) => getComputedStyle(n).animationDuration).filter((d) => parseFloat(d) > 0.01)"
    assert tab.page.evaluate(durations) == []
    for selector in ("#send", "#prompt", "#menu-button"):
        expect(tab.page.locator(selector)).to_be_in_viewport()
