"""What a server would say at each point of a recording: events and answers, put together without Covey's own fold.

It stands in for the server when a recording is played with its connection cut, or its answers late.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

from tests.support.stream import _GROWS

ENDED = ("completed", "failed", "cancelled", "interrupted")


class PlainServer:
    """Values as they are on the wire, by their ids."""

    def __init__(self, inputs: list[dict[str, Any]]) -> None:
        self._made = _first_sessions(inputs)
        self.sessions: dict[str, Any] = {}
        self.runs: dict[str, Any] = {}
        self.messages: dict[str, Any] = {}
        self.asks: dict[str, tuple[str, Any]] = {}
        self.outputs: dict[str, Any] = {}
        self.clients: dict[str, Any] = {}
        self.workspace: Any = None

    def take(self, fed: dict[str, Any]) -> None:
        """One input of a recording."""
        match fed["input"]:
            case "event":
                self._event(fed["event"]["type"], fed["event"]["payload"])
            case "session_opened" if fed["session_id"] in self._made:  # by whoever opens it: it has no event yet
                self.sessions.setdefault(fed["session_id"], self._made[fed["session_id"]])
            case "sessions_loaded":
                self.sessions = {each["id"]: each for each in fed["sessions"]}
            case "runs_loaded":
                self.runs |= {each["run_id"]: each for each in fed["runs"]}
            case "messages_loaded":
                self.messages |= {each["id"]: copy.deepcopy(each) for each in fed["messages"]}
            case "asks_loaded":
                permissions = [("permission_request", each) for each in fed.get("permissions", ())]
                questions = [("question_batch_request", each) for each in fed.get("questions", ())]
                self.asks = {each["id"]: (kind, each) for kind, each in (*permissions, *questions)}
            case "workspace_loaded":
                self.workspace = fed["workspace"]

    def _event(self, kind: str, inner: dict[str, Any]) -> None:
        value = inner["payload"]
        table: dict[str, Any]
        match kind:
            case "session" | "message":
                table = self.sessions if kind == "session" else self.messages
                if inner["type"] == "deleted":
                    table.pop(value["id"], None)
                else:
                    table[value["id"]] = copy.deepcopy(value)
                self.outputs.pop(value["id"], None)  # a person's own command, which has ended
                for part in value.get("parts", ()):
                    if part["type"] == "tool_result":
                        self.outputs.pop(part["data"]["tool_call_id"], None)
            case "run":
                self.runs[value["run_id"]] = value
            case "run_complete":
                of_run = {key for key, (_, each) in self.asks.items() if each.get("run_id") == value["run_id"]}
                self.asks = {key: each for key, each in self.asks.items() if key not in of_run}
            case "permission_request" | "question_batch_request":
                self.asks[value["id"]] = (kind, value)
            case "permission_notification" | "question_batch_notification":
                self.asks.pop(value.get("permission_id") or value.get("batch_id"), None)
            case "presence" if value["attached"]:
                self.clients[value["client_id"]] = value
            case "presence":
                self.clients.pop(value["client_id"], None)
            case "message_delta":
                self._grow(value)
            case "tool_output":
                self._print(value)
            case "config_changed" if self.workspace and "skip_permissions" in value:
                self.workspace = self.workspace | {"yolo": value["skip_permissions"]}

    def _grow(self, delta: Any) -> None:
        parts = self.messages.get(delta["message_id"], {"parts": []})["parts"]
        if delta["part"] < len(parts):
            part = parts[delta["part"]]
            name = _GROWS[part["type"]]
            part["data"][name] = part["data"][name][: delta["offset"]] + delta["delta"]

    def _print(self, delta: Any) -> None:
        known = self.outputs.get(delta["tool_call_id"])
        data = delta["delta"].encode()
        if known and known["offset"] <= delta["offset"] <= known["offset"] + len(known["delta"].encode()):
            data = known["delta"].encode()[: delta["offset"] - known["offset"]] + data
            delta = delta | {"offset": known["offset"]}
        self.outputs[delta["tool_call_id"]] = delta | {"delta": data.decode()}

    def present(self) -> Iterator[dict[str, Any]]:
        """What a client gets that attaches now, after the events that it has missed."""
        for message in self.messages.values():
            is_finished = message["parts"] and message["parts"][-1]["type"] == "finish"
            if message["role"] == "assistant" and not is_finished and message["session_id"] in self.sessions:
                yield _event("message", "updated", message)
        for delta in self.outputs.values():
            yield _event("tool_output", "updated", delta)
        for run in self.runs.values():
            if run["state"] == "active" and run.get("waiting_on") and run["session_id"] in self.sessions:
                yield _event("run", "updated", run)
        for client in self.clients.values():
            yield _event("presence", "updated", client)
        for kind, request in self.asks.values():
            yield _event(kind, "created", request)

    def answer(self, command: dict[str, Any]) -> dict[str, Any]:
        """To a load."""
        session_id, load = command.get("session_id", ""), {"load": command["load"]}
        match command["command"]:
            case "load_sessions":
                return {"input": "sessions_loaded", **load, "sessions": list(self.sessions.values())}
            case "load_runs":
                runs = [run for run in self.runs.values() if session_id in ("", run["session_id"])]
                there = [run for run in runs if run["session_id"] in self.sessions]
                return {"input": "runs_loaded", **load, "runs": there}
            case "load_messages":
                messages = [each for each in self.messages.values() if each["session_id"] == session_id]
                return {"input": "messages_loaded", **load, "messages": copy.deepcopy(messages)}
            case "load_asks":
                of_kind = {kind: [each for k, each in self.asks.values() if k == kind] for kind in _ASKS}
                lists = {name: of_kind[kind] for kind, name in _ASKS.items()}
                return {"input": "asks_loaded", **load, **lists}
        return {"input": "workspace_loaded", **load, "workspace": self.workspace}


def _first_sessions(inputs: list[dict[str, Any]]) -> dict[str, Any]:
    """Each session as it was made."""
    events = [each["event"] for each in inputs if each["input"] == "event" and each["event"]["type"] == "session"]
    values = [event["payload"]["payload"] for event in reversed(events)]
    return {value["id"]: value for value in values}


_ASKS = {"permission_request": "permissions", "question_batch_request": "questions"}


def _event(kind: str, change: str, value: Any) -> dict[str, Any]:
    wire = {"type": kind, "payload": {"type": change, "payload": value}}
    return {"input": "event", "id": "", "event": json.loads(json.dumps(wire))}
