"""Names and numbers of the protocol, and the errors of a conversation with a server."""

from __future__ import annotations

from typing import Any, Literal

Era = Literal["modern", "legacy"]
"""Modern: no handshake, each request says its version. Legacy: `initialize` first."""
Message = dict[str, Any]
"""One JSON-RPC message."""

MODERN = "2026-07-28"
LEGACY = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""The newest first: the first one is asked for."""

META = "io.modelcontextprotocol/"
"""Begins the keys of `_meta` that the protocol itself uses."""

SKILLS = "io.modelcontextprotocol/skills"
"""The extension by which a server offers skills."""

UNSUPPORTED_VERSION = -32022
MODERN_CODES = frozenset({-32020, -32021, UNSUPPORTED_VERSION})
"""Errors that only a modern server has."""
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602

LINE_LIMIT = 8 * 1024 * 1024
"""Bytes of one message. A server that sends more is ended: nobody could use it."""
PAGES_LIMIT = 20
ITEMS_LIMIT = 500
"""Of one list."""
ROUNDS_LIMIT = 10
"""How often one call may ask for further input."""


class McpError(Exception):
    """What went wrong between us and a server, for people and for the model."""


class ServerRefused(McpError):
    """The server answered with an error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message or f"error {code}")
        self.code = code
        self.data = data


class ConnectionEnded(McpError):
    """The server is gone, or broke a bound and was ended."""


class TimedOut(McpError):
    """The server took longer than a bound allows. The text names it."""


class LoginNeeded(McpError):
    """The server wants somebody to log in. `challenge` is what it said about how."""

    def __init__(self, message: str, challenge: str = "") -> None:
        super().__init__(message)
        self.challenge = challenge
