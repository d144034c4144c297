"""A vector: what a view was fed with, what it asked for meanwhile, and the state in which that left it. As JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from covey.client.view.inputs import ConnectionFact, LoadAnswer, Received, SendAnswer, UserIntent, ViewInput
from covey.protocol.events import decode_event, encode_event

FOLDER = Path(__file__).parent / "recorded"


class Vector(msgspec.Struct, kw_only=True):
    """One file. `inputs` are as docs/VIEW_STATE.md describes them."""

    name: str
    about: str
    inputs: list[dict[str, Any]]
    commands: list[tuple[int, dict[str, Any]]]
    """What the view asked for, each with the index of the input that made it ask."""
    expected: dict[str, Any]

    def save(self) -> None:
        """One input on a line, so that a change of one is a change of one line."""
        values = msgspec.to_builtins(self)
        lines = [f"{json.dumps(key)}: {_lines(value)}" for key, value in values.items()]
        FOLDER.mkdir(exist_ok=True)
        (FOLDER / f"{self.name}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


def _lines(value: Any) -> str:
    def dumped(each: Any) -> str:
        return json.dumps(each, ensure_ascii=False)

    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(map(dumped, value)) + "\n]"
    if isinstance(value, dict):
        return "{\n" + ",\n".join(f"{dumped(key)}: {dumped(each)}" for key, each in value.items()) + "\n}"
    return dumped(value)


def vectors() -> list[Path]:
    return sorted(FOLDER.glob("*.json"))


def load_vector(path: Path) -> Vector:
    return msgspec.json.decode(path.read_bytes(), type=Vector)


def decode_input(value: dict[str, Any]) -> ViewInput | None:
    """None: an event that this version does not know."""
    if value["input"] != "event":
        fed: ViewInput = msgspec.convert(value, ConnectionFact | LoadAnswer | SendAnswer | UserIntent)
        return fed
    event = decode_event(json.dumps(value["event"]))
    return Received(event, value.get("id", "")) if event else None


def encode_input(fed: ViewInput) -> dict[str, Any]:
    if isinstance(fed, Received):
        return {"input": "event", "id": fed.id, "event": json.loads(encode_event(fed.event))}
    encoded: dict[str, Any] = msgspec.to_builtins(fed)
    return encoded
