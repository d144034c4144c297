"""opencode's web UI, where `opencode` is installed: its own server, and the page that this serves, at a fake model.

It is embedded in the program that npm installs, so nothing is fetched from elsewhere.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

START_S = 60.0
ANSWER_S = 180.0


def is_installed() -> bool:
    return shutil.which("opencode") is not None


class Opencode:
    """One running server of it, with one project."""

    def __init__(self, place: Path, env: dict[str, str]) -> None:
        self.project = place / "project"
        self.url = ""
        self._place = place
        self._env = env

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        headers = {"content-type": "application/json", "x-opencode-directory": str(self.project)}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, method=method, data=data, headers=headers)
        with urllib.request.urlopen(request, timeout=ANSWER_S) as answer:
            read = answer.read()
        return json.loads(read) if read else None

    def session(self) -> str:
        return str(self.ask("POST", "/session", {})["id"])

    def prompt(self, session: str, text: str, *, waits: bool = False) -> None:
        body = {"model": {"providerID": "bench", "modelID": "fast"}, "parts": [{"type": "text", "text": text}]}
        self.ask("POST", f"/session/{session}/{'message' if waits else 'prompt_async'}", body)

    def path_of(self, session: str) -> str:
        directory = base64.urlsafe_b64encode(str(self.project).encode()).decode().rstrip("=")
        return f"/{directory}/session/{session}"

    def long_session(self, texts: list[str]) -> str:
        """As its own export and import have it: an exchange, copied until there are as many messages as texts."""
        session = self.session()
        self.prompt(session, "First.", waits=True)
        exported = json.loads(self._run("export", session))
        first, answer = exported["messages"][0], exported["messages"][1]
        messages = []
        for number, text in enumerate(texts):
            of, at = (answer, number - 1) if number % 2 else (first, number)
            messages.append(_copied(of, number, text, _id("msg", at)))
        path = self._place / "long.json"
        exported["info"]["id"] = "ses_e0000000000bench0000000000"
        for message in messages:
            for each in (message["info"], *message["parts"]):
                each["sessionID"] = exported["info"]["id"]
        path.write_text(json.dumps(exported | {"messages": messages}))
        self._run("import", str(path))
        return str(exported["info"]["id"])

    def _run(self, *words: str) -> str:
        done = subprocess.run(
            ["opencode", *words], cwd=self.project, env=self._env, capture_output=True, text=True, timeout=ANSWER_S
        )
        if done.returncode:
            raise RuntimeError(f"opencode {words[0]}: {done.stderr[-300:]}")
        return done.stdout


def _id(kind: str, number: int) -> str:
    return f"{kind}_1ec6{number:08x}bench000000000000"[:30]


def _copied(message: Any, number: int, text: str, parent: str) -> Any:
    made = json.loads(json.dumps(message))
    made["info"]["id"] = _id("msg", number)
    made["info"]["time"]["created"] += number
    if "parentID" in made["info"]:
        made["info"]["parentID"] = parent
    made["parts"] = [part for part in made["parts"] if part["type"] == "text"]
    for part in made["parts"]:
        part |= {"id": _id("prt", number), "messageID": made["info"]["id"], "text": text}
    return made


@contextmanager
def opencode(place: Path, model_url: str) -> Iterator[Opencode]:
    (place / "project").mkdir(parents=True)
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": model_url, "apiKey": "x"},
        "models": {"fast": {"name": "fast"}},
    }
    config = {"provider": {"bench": provider}, "model": "bench/fast", "small_model": "bench/fast"}
    path = place / "opencode.json"
    path.write_text(json.dumps(config | {"autoupdate": False, "share": "disabled", "enabled_providers": ["bench"]}))
    env = os.environ | {"HOME": str(place), "OPENCODE_CONFIG": str(path), "OPENCODE_DISABLE_MODELS_FETCH": "1"}
    env |= {f"XDG_{name}_HOME": str(place / name.lower()) for name in ("CONFIG", "DATA", "STATE", "CACHE")}
    env["OPENCODE_DISABLE_AUTOUPDATE"] = "1"
    peer = Opencode(place, env)
    command = ["opencode", "serve", "--port", "0"]
    with subprocess.Popen(
        command, cwd=peer.project, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            assert process.stdout
            peer.url = next(line.split()[-1] for line in process.stdout if "listening" in line)
            yield peer
        finally:
            process.terminate()
