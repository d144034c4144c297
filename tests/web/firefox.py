"""The main way through the page in Firefox, by hand: `python -m tests.web.firefox`. It needs `firefox-esr` or `firefox`.

Playwright drives only a Firefox of its own, which it downloads. This one is asked by WebDriver BiDi, which any has.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

from tests.support.fake_model import Call, FakeModel, Reply
from tests.support.server import provider_config, running, until

TOUCH = Call(name="bash", input={"command": "touch made && echo done"})


class Firefox:
    """One tab, asked one thing after the other. `said` is what it wrote to its console that it should not have."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self._number = 0
        self.said: list[str] = []
        self.send("session.new", capabilities={})
        self.send("session.subscribe", events=["log.entryAdded"])
        self.tab = self.send("browsingContext.getTree")["contexts"][0]["context"]

    def send(self, method: str, **params: Any) -> Any:
        self._number += 1
        self._connection.send(json.dumps({"id": self._number, "method": method, "params": params}))
        while True:
            got = json.loads(self._connection.recv(timeout=60))
            if got.get("id") == self._number:
                assert got["type"] == "success", got
                return got["result"]
            if got.get("method") == "log.entryAdded" and got["params"]["level"] == "error":
                self.said.append(got["params"]["text"])

    def go(self, url: str) -> None:
        self.send("browsingContext.navigate", context=self.tab, url=url, wait="complete")

    def run(self, script: str) -> Any:
        target = {"context": self.tab}
        done = self.send("script.evaluate", expression=f"JSON.stringify({script})", target=target, awaitPromise=True)
        assert done["type"] == "success", done
        return json.loads(done["result"].get("value", "null"))

    def sees(self, text: str, within: str = "#log") -> None:
        until(lambda: text in self.run(f"document.querySelector('{within}')?.textContent ?? ''"))
        print(f"  sees {text!r}")

    def prompt(self, text: str) -> None:
        field = "document.getElementById('prompt')"
        self.run(f"({field}.value = {json.dumps(text)}, {field}.dispatchEvent(new Event('input')), 1)")
        keys = [{"type": kind, "value": "\ue007"} for kind in ("keyDown", "keyUp")]
        self.run(f"({field}.focus(), 1)")
        self.send("input.performActions", context=self.tab, actions=[{"type": "key", "id": "k", "actions": keys}])


@contextlib.contextmanager
def firefox(place: Path) -> Iterator[Firefox]:
    program = shutil.which("firefox-esr") or shutil.which("firefox")
    assert program, "there is no Firefox"
    command = [program, "--headless", "--no-remote", "--profile", str(place), "--remote-debugging-port", "0"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr
            found = (re.search(r"ws://\S+", line) for line in process.stderr)
            url = next(each[0] for each in found if each)
            with connect(f"{url}/session", max_size=None) as connection:
                yield Firefox(connection)
        finally:
            process.terminate()


def main() -> None:
    with tempfile.TemporaryDirectory() as name, FakeModel() as model:
        place = Path(name)
        (place / "profile").mkdir()
        (place / "server").mkdir()
        with running(place / "server", provider_config(model.url)) as server, firefox(place / "profile") as browser:
            workspace = server.workspace()
            code = server.request("POST", "/v1/web/codes", {"workspace_id": workspace.id}).ok()["code"]
            browser.go(f"http://127.0.0.1:{server.port}/#code={code}")
            until(lambda: browser.run("document.body.dataset.link") == "connected")
            print(browser.run("navigator.userAgent"), "shared worker:", browser.run("typeof SharedWorker"))
            model.on(
                lambda request: Reply(text="Made **it**.") if request.call_number else Reply(text="", tools=(TOUCH,))
            )
            browser.prompt("Please touch it.")
            browser.sees("wants to run", "#asks")
            until(lambda: browser.run("document.querySelector('.ask .primary')?.disabled") is False)
            browser.run("(document.querySelector('.ask .primary').click(), 1)")
            browser.sees("Made it.")
            assert (server.project / "made").exists()
            model.on(lambda request: Reply(text="line {n}\n\n", chunks=300, gates={150: "more"}))
            browser.prompt("Many lines.")
            browser.sees("line 148")
            model.release("more")
            browser.sees("line 299")
            server.stop()
            server.host = f"tcp://127.0.0.1:{server.port}"
            server.start()
            model.on(lambda request: Reply(text="After the restart."))
            until(lambda: browser.run("document.body.dataset.link") == "connected")
            browser.prompt("Still there?")
            browser.sees("After the restart.")
            browser.send("browsingContext.reload", context=browser.tab, wait="complete")
            browser.sees("After the restart.")
            browser.run("(location.hash = '#/home', 1)")
            browser.sees("Lately", "#dashboard")
            ours = [text for text in browser.said if "NetworkError" not in text and "can’t establish" not in text]
            print("errors of the page:", ours or "none")


if __name__ == "__main__":
    main()
