"""The main way through the page in other engines, by hand: `python -m tests.web.engines firefox|webkit [PICTURES]`.

Playwright drives only a Firefox and a WebKit of its own, which it downloads. Those of the system are asked by WebDriver:
`firefox-esr` by BiDi, and the WebKit of GTK, the engine of Safari, by `WebKitWebDriver` (`webkit2gtk-driver`, `xvfb`).
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from websockets.sync.client import ClientConnection, connect

from tests.support.fake_model import Call, FakeModel, Reply
from tests.support.machine import free_port
from tests.support.server import Server, provider_config, running, until

ENTER = "\ue007"
SEEN = """(window.__said ??= (() => { const said = []; for (const kind of ['error', 'unhandledrejection', 'securitypolicyviolation'])
  addEventListener(kind, (event) => said.push(kind + ': ' + (event.message ?? event.reason ?? event.violatedDirective)), true);
  return said; })())"""
"""What the page did that it should not have: from the first time it is asked for."""


class Engine(Protocol):
    """One tab of a browser."""

    def go(self, url: str) -> None: ...
    def run(self, script: str) -> Any: ...
    def press(self, key: str) -> None: ...
    def reload(self) -> None: ...
    def picture(self) -> str:
        """What is seen, as PNG in base64."""
        ...


class Firefox:
    """By BiDi: one thing after the other."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self._number = 0
        self.send("session.new", capabilities={})
        self.tab = self.send("browsingContext.getTree")["contexts"][0]["context"]

    def send(self, method: str, **params: Any) -> Any:
        self._number += 1
        self._connection.send(json.dumps({"id": self._number, "method": method, "params": params}))
        while True:
            got = json.loads(self._connection.recv(timeout=60))
            if got.get("id") == self._number:
                assert got["type"] == "success", got
                return got["result"]

    def go(self, url: str) -> None:
        self.send("browsingContext.navigate", context=self.tab, url=url, wait="complete")

    def run(self, script: str) -> Any:
        done = self.send(
            "script.evaluate", expression=f"JSON.stringify({script})", target={"context": self.tab}, awaitPromise=False
        )
        assert done["type"] == "success", done
        return json.loads(done["result"].get("value", "null"))

    def press(self, key: str) -> None:
        actions = [{"type": kind, "value": key} for kind in ("keyDown", "keyUp")]
        self.send("input.performActions", context=self.tab, actions=[{"type": "key", "id": "k", "actions": actions}])

    def reload(self) -> None:
        self.send("browsingContext.reload", context=self.tab, wait="complete")

    def picture(self) -> str:
        return str(self.send("browsingContext.captureScreenshot", context=self.tab)["data"])


class WebKit:
    """By WebDriver as it was before BiDi."""

    def __init__(self, driver: str, browser: str) -> None:
        self._driver = driver
        options = {"binary": browser, "args": ["--automation"]}
        made = self._ask("", {"capabilities": {"alwaysMatch": {"webkitgtk:browserOptions": options}}})
        self._driver += f"/{made['sessionId']}"

    def _ask(self, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._driver + path, data, {"Content-Type": "text/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["value"]

    def go(self, url: str) -> None:
        self._ask("/url", {"url": url})

    def run(self, script: str) -> Any:
        told = self._ask("/execute/sync", {"script": f"return JSON.stringify({script})", "args": []})
        return json.loads(told or "null")

    def press(self, key: str) -> None:
        actions = [{"type": kind, "value": key} for kind in ("keyDown", "keyUp")]
        self._ask("/actions", {"actions": [{"type": "key", "id": "k", "actions": actions}]})

    def reload(self) -> None:
        self._ask("/refresh", {})

    def picture(self) -> str:
        return str(self._ask("/screenshot"))


@contextlib.contextmanager
def firefox(place: Path) -> Iterator[Engine]:
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


@contextlib.contextmanager
def webkit(place: Path) -> Iterator[Engine]:
    browser = next(Path("/usr/lib").glob("*/webkit2gtk-4*/MiniBrowser"), None)
    assert browser, "there is no MiniBrowser: it comes with webkit2gtk-driver"
    port = free_port()
    command = ["xvfb-run", "-a", "WebKitWebDriver", f"--port={port}"]
    environment = {
        **os.environ,
        "HOME": str(place),
        "XDG_RUNTIME_DIR": str(place),
        "WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS": "1",
    }
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, env=environment, stdout=quiet, stderr=quiet, start_new_session=True) as process:
        try:
            until(lambda: answers(f"http://127.0.0.1:{port}/status"))
            yield WebKit(f"http://127.0.0.1:{port}/session", str(browser))
        finally:
            os.killpg(process.pid, 15)


def answers(url: str) -> bool:
    with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5):
        return True
    return False


