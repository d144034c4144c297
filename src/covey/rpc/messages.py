"""Messages of JSON-RPC 2.0 as values, and their lines. What comes from the other side is untrusted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, assert_never

import msgspec

Id = str | int | None
Params = dict[str, Any]

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603


class RpcError(Exception):
    """An answer that says no: a code for the program, a sentence for people."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    def as_json(self) -> Params:
        fields: Params = {"code": self.code, "message": self.message}
        return fields if self.data is None else {**fields, "data": self.data}


@dataclass(frozen=True, slots=True)
class Request:
    id: Id
    method: str
    params: Params = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Notification:
    method: str
    params: Params = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RpcAnswer:
    id: Id
    result: Any = None
    error: RpcError | None = None


@dataclass(frozen=True, slots=True)
class NoMessage:
    """No message at all, or one that cannot be one: this is what is answered, unless nobody could make use of it."""

    id: Id
    error: RpcError


Incoming = Request | Notification | RpcAnswer | NoMessage


def decode(line: bytes) -> Incoming:
    """What a line says. Fields that are not known are passed over."""
    try:
        found = msgspec.json.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return NoMessage(None, RpcError(PARSE_ERROR, f"this line is no JSON: {error}"))
    return of_value(found)


def of_value(found: Any) -> Incoming:
    """A message from what its JSON says."""
    if not isinstance(found, dict):
        return NoMessage(None, RpcError(INVALID_REQUEST, "a message is an object; several at once are not taken"))
    id = found.get("id")
    if isinstance(id, bool) or not isinstance(id, str | int | None):
        return NoMessage(None, RpcError(INVALID_REQUEST, "an id is a string or a whole number"))
    method = found.get("method")
    if isinstance(method, str):
        params = found.get("params")
        if params is not None and not isinstance(params, dict):
            return NoMessage(id, RpcError(INVALID_PARAMS, f"the params of {method[:100]} are an object"))
        return Request(id, method, params or {}) if "id" in found else Notification(method, params or {})
    if "id" in found and ("result" in found or "error" in found):
        return RpcAnswer(id, found.get("result"), _error(found["error"]) if found.get("error") is not None else None)
    return NoMessage(id, RpcError(INVALID_REQUEST, "this is neither a request nor an answer"))


def _error(found: Any) -> RpcError:
    fields = found if isinstance(found, dict) else {}
    code = fields.get("code")
    return RpcError(code if isinstance(code, int) else INTERNAL_ERROR, str(fields.get("message", "")))


def encode(message: Request | Notification | RpcAnswer) -> bytes:
    """The line of a message, with its end."""
    return msgspec.json.encode(as_json(message)) + b"\n"


def as_json(message: Request | Notification | RpcAnswer) -> Params:
    match message:
        case Request(id, method, params):
            return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
        case Notification(method, params):
            return {"jsonrpc": "2.0", "method": method, "params": params}
        case RpcAnswer(id, result, error):
            said = {"result": result} if error is None else {"error": error.as_json()}
            return {"jsonrpc": "2.0", "id": id, **said}
        case _:
            assert_never(message)
