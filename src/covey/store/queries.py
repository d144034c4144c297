"""Queries that are longer than a line, for the store on SQLite."""

from __future__ import annotations

from typing import Any

IS_PROMPT = (
    "role = 'user' AND NOT (run_id IS NULL AND json_extract(CAST(value AS TEXT), '$.parts[0].type') IS 'shell_command')"
)
"""As `Message.is_command` has it."""


def events(
    columns: str, workspace_id: str, after: int, upto: int, session_id: str, limit: int
) -> tuple[str, tuple[Any, ...]]:
    """A query for the next events of a log, and its values."""
    mine, values = (" AND session_id IN ('', ?)", (session_id,)) if session_id else ("", ())
    where = f"workspace_id = ? AND seq > ? AND seq <= ?{mine} ORDER BY seq LIMIT ?"
    return f"SELECT {columns} FROM events WHERE {where}", (workspace_id, after, upto, *values, limit)  # noqa: S608 ours
