"""Where each route of the protocol is, as the target of a request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode


def target(path: str, params: Mapping[str, Any]) -> str:
    given = {name: value for name, value in params.items() if value is not None and (value != "" or name == "before")}
    query = urlencode(given)
    return f"{path}?{query}" if query else path


def workspace_path(workspace_id: str) -> str:
    return f"/v1/workspaces/{quoted(workspace_id)}"


def session_path(workspace_id: str, session_id: str) -> str:
    return f"{workspace_path(workspace_id)}/sessions/{quoted(session_id)}"


def lane_path(workspace_id: str, session_id: str) -> str:
    return f"{workspace_path(workspace_id)}/agent/sessions/{quoted(session_id)}"


def quoted(text: str) -> str:
    """An id as one piece of a path: ids may come from a command line, so they may hold anything."""
    return quote(text, safe="") or "-"
