"""Plays a recording to a view with another connection than the recorded one: cut, with a gap, or with late answers."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from covey.client.view.as_json import view_as_json
from covey.client.view.view import View
from covey.protocol.events import Gap, created, encode_event
from tests.vectors.plain_server import PlainServer
from tests.vectors.vector import Vector, decode_input

LOADED = ("sessions_loaded", "runs_loaded", "messages_loaded", "asks_loaded", "workspace_loaded")
LINK = ("connecting", "connected", "disconnected")


def state_of(view: View) -> dict[str, Any]:
    state: dict[str, Any] = json.loads(msgspec.json.encode(view_as_json(view)))
    return state


class Player:
    """The shell of a view in such a play. `late`: how many inputs an answer is on its way."""

    def __init__(self, vector: Vector, late: int = 0) -> None:
        self.view = View()
        self._inputs = vector.inputs
        self._server = PlainServer(vector.inputs)
        self._known = 0
        """How many inputs the server has taken."""
        self._late = late
        self._on_their_way: list[tuple[int, dict[str, Any]]] = []

    def play(self, first: int, end: int) -> None:
        """The inputs from one to another, as they were recorded, but for the answers to loads."""
        for index in range(first, end):
            self._deliver(index)
            if self._inputs[index]["input"] not in LOADED:
                self._feed(self._inputs[index], index)

    def finish(self) -> dict[str, Any]:
        self._deliver(None)
        return state_of(self.view)

    def cut(self, first: int, end: int, *, gap: bool) -> None:
        """The connection is lost before `first`, and made again before `end`: what happens meanwhile is replayed.

        With a gap it is not: then the server says so, and everything has to be loaded.
        """
        self._on_their_way.clear()
        self._feed({"input": "disconnected", "at": 1.0, "why": "cut"}, first)
        missed = [each for each in self._inputs[first:end] if each["input"] == "event"]
        for index in range(first, end):
            if self._inputs[index]["input"] not in (*LOADED, "event"):
                self._feed(self._inputs[index], index)
        self._feed({"input": "connected", "at": 1.0}, end)
        if gap:
            self._feed(self._gap(end), end)
        for each in () if gap else missed:
            if each["id"]:
                self._feed(each, end)
        for each in list(self._server.present()):
            self._feed(each, end)

    def _gap(self, end: int) -> dict[str, Any]:
        ids = [each["id"] for each in self._inputs[:end] if each.get("id")]
        event = created(Gap(reason="cut", resume_from=ids[-1] if ids else "0.0"))
        return {"input": "event", "id": "", "event": json.loads(encode_event(event))}

    def _feed(self, value: dict[str, Any], index: int) -> None:
        self._advance(index)
        fed = decode_input(value)
        assert fed is not None, value
        for command in self.view.apply(fed).commands:
            wire = msgspec.to_builtins(command)
            assert wire["command"] != "reconnect", "a hole, although nothing is missing"
            if wire["command"].startswith("load_"):
                self._on_their_way.append((index + self._late, self._server.answer(wire)))
        if not self._late:
            self._deliver(index)

    def _deliver(self, index: int | None) -> None:
        due = [answer for at, answer in self._on_their_way if index is None or at <= index]
        self._on_their_way = [each for each in self._on_their_way if each[1] not in due]
        for answer in due:
            fed = decode_input(answer)
            assert fed is not None
            self.view.apply(fed)

    def _advance(self, index: int) -> None:
        """The server has done all up to this input, and what the answers recorded after it show."""
        end = index + 1
        while end < len(self._inputs) and self._inputs[end]["input"] in LOADED:
            end += 1
        for value in self._inputs[self._known : end]:
            self._server.take(value)
        self._known = max(self._known, end)
