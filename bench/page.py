"""The page in a real browser, by CPU of its main thread: a long answer, a long session, a key, weight, first paint.

Needs what `make test-web` installs; without it there are no figures.
"""

from __future__ import annotations

import json
import random
import sqlite3
import statistics
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.report import Figure
from bench.rig import Options
from covey.server.page_files import page_files

DELTAS = 5_000
MESSAGES = 2_000
KEYS = 40

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
        with serving_pages(Path(place), model, browser) as site:
            yield from _measured(site)
        browser.close()


def _measured(site: Any) -> Iterator[Figure]:
    tab = site.let_in()
    paint = tab.page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    yield Figure("page: first paint (wall, noisy)", paint, "ms")
    cpu = _Thread(tab)
    text = answer()
    size = -(-len(text) // DELTAS)
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    for is_laid_out, name, target in ((False, "drawn by itself", 0.3), (True, "drawn and laid out", None)):
        began = cpu.seconds()
        tab.page.evaluate(STREAM, [pieces, is_laid_out])
        cost = (cpu.seconds() - began) / len(pieces) * 1e3
        yield Figure(f"page: a delta of a 50 kB answer, {name}", cost, "ms", target)
    session = _long_session(site)
    tab = site.let_in()
    cpu = _Thread(tab)
    began = cpu.seconds()
    site.show(tab, session)
    tab.sees(f"Message {MESSAGES - 1}")
    yield Figure("page: a session of 2,000 messages opened", (cpu.seconds() - began) * 1e3, "ms", 300)
    tab.page.focus("#prompt")
    without = _median(cpu, tab, lambda: None)  # two frames, and what it costs to ask for them
    key = _median(cpu, tab, lambda: tab.page.keyboard.press("a"))
    yield Figure("page: a key press in it", (key - without) * 1e3, "ms", 5)


def _median(cpu: _Thread, tab: Any, act: Callable[[], object]) -> float:
    costs = []
    for _ in range(KEYS):
        began = cpu.seconds()
        act()
        tab.page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        costs.append(cpu.seconds() - began)
    return statistics.median(costs)


class _Thread:
    """CPU of the main thread, as the browser counts it: it holds on a busy machine."""

    def __init__(self, tab: Any) -> None:
        self._session = tab.context.new_cdp_session(tab.page)
        self._session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def seconds(self) -> float:
        metrics = self._session.send("Performance.getMetrics")["metrics"]
        return float(next(each["value"] for each in metrics if each["name"] == "TaskDuration"))


def _long_session(site: Any) -> str:
    """Written where the server keeps it: two thousand prompts would take minutes."""
    session = str(site.session("Long"))
    site.workspace.ended(site.workspace.prompt(session, "First.")["run_id"])
    site.server.stop()
    with sqlite3.connect(site.server.data_dir / "covey.db") as store:
        columns = "workspace_id, session_id, run_id, role"
        raw, *fields = store.execute(f"SELECT value, {columns} FROM messages WHERE role = 'user'").fetchone()
        for n in range(MESSAGES):
            parts = [{"type": "text", "data": {"text": f"Message {n}\n\n" + answer(n)[:1_800]}}]
            made = json.dumps({**json.loads(raw), "id": f"0000{n:06}", "parts": parts}).encode()
            store.execute(
                f"INSERT INTO messages (id, value, {columns}) VALUES (?,?,?,?,?,?)", (f"0000{n:06}", made, *fields)
            )
    store.close()
    site.server.host = f"tcp://127.0.0.1:{site.server.port}"
    site.server.start()
    site.at_end.append(lambda: _forget(site))
    return session


def _forget(site: Any) -> None:
    site.server.stop()
    with sqlite3.connect(site.server.data_dir / "covey.db") as store:
        store.execute("DELETE FROM messages WHERE id LIKE '0000%'")
    store.close()
