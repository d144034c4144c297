"""MCP servers that a client brings along for a session, such as an editor that has some of its own."""

from __future__ import annotations

from typing import Annotated

import msgspec

from covey.protocol.messages import Wire

MOST_PASSED = 20


class PassedServer(Wire, frozen=True):
    """A program that speaks MCP on stdin and stdout (`command`), or a server on HTTP (`url`): one of them."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=32)]
    """Letters, digits, dashes and underscores: it becomes a part of the names of tools."""
    command: str = ""
    """Its path."""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    """May hold secrets: never shown to anybody."""
    url: str = ""
    headers: dict[str, str] = {}
    """Sent to the origin of `url` alone. May hold secrets: never shown to anybody."""


class PassServers(Wire, frozen=True):
    """All that this client brings for the session, in place of those that were brought before; none: they end."""

    servers: Annotated[tuple[PassedServer, ...], msgspec.Meta(max_length=MOST_PASSED)] = ()


class PassedServers(Wire, frozen=True):
    """By name: those that are there now for the session, and those whose name another server of the workspace has."""

    taken: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
