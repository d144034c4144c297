"""The official schema of ACP as a judge of every message that crosses the pipe, in both directions."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

SCHEMA = json.loads((Path(__file__).parent / "schema" / "schema.json").read_text())
DEFINITIONS: dict[str, Any] = SCHEMA["$defs"]


@cache
def _by_method() -> dict[tuple[str, str], str]:
    """(method, request or response) → the definition of its params or its result."""
    found: dict[tuple[str, str], str] = {}
    for name, definition in DEFINITIONS.items():
        if method := definition.get("x-method"):
            found[method, "response" if name.endswith("Response") else "request"] = name
    return found


@cache
def _validator(name: str) -> Draft202012Validator:
    return Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": DEFINITIONS})


class Judge:
    """Remembers which method each request had, so that its answer can be judged too."""

    def __init__(self) -> None:
        self._asked: dict[Any, str] = {}
        self.seen: set[str] = set()
        """What was judged: definitions, and kinds of updates."""

    def judge(self, message: dict[str, Any], answers: Judge) -> None:
        """`answers`: the judge of the other direction, which knows what this side was asked."""
        assert message["jsonrpc"] == "2.0"
        if "method" in message:
            if "id" in message:
                self._asked[message["id"]] = message["method"]
            self._check(message["method"], "request", message.get("params", {}))
        elif "result" in message:
            self._check(answers._asked.pop(message["id"]), "response", message["result"])
        else:
            assert isinstance(message["error"]["code"], int) and message["error"]["message"]

    def _check(self, method: str, side: str, value: Any) -> None:
        name = _by_method()[method, side]
        problems = [f"{problem.json_path}: {problem.message[:300]}" for problem in _validator(name).iter_errors(value)]
        assert not problems, (method, problems, json.dumps(value)[:2000])
        self.seen.add(name)
        if name == "SessionNotification":
            self.seen.add(value["update"]["sessionUpdate"])
