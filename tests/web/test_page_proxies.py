"""Behind a real nginx: under a path, and at an `https://` name. Everything works there as it does without."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext

from tests.support.fake_model import FakeModel, Reply
from tests.web.nginx import NAME, Nginx, nginx
from tests.web.pages import Site, Tab, expect, serving_pages


@pytest.fixture
def site(tmp_path: Path, model: FakeModel, browser: Browser) -> Iterator[Site]:
    with serving_pages(tmp_path, model, browser, f'\n[server]\nallowed_hosts = ["{NAME}"]\n') as started:
        yield started


@pytest.fixture
def front(tmp_path: Path, site: Site) -> Iterator[Nginx]:
    with nginx(tmp_path / "nginx", site.server.port) as running:
        yield running


@pytest.mark.parametrize("kind", ["path", "tls"])
def test_the_page_works_behind_a_proxy(site: Site, front: Nginx, model: FakeModel, kind: str) -> None:
    url = front.under_a_path if kind == "path" else front.with_tls
    model.on(lambda request: Reply(text="{n} ", chunks=300, gates={150: "more"}))
    context = site.context(ignore_https_errors=True)
    tab = _opened(site, context, url, f"#code={site.code()}")
    assert "code" not in tab.page.url
    tab.prompt("Count, please.")
    tab.sees(" 148 ")  # the model waits: a stream that somebody held back would show nothing yet
    model.release("more")
    tab.sees(" 299")
    tab.idle()
    message = tab.page.locator("article.user").get_attribute("data-id")
    link = f"#/w/{site.workspace.id}/s/{tab.session}/{message}"
    other = _opened(site, context, url, link)
    other.waits_for(f'article[data-id="{message}"]')
    other.page.reload()
    other.sees(" 299")
    site.restart()
    other.prompt("Once more.")
    expect(tab.page.locator("article.assistant")).to_have_count(2)
    stored = tab.page.evaluate("Object.keys(localStorage)")
    path = tab.page.evaluate("location.pathname")
    assert stored and all(name.startswith(f"covey:{path}:") for name in stored)
    asked = front.asked()
    assert tab.session not in asked.replace(f"sessions/{tab.session}", "").replace(f"session_id={tab.session}", "")
    assert "code=" not in asked
    for each in (tab, other):
        assert each.requests and all(request.startswith((url, "blob:", "data:")) for request in each.requests)
        each.requests.clear()  # they went to the proxy, as they should


def test_over_tls_the_browser_grants_what_it_keeps_from_plain_http(site: Site, front: Nginx) -> None:
    tab = _opened(site, site.context(ignore_https_errors=True), front.with_tls, f"#code={site.code()}")
    assert tab.page.evaluate("[isSecureContext, location.protocol]") == [True, "https:"]
    assert tab.page.evaluate("typeof crypto.randomUUID + typeof navigator.clipboard") == "functionobject"
    tab.requests.clear()


def test_a_name_that_was_not_configured_is_refused(tmp_path: Path, model: FakeModel, browser: Browser) -> None:
    with (
        serving_pages(tmp_path, model, browser) as site,
        nginx(tmp_path / "nginx", site.server.port) as front,
    ):
        ask = site.context(ignore_https_errors=True).request
        answer = ask.get(front.with_tls.replace(NAME, "127.0.0.1"), headers={"Host": NAME})
        assert answer.status == 403 and "allowed_hosts" in answer.text()


def _opened(site: Site, context: BrowserContext, url: str, fragment: str) -> Tab:
    tab = site.open(context, fragment, url=url)
    site.connected(tab)
    return tab
