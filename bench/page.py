"""The page in a real browser, by CPU of its main thread: a long answer, a long session, a key, weight, first paint.

Needs what `make test-web` installs; without it there are no figures. Where `opencode` is installed, its page is
measured in the same run, in the same browser, with the same texts.
"""

from __future__ import annotations

import json
import random
import sqlite3
import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from bench.page_peer import Opencode, is_installed, opencode
from bench.report import Figure
from bench.rig import Options
from covey.server.page_files import page_files
from tests.support.fake_reply import Reply, delta

DELTAS = 5_000
MESSAGES = 2_000
KEYS = 40
THE_END = "That is all of it."
WAIT_MS = 180_000
QUIET_MS = 2_000
LOOK_MS = 250
PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
FRAMES = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"

STREAM = """async ([pieces, isLaidOut]) => {
  const base = document.querySelector('script[type=module]').src.replace('main.js', '');
  const { MarkdownView } = await import(base + 'markdown.js');
  const root = document.createElement('div');
  document.getElementById('log').append(root);
  const view = new MarkdownView(root);
  let text = '';
  for (const piece of pieces) {
    text += piece;
    view.update(text, false, true);
    if (isLaidOut) root.getBoundingClientRect();
  }
  view.update(text, true);
  return root.querySelectorAll('*').length;
}"""


