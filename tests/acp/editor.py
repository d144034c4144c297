"""An editor, as far as the protocol goes: starts `covey acp`, sends what it is told, and keeps all that comes back."""

from __future__ import annotations

import itertools
import json
import queue
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from tests.acp.judge import Judge
from tests.cli.conftest import WAIT_S, Home

Json = dict[str, Any]


class Editor:
    """`capabilities`: those that it announces."""

    def __init__(
        self, home: Home, capabilities: Json | None = None, *, name: str = "Test", judged: bool = True
    ) -> None:
        self.home = home
        self.process = subprocess.Popen(
            home.command("acp"),
            cwd=home.project,
            env=home.env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.seen: list[Json] = []
        """All that has come and was looked at, in its order."""
        self.agent, self.client = Judge(), Judge()
        self._judged = judged
        self._ids = itertools.count(100)
        self._lines: queue.Queue[bytes] = queue.Queue()
        self.may_read = threading.Event()
        """Cleared: it takes nothing any more of what it is sent."""
        self.may_read.set()
        threading.Thread(target=self._read, daemon=True).start()
        info = {"name": name, "version": "1"}
        params = {"protocolVersion": 1, "clientCapabilities": capabilities or {}, "clientInfo": info}
        self.opened = self.call("initialize", params)

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self.may_read.wait()
            self._lines.put(line)
        self._lines.put(b"")

    # ── sending ──

    def send(self, message: Json) -> None:
        whole = {"jsonrpc": "2.0", **message}
        if self._judged:
            self.client.judge(whole, self.agent)
        self.send_bytes(json.dumps(whole).encode() + b"\n")

    def send_bytes(self, data: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def begin(self, method: str, params: Json) -> int:
        id = next(self._ids)
        self.send({"id": id, "method": method, "params": params})
        return id

    def notify(self, method: str, params: Json) -> None:
        self.send({"method": method, "params": params})

    def answer(self, request: Json, result: Json) -> None:
        self.send({"id": request["id"], "result": result})

    def choose(self, request: Json, option: str) -> None:
        self.answer(request, {"outcome": {"outcome": "selected", "optionId": option}})

    # ── receiving ──

    def next(self) -> Json | None:
        """The next message; None: the bridge has closed its side."""
        line = self._lines.get(timeout=WAIT_S)
        if not line:
            return None
        message: Json = json.loads(line)
        if self._judged:
            self.agent.judge(message, self.client)
        self.seen.append(message)
        return message

    def until(self, fits: Callable[[Json], Any], what: str = "") -> Json:
        while message := self.next():
            if fits(message):
                return message
        assert self.process.stderr
        raise AssertionError(f"the bridge ended before {what or 'that'}: {self.process.stderr.read().decode()}")

    def asked(self, method: str = "session/request_permission") -> Json:
        """The next request of the agent with this method."""
        return self.until(lambda message: message.get("method") == method and "id" in message, method)

    def reply(self, id: int) -> Json:
        """The whole answer to a request of ours."""
        return self.until(lambda message: message.get("id") == id and "method" not in message, f"the answer to {id}")

    def call(self, method: str, params: Json) -> Json:
        answer = self.reply(self.begin(method, params))
        assert "result" in answer, answer
        result: Json = answer["result"]
        return result

    def refused(self, method: str, params: Json) -> Json:
        error: Json = self.reply(self.begin(method, params))["error"]
        return error

    def update(self, kind: str, fits: Callable[[Json], Any] = lambda update: True) -> Json:
        """The next update of this kind."""

        def is_it(message: Json) -> bool:
            found = _update(message)
            return found is not None and found["sessionUpdate"] == kind and bool(fits(found))

        found = _update(self.until(is_it, kind))
        assert found
        return found

    def told(self, kind: str, fits: Callable[[Json], Any] = lambda update: True) -> Json:
        """An update of this kind, whether it has been looked at already or is still to come."""
        known = [update for update in self.updates() if update["sessionUpdate"] == kind and fits(update)]
        return known[-1] if known else self.update(kind, fits)

    # ── sessions ──

    def new(self) -> str:
        opened = self.call("session/new", {"cwd": str(self.home.project), "mcpServers": []})
        return str(opened["sessionId"])

    def load(self, session_id: str) -> list[Json]:
        """The updates that came before the answer."""
        before = len(self.seen)
        self.call("session/load", {"sessionId": session_id, "cwd": str(self.home.project), "mcpServers": []})
        return [update for message in self.seen[before:] if (update := _update(message))]

    def prompt(self, session_id: str, text: str) -> int:
        return self.begin("session/prompt", {"sessionId": session_id, "prompt": [{"type": "text", "text": text}]})

    def updates(self) -> list[Json]:
        return [update for message in self.seen if (update := _update(message))]

    def said(self, kind: str = "agent_message_chunk") -> str:
        return text_of(self.updates(), kind)

    # ── leaving ──

    def leave(self) -> int:
        """Close stdin, and give the exit code."""
        assert self.process.stdin
        self.process.stdin.close()
        return self.process.wait(WAIT_S)

    def close(self) -> None:
        self.may_read.set()
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stderr):
            assert stream
            with suppress(BrokenPipeError):
                stream.close()
        while self._lines.get(timeout=WAIT_S):
            pass
        assert self.process.stdout
        self.process.stdout.close()


def _update(message: Json) -> Json | None:
    return message["params"]["update"] if message.get("method") == "session/update" else None


def text_of(updates: list[Json], kind: str = "agent_message_chunk") -> str:
    return "".join(
        u["content"]["text"] for u in updates if u["sessionUpdate"] == kind and u["content"]["type"] == "text"
    )