class Walk:
    """What a person does and sees."""

    def __init__(self, engine: Engine, pictures: Path | None) -> None:
        self.engine = engine
        self.pictures = pictures
        self.said: list[str] = []

    def run(self, script: str) -> Any:
        return self.engine.run(script)

    def connected(self) -> None:
        self.run(SEEN)
        until(lambda: self.run("document.body.dataset.link") == "connected")

    def sees(self, text: str, within: str = "#log") -> None:
        until(lambda: text in (self.run(f"document.querySelector('{within}')?.textContent ?? ''") or ""))
        print(f"  sees {text!r} in {within}")

    def click(self, selector: str) -> None:
        until(lambda: self.run(f"document.querySelector('{selector}')?.disabled") is False)
        self.run(f"(document.querySelector('{selector}').click(), 1)")

    def write(self, selector: str, text: str) -> None:
        field = f"document.querySelector('{selector}')"
        self.run(f"({field}.value = {json.dumps(text)}, {field}.dispatchEvent(new Event('input')), {field}.focus(), 1)")

    def prompt(self, text: str) -> None:
        self.write("#prompt", text)
        self.engine.press(ENTER)

    def looks(self, name: str) -> None:
        """A picture, after as many frames as an engine needs until all is drawn."""
        if self.pictures:
            self.run(
                "(window.__frames = 0, (function next() { if (++window.__frames < 40) requestAnimationFrame(next); })(), 1)"
            )
            until(lambda: self.run("window.__frames") >= 40)
            (self.pictures / f"{name}.png").write_bytes(base64.b64decode(self.engine.picture()))

    def leaves(self) -> None:
        """What went wrong is asked for before the page is gone."""
        self.said += self.run(SEEN)


def walk(browser: Walk, server: Server, model: FakeModel) -> None:
    workspace = server.workspace()
    code = server.request("POST", "/v1/web/codes", {"workspace_id": workspace.id}).ok()["code"]
    browser.engine.go(f"http://127.0.0.1:{server.port}/#code={code}")
    browser.connected()
    print(browser.run("navigator.userAgent"), "shared worker:", browser.run("typeof SharedWorker"))
    changes(browser, server, model)
    model.on(lambda request: Reply(text="line {n}\n\n", chunks=300, gates={150: "more"}))
    browser.prompt("Many lines.")
    browser.sees("line 148")
    model.release("more")
    browser.sees("line 299")
    end = "(({scrollHeight, clientHeight, scrollTop}) => scrollHeight - clientHeight - scrollTop)(document.querySelector('#scroller'))"
    until(lambda: browser.run(end) < 24)
    browser.write("#prompt", "one\ntwo\nthree\nfour")
    until(
        lambda: (
            browser.run(
                "(({scrollHeight, clientHeight}) => scrollHeight - clientHeight)(document.querySelector('#prompt'))"
            )
            <= 1
        )
    )
    browser.looks("answered")
    server.stop()
    server.host = f"tcp://127.0.0.1:{server.port}"
    server.start()
    model.on(lambda request: Reply(text="After the restart."))
    browser.connected()
    browser.prompt("Still there?")
    browser.sees("After the restart.")
    browser.leaves()
    browser.engine.reload()
    browser.connected()
    browser.sees("After the restart.")
    browser.run("(location.hash = '#/home', 1)")
    browser.sees("Recent", "#dashboard")
    browser.looks("overview")
    browser.leaves()


def changes(browser: Walk, server: Server, model: FakeModel) -> None:
    """A file is written when that is allowed, commented on in the review, and written again."""

    def reply(request: Any) -> Reply:
        text = "r * r * 3.14159\n" if "Comments on" in request.prompt else "r * r * 3\n"
        write = Call(name="write", input={"file_path": "area.py", "content": text})
        return Reply(text="Written **well**.") if request.call_number else Reply(text="", tools=(write,))

    model.on(reply)
    browser.prompt("Please write it.")
    browser.sees("wants to change", "#asks")
    browser.looks("asking")
    browser.click(".ask .primary")
    browser.sees("Written well.")
    browser.click("#panel-button")
    browser.sees("r * r * 3", "#review .diff")
    browser.click("#review .added .comment-button")
    browser.write(".comment-form textarea", "More digits, please")
    browser.click(".comment-form .primary")
    browser.sees("More digits", "#review .comment")
    browser.looks("review")
    browser.click(".comment-box .primary")
    browser.sees("3.14159", "#asks")
    browser.click(".ask .primary")
    until(lambda: "3.14159" in (server.project / "area.py").read_text())


def main(name: str, pictures: str = "") -> None:
    with tempfile.TemporaryDirectory() as directory, FakeModel() as model:
        places = [Path(directory) / each for each in ("profile", "server")]
        for place in places:
            place.mkdir()
        start = {"firefox": firefox, "webkit": webkit}[name]
        with running(places[1], provider_config(model.url)) as server, start(places[0]) as engine:
            browser = Walk(engine, Path(pictures) if pictures else None)
            walk(browser, server, model)
            print("errors of the page:", browser.said or "none")


if __name__ == "__main__":
    main(*sys.argv[1:])
