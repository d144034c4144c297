"""Takes the pictures of the page in docs/screens, and more to look at: `python -m tests.web.screens DIRECTORY`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import Route, sync_playwright

from tests.support.fake_model import Call, FakeModel, Reply
from tests.web.conftest import ARGUMENTS, chromium
from tests.web.pages import Site, Tab, expect, forget_events, serving_pages

ANSWER = """The writer waits for `fsync` once **per event**. Grouping them is enough:

1. Collect what came in while the last write was under way.
2. Write it as one transaction, with one `fsync`.

```python
def flush(self) -> None:
    batch, self._waiting = self._waiting, []
    if batch:  # nothing to do is the usual case
        self._store.write(batch)
```

| | before | after |
|---|--:|--:|
| 1,000 events | 4.1 s | 0.09 s |

The order of events stays as it is, so no reader notices.
"""
OLD = "class Journal:\n    def write(self, event):\n        self.file.write(event)\n        self.file.flush()\n"
NEW = "class Journal:\n    def write(self, events):\n        for event in events:\n            self.file.write(event)\n        self.file.flush()  # once for all\n"


def scripted(model: FakeModel, project: Path) -> None:
    def reply(request: Any) -> Reply:
        prompt, step = request.prompt, request.call_number
        if "slow" in prompt:
            calls = (
                Call(name="view", input={"file_path": "journal.py"}),
                Call(name="grep", input={"pattern": "flush"}),
            )
            return (
                Reply(text="I look at the journal first.", reasoning="The log first.", tools=calls)
                if step == 0
                else Reply(text=ANSWER)
            )
        if "Change" in prompt:
            edit = Call(name="write", input={"file_path": "journal.py", "content": NEW})
            test = Call(
                name="write",
                input={"file_path": "tests/test_journal.py", "content": "def test_one_flush():\n    assert True\n"},
            )
            read = Call(name="view", input={"file_path": "journal.py"})
            return (
                Reply(text="", tools=(read,)),
                Reply(text="Now the change.", tools=(edit,)),
                Reply(text="", tools=(test,)),
                Reply(text="Done: one flush for all that waits."),
            )[min(step, 3)]
        if "tests" in prompt:
            run = Call(
                name="bash",
                input={
                    "command": 'for n in 1 2 3 4 5; do echo "tests/test_journal.py::test_$n PASSED"; done; sleep 600'
                },
            )
            return Reply(text="I run them.", tools=(run,))
        if "key" in prompt:
            return Reply(status=401, body='{"error": {"message": "The key was refused."}}')
        return Reply(text="word ", chunks=30, gates={20: "never"})

    model.on(reply)


def story(tab: Tab, save: Any) -> None:
    """Empty, answered, asking, changed, reviewed, busy, failed."""
    page = tab.page
    save("empty")
    tab.prompt("Why is the journal slow?")
    tab.sees("no reader notices")
    tab.idle()
    save("answered")
    tab.prompt("Change it, with a test.")
    tab.waits_for(".ask")
    expect(page.locator(".ask .primary")).to_be_enabled()
    save("asking")
    for text in ("journal.py", "test_journal"):
        expect(page.locator(".ask")).to_contain_text(text)
        expect(page.locator(".ask .primary")).to_be_enabled()
        page.click(".ask .primary")
    tab.sees("one flush for all that waits")
    tab.idle()
    page.click("#panel-button")
    page.locator("details.file", has_text="journal.py").first.locator("summary").click()
    tab.waits_for("#review .diff .row")
    row = page.locator("#review .row.added, #review .half.added").nth(1)
    row.hover()
    row.locator("button").click()
    page.fill(".comment-form textarea", "What if it is empty?")
    page.get_by_role("button", name="Add to the next prompt").click()
    save("review")
    page.get_by_role("button", name="Remove this comment").click()
    page.get_by_role("button", name="Close the panel").click()


def busy(tab: Tab, save: Any) -> None:
    tab.prompt("Run the tests.")
    tab.waits_for(".ask")
    expect(tab.page.locator(".ask .primary")).to_be_enabled()
    tab.page.click(".ask .primary")
    tab.sees("test_5 PASSED")
    tab.prompt("Then update the changelog.")
    tab.waits_for(".queue-list li")
    tab.page.fill("#prompt", "and mention @journal.py")
    save("busy")
    tab.page.fill("#prompt", "")
    tab.page.click("#stop")
    tab.idle()


def failing(tab: Tab, site: Site, save: Any) -> None:
    tab.prompt("Try the key.")
    tab.sees("refused")
    tab.idle()
    save("error")
    site.stop()
    expect(tab.page.locator("#banner")).to_contain_text("No connection")
    save("away")
    forget_events(site)
    held: list[Route] = []
    tab.page.route("**/messages?*", lambda route: held.append(route))
    site.start()
    expect(tab.page.locator("#banner")).to_contain_text("Some events are gone")
    save("gap")
    for route in held:
        route.continue_()
    tab.page.unroute("**/messages?*")
    site.connected(tab)
    tab.page.click("#home") if not tab.page.locator("#drawer").is_visible() else tab.page.evaluate(
        "location.hash = '#/home'"
    )
    tab.sees("Recent", within="#dashboard")
    expect(tab.page.locator("#dashboard .tile").first).to_be_visible()
    save("overview")


def main(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright, FakeModel() as model, tempfile.TemporaryDirectory() as place:
        browser = playwright.chromium.launch(executable_path=chromium(), args=list(ARGUMENTS))
        for scheme in ("light", "dark"):
            for name, width, height, is_phone in (("desktop", 1280, 800, False), ("phone", 390, 780, True)):
                root = Path(place) / f"{scheme}-{name}" / "covey-demo"
                root.mkdir(parents=True)
                with serving_pages(root, model, browser) as site:
                    (site.server.project / "tests").mkdir()
                    (site.server.project / "journal.py").write_text(OLD)
                    scripted(model, site.server.project)
                    tab = site.let_in(width=width, height=height, is_phone=is_phone, color_scheme=scheme)

                    def save(state: str, tab: Tab = tab, name: str = f"page-{name}", scheme: str = scheme) -> None:
                        tab.page.evaluate("document.getElementById('toasts').replaceChildren()")
                        tab.page.mouse.move(2, 400)
                        tab.page.screenshot(path=directory / f"{name}-{state}-{scheme}.png")

                    story(tab, save)
                    busy(tab, save)
                    failing(tab, site, save)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