def answer(seed: int = 7) -> str:
    """Fifty kilobytes of what models write: paragraphs, lists, code, tables."""
    chance = random.Random(seed)
    words = ("the writer", "waits", "for each event", "because", "`fsync` is slow", "and", "**grouping** helps")
    parts: list[str] = []
    while sum(map(len, parts)) < 50_000:
        sentence = " ".join(chance.choice(words) for _ in range(40))
        parts += [f"## Step {len(parts)}\n\n{sentence}.\n\n", f"- {sentence}\n- {sentence}\n\n"]
        parts += ["```python\n" + "\n".join(f"value_{n} = compute({n})" for n in range(12)) + "\n```\n\n"]
        parts += ["| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 4 + "\n"]
    return "".join(parts)[:50_000]


def measure(options: Options) -> Iterator[Figure]:
    page = page_files()
    sizes = [len(file.packed) for name, file in page.files.items() if name != "index.html"]
    yield Figure("page: weight, gzipped", (len(page.index.packed) + sum(sizes)) / 1000, "kB", 100)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return
    from tests.support.fake_model import FakeModel
    from tests.web.conftest import ARGUMENTS, chromium
    from tests.web.pages import serving_pages

    with sync_playwright() as playwright, FakeModel() as model, tempfile.TemporaryDirectory() as place:
        browser = playwright.chromium.launch(executable_path=chromium(), args=list(ARGUMENTS))
        with serving_pages(Path(place) / "covey", model, browser) as site:
            yield from _measured(site, model)
        if is_installed():
            with opencode(Path(place) / "opencode", model.url) as peer:
                yield from _peer_measured(peer, browser, model)
        else:
            print("  opencode is not installed here, and its page not measured (`npm install opencode-ai`)")
        browser.close()


def _measured(site: Any, model: Any) -> Iterator[Figure]:
    context = site.context()
    page = site.open(context).page
    yield from _first_visit("page", page)
    tab = site.let_in()
    cpu = _Thread(tab.page)
    text = answer()
    pieces = _pieces(text)
    for is_laid_out, name, target in ((False, "drawn by itself", 0.3), (True, "drawn and laid out", None)):
        began = cpu.seconds()
        tab.page.evaluate(STREAM, [pieces, is_laid_out])
        cost = (cpu.seconds() - began) / len(pieces) * 1e3
        yield Figure(f"page: a delta of a 50 kB answer, {name}", cost, "ms", target)
    tab = site.let_in()
    session = site.session("An answer")
    site.show(tab, session)
    _answers_in_pieces(model)
    yield _streamed("page", tab.page, lambda: site.workspace.prompt(session, "Answer at length."), 0.3)
    model.on(lambda request: Reply())
    session = _long_session(site)
    tab = site.let_in()
    open_it = f"location.hash = '#/w/{site.workspace.id}/s/{session}'"
    yield _opened("page", tab.page, open_it, 300)
    yield _pressed("page", tab.page, tab.page.locator("#prompt"), 5)


def _peer_measured(peer: Opencode, browser: Any, model: Any) -> Iterator[Figure]:
    page = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
    page.set_default_timeout(WAIT_MS)
    session = peer.session()
    with _counting(page) as sent:
        page.goto(peer.url + peer.path_of(session))
        field = page.locator("[contenteditable=true]").first
        field.wait_for()
        _settled(page, sent)
    yield Figure("opencode: first paint (wall, noisy)", page.evaluate(PAINT), "ms")
    yield Figure("opencode: weight of the first visit, as sent", sum(sent) / 1000, "kB")
    _answers_in_pieces(model)
    yield _streamed("opencode", page, lambda: peer.prompt(session, "Answer at length."))
    model.on(lambda request: Reply(text="Short."))
    long = peer.path_of(peer.long_session([f"Message {n}\n\n{answer(n)[:1_800]}" for n in range(MESSAGES)]))
    with _counting(page) as sent:
        page.goto(peer.url + peer.path_of(peer.session()))
        field.wait_for()
        _settled(page, sent)
    yield _opened(
        "opencode", page, f"history.pushState({{}}, '', '{long}'); dispatchEvent(new PopStateEvent('popstate'))"
    )
    yield _pressed("opencode", page, field)


def _first_visit(name: str, page: Any) -> Iterator[Figure]:
    """Of a browser that knows nothing yet."""
    with _counting(page) as sent:
        page.reload()
        page.locator(".login-card").wait_for()
        _settled(page, sent)
    yield Figure(f"{name}: first paint (wall, noisy)", page.evaluate(PAINT), "ms")
    yield Figure(f"{name}: weight of the first visit, as sent", sum(sent) / 1000, "kB")


@contextmanager
def _counting(page: Any) -> Iterator[list[int]]:
    """What comes over the wire meanwhile, with nothing cached."""
    sent: list[int] = []
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    session.send("Network.setCacheDisabled", {"cacheDisabled": True})
    session.on("Network.loadingFinished", lambda done: sent.append(int(done["encodedDataLength"])))
    yield sent
    session.detach()


def _settled(page: Any, sent: list[int]) -> None:
    """Nothing has come for a while: a page that keeps a stream is never idle for the browser."""
    known = -1
    while known != len(sent):
        known = len(sent)
        page.wait_for_timeout(QUIET_MS)


def _pieces(text: str) -> list[str]:
    size = -(-len(text) // DELTAS)
    return [text[at : at + size] for at in range(0, len(text), size)]


def _answers_in_pieces(model: Any) -> None:
    """Each its own packet, a millisecond apart, as a fast model writes them."""
    raw = (*(delta(content=piece) for piece in _pieces(answer())), delta(content=f"\n\n{THE_END}\n"))
    reply = Reply(raw=(*raw, delta("stop"), "data: [DONE]\n\n"), delay_ms=1, ending="end")
    model.on(lambda request: reply if "at length" in request.prompt else Reply(text="A title"))


def _streamed(name: str, page: Any, prompt: Callable[[], object], target: float | None = None) -> Figure:
    """Through the server: a prompt, and the page until the end of the answer is there."""
    cpu = _Thread(page)
    began = cpu.seconds()
    prompt()
    while not page.evaluate(f"document.body.textContent.includes({THE_END!r})"):  # a locator looks with each frame
        page.wait_for_timeout(LOOK_MS)
    page.evaluate(FRAMES)
    cost = (cpu.seconds() - began) / DELTAS * 1e3
    return Figure(f"{name}: a delta of a 50 kB answer that comes from the server", cost, "ms", target)


def _opened(name: str, page: Any, script: str, target: float | None = None) -> Figure:
    """A page that is there already is told to show the session."""
    cpu = _Thread(page)
    began = cpu.seconds()
    page.evaluate(script)
    page.get_by_text(f"Message {MESSAGES - 1}", exact=True).last.wait_for(timeout=WAIT_MS)
    page.evaluate(FRAMES)
    return Figure(f"{name}: a session of 2,000 messages opened", (cpu.seconds() - began) * 1e3, "ms", target)


def _pressed(name: str, page: Any, field: Any, target: float | None = None) -> Figure:
    cpu = _Thread(page)
    field.click()
    without = _median(cpu, page, lambda: None)  # two frames, and what it costs to ask for them
    key = _median(cpu, page, lambda: page.keyboard.press("a"))
    return Figure(f"{name}: a key press in it", (key - without) * 1e3, "ms", target)


def _median(cpu: _Thread, page: Any, act: Callable[[], object]) -> float:
    costs = []
    for _ in range(KEYS):
        began = cpu.seconds()
        act()
        page.evaluate(FRAMES)
        costs.append(cpu.seconds() - began)
    return statistics.median(costs)


class _Thread:
    """CPU of the main thread, as the browser counts it: it holds on a busy machine."""

    def __init__(self, page: Any) -> None:
        self._session = page.context.new_cdp_session(page)
        self._session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def seconds(self) -> float:
        metrics = self._session.send("Performance.getMetrics")["metrics"]
        return float(next(each["value"] for each in metrics if each["name"] == "TaskDuration"))


def _long_session(site: Any) -> str:
    """Written where the server keeps it: two thousand prompts would take minutes."""
    session = str(site.session("Long"))
    site.workspace.ended(site.workspace.prompt(session, "First.")["run_id"])
    site.stop()
    with closing(sqlite3.connect(site.server.data_dir / "covey.db")) as store, store:
        columns = "workspace_id, session_id, run_id, role"
        of = "WHERE role = 'user' AND session_id = ?"
        raw, *fields = store.execute(f"SELECT value, {columns} FROM messages {of}", (session,)).fetchone()
        for n in range(MESSAGES):
            parts = [{"type": "text", "data": {"text": f"Message {n}\n\n" + answer(n)[:1_800]}}]
            made = json.dumps({**json.loads(raw), "id": f"0000{n:06}", "parts": parts}).encode()
            store.execute(
                f"INSERT INTO messages (id, value, {columns}) VALUES (?,?,?,?,?,?)", (f"0000{n:06}", made, *fields)
            )
    site.start()
    site.at_end.append(lambda: _forget(site))
    return session


def _forget(site: Any) -> None:
    site.server.stop()
    with closing(sqlite3.connect(site.server.data_dir / "covey.db")) as store, store:
        store.execute("DELETE FROM messages WHERE id LIKE '0000%'")
