"""One stream for all tabs: breaks, sleep, gaps, restarts, ten tabs, another client, an upgrade."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.support.fake_model import FakeModel, Reply
from tests.support.server import text_of
from tests.web.pages import Site, Tab, expect, forget_events, until
from tests.web.proxy import SleepyProxy


def through(site: Site, proxy: SleepyProxy, *, is_alone: bool = False, has_clock: bool = False) -> Tab:
    """A tab that reaches the server by the proxy. Alone: its stream is its own, with its own clock."""
    context = site.context()
    if has_clock:
        context.clock.install()
    if is_alone:
        context.add_init_script("delete window.SharedWorker;")
    tab = site.open(context, f"#code={site.code()}", url=f"http://127.0.0.1:{proxy.port}/")
    tab.may_fail = True
    tab.requests.clear()
    site.connected(tab)
    return tab


def answers(tab: Tab) -> list[str]:
    return [text.strip() for text in tab.page.locator("article.assistant").all_inner_texts()]


def test_w01_w02_a_tab_that_slept_shows_the_present_also_if_its_socket_still_says_open(
    site: Site, midway: Callable[[], bool]
) -> None:
    with SleepyProxy(site.server.port) as proxy:
        tab = through(site, proxy, is_alone=True)
        session = site.session()
        site.show(tab, session)
        proxy.sleep()
        run = site.workspace.prompt(session, "While nobody looked.")
        site.workspace.ended(run["run_id"])
        site.tabs.remove(tab)  # it sleeps: it hears of no restart
        midway()
        site.tabs.append(tab)
        proxy.wake()
        # A minute of sleep, without waiting for it: the page believes the time of the last byte, and the clock moved.
        tab.page.evaluate("() => { const real = Date.now; Date.now = () => real() + 60_000; }")
        tab.page.evaluate("window.dispatchEvent(new Event('focus'))")
        tab.sees("Hello from the fake model.")
        expect(tab.page.locator("article.assistant")).to_have_count(1)
        tab.requests.clear()


def test_w03_a_short_break_shows_nothing_and_a_long_one_a_banner_that_goes_by_itself(
    site: Site, midway: Callable[[], bool]
) -> None:
    """By a clock that the test moves: how long a break lasts is not a matter of luck."""
    with SleepyProxy(site.server.port) as proxy:
        tab = through(site, proxy, is_alone=True, has_clock=True)
        clock, banner = tab.page.clock, tab.page.locator("#banner")
        clock.pause_at(tab.page.evaluate("Date.now()") + 1000)

        def becomes(state: str) -> None:
            until(lambda: clock.run_for(1) or tab.page.locator("body").get_attribute("data-link") == state)

        proxy.cut()
        becomes("lost")
        proxy.mend()
        clock.run_for(300)  # it tries again after at most 250 ms
        becomes("connected")
        assert not banner.is_visible()
        proxy.cut()
        becomes("lost")
        clock.run_for(1000)
        assert not banner.is_visible()
        clock.run_for(1200)
        expect(banner).to_contain_text("No connection to the server")
        assert "eload" not in banner.inner_text()
        site.tabs.remove(tab)
        midway()
        site.tabs.append(tab)
        proxy.mend()
        clock.resume()  # by now it waits for seconds before it tries again
        site.connected(tab)
        expect(banner).to_be_hidden()
        tab.prompt("After the break.")
        tab.sees("Hello from the fake model.")
        tab.requests.clear()


def test_w04_after_breaks_nothing_is_missing_and_nothing_is_twice(
    site: Site, model: FakeModel, midway: Callable[[], bool]
) -> None:
    model.on(lambda request: Reply(text="{n} ", chunks=300, gates={100: "first", 200: "second"}))
    with SleepyProxy(site.server.port) as proxy:
        tab = through(site, proxy)
        tab.prompt("Count.")
        tab.sees(" 98 ")
        proxy.cut()
        model.release("first")
        proxy.mend()
        tab.sees(" 198 ")
        is_restarted = midway()
        proxy.cut()
        model.release("second")
        proxy.mend()
        tab.sees("topped" if is_restarted else "299")
        tab.idle()
        found = tab.page.locator("article.assistant .prose").inner_text().split()
        assert found == text_of(site.workspace.messages(tab.session)[-1]).split()
        assert found == [str(n) for n in range(200 if is_restarted else 300)]
        tab.requests.clear()


def test_w04_a_gap_loads_again_and_keeps_the_draft(site: Site, tab: Tab, model: FakeModel) -> None:
    tab.prompt("First.")
    tab.sees("Hello from the fake model.")
    tab.idle()
    tab.page.fill("#prompt", "a draft")
    session = tab.session
    site.stop()
    forget_events(site)
    site.start()
    site.connected(tab)
    site.workspace.prompt(session, "After the gap.")
    expect(tab.page.locator("article.assistant")).to_have_count(2)
    expect(tab.page.locator("#prompt")).to_have_value("a draft")
    expect(tab.page.locator("#banner")).to_be_hidden()


def test_w05_marks_of_sessions_that_nobody_looks_at_end_with_their_runs(site: Site, tab: Tab, model: FakeModel) -> None:
    model.on(lambda request: Reply(gates={0: request.prompt[:3]}))
    names = ("one", "two", "bad")
    sessions = {name: site.session(name.title()) for name in names}
    runs = [site.workspace.prompt(session, f"{name} please") for name, session in sessions.items()]
    for name, session in sessions.items():
        expect(tab.page.locator(f'[data-session="{session}"].session')).to_contain_text("running")
        if name != "bad":
            model.release(name)
    for run in runs[:2]:
        site.workspace.ended(run["run_id"])
    for name in names[:2]:
        expect(tab.page.locator(f'a[data-session="{sessions[name]}"]')).to_contain_text("new")
    site.restart(killed=True)
    expect(tab.page.locator(f'a[data-session="{sessions["bad"]}"]')).to_contain_text("failed")
    tab.page.click(f'a[data-session="{sessions["bad"]}"]')
    tab.sees("interrupted")


@pytest.mark.parametrize("how", ["worker", "own"])
def test_w06_with_ten_tabs_all_follow_and_every_button_works(site: Site, how: str, midway: Callable[[], bool]) -> None:
    context = site.context()
    if how == "own":
        context.add_init_script("delete window.SharedWorker;")
    first = site.open(context, f"#code={site.code()}")
    site.connected(first)
    session = site.session()
    count = 10 if how == "worker" else 4  # a browser has six connections for one host, and each of these takes one
    where = f"#/w/{site.workspace.id}/s/{session}"
    tabs = [first, *(site.open(context, where) for _ in range(count - 1))]
    for tab in tabs:
        site.show(tab, session)
    tabs[-1].prompt("To all of you.")
    for tab in tabs:
        tab.sees("Hello from the fake model.")
    midway()
    for number in (0, count // 2):
        tabs[number].prompt(f"And from {number}.")
    for tab in tabs:
        expect(tab.page.locator("article.assistant")).to_have_count(3)
    if how == "worker":
        assert site.server.metric("event_streams_open") <= 2


def test_w08_a_401_shows_the_login_once_and_says_why(site: Site, tab: Tab, midway: Callable[[], bool]) -> None:
    tab.may_fail = True
    session = site.session()
    site.show(tab, session)
    (page,) = site.server.request("GET", "/v1/web/sessions").ok()
    site.server.request("DELETE", f"/v1/web/sessions/{page['id']}").ok()
    expect(tab.page.locator("#login")).to_contain_text("signed out")
    expect(tab.page.locator(".login-card")).to_have_count(1)
    expect(tab.page.locator("#app")).to_be_hidden()
    midway()
    tab.page.reload()
    expect(tab.page.locator("#login")).to_contain_text("covey web")
    tab.page.fill("#login input", site.code())
    tab.page.click("#login button")
    site.connected(tab)
    expect(tab.page.locator("body")).to_have_attribute("data-session", session)  # where one was, not where one begins


def test_w08_a_code_that_was_used_is_explained(site: Site) -> None:
    code = site.code()
    site.connected(site.open(site.context(), f"#code={code}"))
    late = site.open(site.context(), f"#code={code}", may_fail=True)
    expect(late.page.locator("#login")).to_contain_text("was used already")
    assert "code" not in late.page.url


def test_w30_an_open_page_goes_on_after_an_upgrade_and_says_so(site: Site, tab: Tab) -> None:
    tab.page.route(
        "**/v1/version*", lambda route: route.fulfill(json={**route.fetch().json(), "page": "0123456789abcdef"})
    )
    site.restart()
    tab.sees("Covey was updated", within="#banner")
    tab.prompt("Still here?")
    tab.sees("Hello from the fake model.")
    tab.page.unroute("**/v1/version*")
    tab.page.click("#banner button")
    site.connected(tab)
    expect(tab.page.locator("#banner")).to_be_hidden()


def test_two_browsers_and_a_command_share_one_session(site: Site, tab: Tab) -> None:
    session = site.session("Shared")
    other = site.let_in(width=390, height=800, is_phone=True)
    for each in (tab, other):
        site.show(each, session)
    command = [sys.executable, "-m", "covey", "run", "-s", session, "--host", f"tcp://127.0.0.1:{site.server.port}"]
    command += ["--data-dir", str(site.server.data_dir), "--cwd", str(site.server.project), "from the command line"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    tab.prompt("from the desktop")
    expect(tab.page.locator("article.assistant")).to_have_count(2)
    tab.idle()
    other.prompt("from the phone")
    for each in (tab, other):
        for text in ("from the command line", "from the desktop", "from the phone"):
            each.sees(text)
        expect(each.page.locator("article.assistant")).to_have_count(3)
    assert answers(tab) == answers(other)


def test_who_is_here_is_shown(site: Site, tab: Tab) -> None:
    session = site.session()
    site.show(tab, session)
    other = site.let_in()
    site.show(other, session)
    tab.sees("(browser) is here", within=".here")
    other.page.close()
    expect(tab.page.locator(".here")).to_be_hidden()


@pytest.mark.parametrize("is_killed", [False, True], ids=["stopped", "killed"])
def test_a_restart_in_the_middle_of_an_answer_leaves_a_page_that_works(
    site: Site, tab: Tab, model: FakeModel, is_killed: bool
) -> None:
    model.on(
        lambda request: Reply(text="word ", chunks=50, gates={20: "never"}) if len(model.requests) == 1 else Reply()
    )
    tab.prompt("Long.")
    tab.sees("word word")
    site.restart(killed=is_killed)
    tab.sees("interrupted" if is_killed else "topped")
    tab.idle()
    tab.prompt("Again.")
    tab.sees("Hello from the fake model.")


def test_it_works_behind_a_path_prefix_and_two_servers_do_not_log_each_other_out(site: Site, tab: Tab) -> None:
    stored = tab.page.evaluate("JSON.stringify(Object.keys(localStorage))")
    assert all(name.startswith("covey:/:") for name in json.loads(stored))
    urls = [url for url in tab.requests if "/web/" in url or "/v1/" in url]
    assert urls and all(url.startswith(site.url) for url in urls)
    index = site.server.request("GET", "/").ok()
    assert 'src="/' not in index and 'href="/' not in index
