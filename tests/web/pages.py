"""Pages in a real browser, with a real server behind them. What must never happen is looked for in every test."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.support.fake_model import Call, FakeModel, Reply
from tests.support.server import Server, Workspace, provider_config, running, until

PATIENCE_MS = 30_000
"""How long a test waits for what must happen: far longer than it takes."""
WATCH = """
window.__violations = [];
window.__toasts = [];
document.addEventListener('securitypolicyviolation', (event) => {
  window.__violations.push(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`);
});
document.addEventListener('DOMContentLoaded', () => new MutationObserver((changes) => {
  for (const { addedNodes } of changes) for (const node of addedNodes) window.__toasts.push(node.textContent);
}).observe(document.getElementById('toasts') ?? document, {childList: true}));
"""
"""What must not be missed, however long the test is not looked after: toasts pass by themselves."""
FRAMES = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
expect.set_options(timeout=PATIENCE_MS)


@dataclass
class Tab:
    """One tab. `errors`: what the page should not have said or done."""

    page: Page
    context: BrowserContext
    site: Site
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    may_fail: bool = False
    """The test cuts the connection, which a browser writes to its console."""

    def watch(self) -> None:
        def said(message: Any) -> None:
            is_cut = "net::ERR" in message.text or "Failed to load resource" in message.text
            if message.type in ("error", "warning") and not (self.may_fail and is_cut):
                self.errors.append(f"{message.type}: {message.text}")

        self.page.on("console", said)
        self.page.on("pageerror", lambda error: self.errors.append(f"uncaught: {error}"))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.add_init_script(WATCH)

    def check(self) -> None:
        elsewhere = [url for url in self.requests if not url.startswith((self.site.url, "blob:", "data:", "about:"))]
        assert elsewhere == [], "something was asked for elsewhere"
        assert self.errors == [], self.errors
        if not self.page.is_closed():
            assert self.page.evaluate("window.__violations ?? []") == []

    # ── what a user does and sees ──

    def prompt(self, text: str) -> None:
        self.page.fill("#prompt", text)
        self.page.click("#send")

    def tell(self, *replies: dict[str, Any], about: str = "Please work.") -> None:
        """A prompt that tells the fake model what to answer, call by call. What it says is not readable in the prompt."""
        told = json.dumps(
            [{**reply, "text": f"@{n}@"} if "text" in reply else reply for n, reply in enumerate(replies)]
        )
        for n, reply in enumerate(replies):
            told = told.replace(f"@{n}@", "".join(f"\\u{ord(c):04x}" for c in reply.get("text", "")))
        self.prompt(f"{about} [{told}]")

    def sees(self, text: str, *, within: str = "#log") -> None:
        expect(self.page.locator(within)).to_contain_text(text)

    def was_told(self, text: str) -> None:
        until(lambda: any(text in told for told in self.page.evaluate("window.__toasts")))

    def drawn(self) -> None:
        """Whatever the page knows is on the screen."""
        self.page.evaluate(FRAMES)

    def allow(self) -> None:
        """What is asked, once. A card answers nothing before it has been there for a moment: the click waits for that."""
        self.page.locator(".ask .primary").first.click()

    def waits_for(self, selector: str, count: int | None = None) -> Any:
        found = self.page.locator(selector)
        if count is None:
            expect(found.first).to_be_visible()
        else:
            expect(found).to_have_count(count)
        return found

    def idle(self) -> None:
        """Whatever was asked for has ended, and the page knows."""
        expect(self.page.locator("#stop")).to_be_hidden()
        expect(self.page.locator("#queue")).to_be_empty()

    @property
    def is_connected(self) -> bool:
        return bool(self.page.locator('body[data-screen="app"][data-link="connected"]').count())

    @property
    def session(self) -> str:
        found = re.search(r"/s/([^/]+)", self.page.url)
        assert found, self.page.url
        return found[1]

    def widths(self) -> tuple[int, int]:
        """Of the page as it is laid out, and of the window."""
        found = self.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        return int(found[0]), int(found[1])


class Site:
    """A server for pages, and the browser that looks at it."""

    def __init__(self, server: Server, model: FakeModel, browser: Browser) -> None:
        self.server = server
        self.model = model
        self.browser = browser
        self.workspace: Workspace = server.workspace()
        self.tabs: list[Tab] = []
        self._contexts: list[BrowserContext] = []
        self.at_end: list[Callable[[], None]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.port}/"

    def code(self, workspace_id: str | None = None) -> str:
        body = {"workspace_id": self.workspace.id if workspace_id is None else workspace_id}
        return str(self.server.request("POST", "/v1/web/codes", body).ok()["code"])

    def context(self, *, width: int = 1280, height: int = 800, is_phone: bool = False, **more: Any) -> BrowserContext:
        made = self.browser.new_context(
            viewport={"width": width, "height": height}, has_touch=is_phone, is_mobile=is_phone, **more
        )
        made.set_default_timeout(PATIENCE_MS)
        self._contexts.append(made)
        return made

    def open(self, context: BrowserContext, fragment: str = "", url: str = "", *, may_fail: bool = False) -> Tab:
        tab = Tab(context.new_page(), context, self, may_fail=may_fail)
        tab.watch()
        self.tabs.append(tab)
        tab.page.goto(f"{url or self.url}{fragment}")
        return tab

    def let_in(self, *, width: int = 1280, height: int = 800, is_phone: bool = False, **more: Any) -> Tab:
        """A tab of a browser of its own that is connected."""
        tab = self.open(self.context(width=width, height=height, is_phone=is_phone, **more), f"#code={self.code()}")
        self.connected(tab)
        return tab

    def connected(self, tab: Tab) -> None:
        expect(tab.page.locator("body")).to_have_attribute("data-link", "connected")
        expect(tab.page.locator("body")).to_have_attribute("data-loading", "")

    def session(self, title: str = "A session") -> str:
        return self.workspace.session(title)

    def show(self, tab: Tab, session_id: str) -> None:
        tab.page.evaluate(f"location.hash = '#/w/{self.workspace.id}/s/{session_id}'")
        expect(tab.page.locator("body")).to_have_attribute("data-session", session_id)

    def restart(self, *, killed: bool = False) -> None:
        """The same server again, at the same port, and all tabs that were connected are so again."""
        attached = [tab for tab in self.tabs if not tab.page.is_closed() and tab.is_connected]
        with ExitStack() as stack:
            for tab in attached:  # with each connection a tab asks once which page the server has
                stack.enter_context(tab.page.expect_request(lambda request: "/v1/version" in request.url))
            self.stop(killed=killed)
            self.start()
        for tab in attached:
            tab.drawn()
            self.connected(tab)

    def stop(self, *, killed: bool = False) -> None:
        for tab in self.tabs:
            tab.may_fail = True
        if killed:
            self.server.kill()
        else:
            self.server.stop()

    def start(self) -> None:
        self.server.host = f"tcp://127.0.0.1:{self.server.port}"
        self.server.start()

    def close(self) -> None:
        try:
            for tab in self.tabs:
                tab.check()
        finally:
            for context in self._contexts:
                with suppress(Exception):
                    context.close()
            for clean in self.at_end:
                clean()


def forget_events(site: Site) -> None:
    """The events are gone, the messages are not: whoever comes back finds a gap."""
    with closing(sqlite3.connect(site.server.data_dir / "covey.db")) as store, store:
        store.execute("UPDATE workspaces SET epoch = epoch + 1")


def corrects(model: FakeModel) -> None:
    """A model that makes a change, and corrects it once somebody comments on it."""

    def reply(request: Any) -> Reply:
        is_comment = "Comments on the changes" in request.prompt
        text = "def area(r):\n    return 3.14159 * r * r\n" if is_comment else "def area(r):\n    return 3 * r * r\n"
        if request.call_number == 0:
            return Reply(
                text="I write it.", tools=(Call(name="write", input={"file_path": "area.py", "content": text}),)
            )
        return Reply(text="Corrected." if is_comment else "Written.")

    model.on(reply)


@contextmanager
def serving_pages(directory: Path, model: FakeModel, browser: Browser, config: str = "") -> Iterator[Site]:
    with running(directory, provider_config(model.url) + config) as server:
        site = Site(server, model, browser)
        yield site
        site.close()


__all__ = ["Site", "Tab", "corrects", "expect", "forget_events", "serving_pages", "until"]
