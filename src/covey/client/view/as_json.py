"""A view as JSON: what docs/VIEW_STATE.md describes, and by which two implementations are compared.

For tests and for looking at, not for drawing: it costs as much as everything that is shown.
"""

from __future__ import annotations

from typing import Any

from msgspec import to_builtins

from covey.client.view.commands import LoadCommand, LoadMessages, LoadRuns
from covey.client.view.meters import meters_of
from covey.client.view.records import RunRecord, SessionRecord
from covey.client.view.view import View
from covey.protocol.messages import Session


def view_as_json(view: View) -> dict[str, Any]:
    """All of it, in lists whose order is the one on the screen."""
    shown = view.sessions.get(view.current)
    session = shown.session if shown else None
    return {
        "link": to_builtins(view.link),
        "loading": sorted(_name(command) for command in view.loads),
        "skips_permissions": view.skips_permissions,
        "sessions": _sessions(view),
        "current": view.current,
        "messages": [to_builtins(message) for message in view.conversation.messages],
        "has_older": view.conversation.has_older,
        "runs": [_run(record) for record in _in_order(shown)],
        "queue": [run.run_id for run in shown.queue] if shown else [],
        "todos": list(session.todos or ()) if session else [],
        "meters": to_builtins(meters_of(session, view.workspace)) if session else None,
        "asks": [
            {"kind": ask.kind, "request": to_builtins(ask.request), "is_being_answered": ask.is_being_answered}
            for ask in view.asks.open.values()
        ],
        "closed_asks": [
            {"id": closed.request.id, "outcome": closed.outcome, "by": closed.by}
            for closed in view.asks.closed.values()
        ],
        "outputs": [
            {"tool_call_id": each.tool_call_id, "start": each.start, "end": each.end, "text": each.text}
            for each in view.conversation.outputs.values()
        ],
        **_sent(view),
        "clients": [to_builtins(client) for client in view.clients.values()],
    }


def _sent(view: View) -> dict[str, Any]:
    return {
        "outbox": [
            {"run_id": run_id, "session_id": sent.prompt.session_id, "prompt": sent.prompt.prompt}
            | {"given_at": sent.given_at, "state": sent.state, "error": sent.error}
            for run_id, sent in view.outbox.prompts.items()
        ],
        "cancels": [
            {"session_id": cancel.session_id, "run_id": cancel.run_id, "asked_at": cancel.asked_at}
            | {"covered": None if cancel.covered is None else list(cancel.covered)}
            for cancel in view.outbox.cancels.values()
        ],
    }


def _sessions(view: View) -> list[dict[str, Any]]:
    """The newest first."""
    known = sorted(view.sessions, key=lambda each: (each[0].created_at, each[0].id), reverse=True)
    return [_session(session, record, view) for session, record in known]


_OF_SESSION = (
    *("id", "title", "parent_session_id", "forked_from", "model", "mode", "summary_message_id"),
    *("message_count", "cost", "created_at", "archived_at"),
)


def _session(session: Session, record: SessionRecord, view: View) -> dict[str, Any]:
    return {name: getattr(session, name) for name in _OF_SESSION} | {
        "is_busy": record.is_busy,
        "is_unread": record.is_unread,
        "has_failed": record.has_failed,
        "waits_for_you": view.asks.waits_in(session.id),
    }


def _in_order(shown: SessionRecord | None) -> list[RunRecord]:
    return sorted(shown.runs.values(), key=lambda record: record.run.seq) if shown else []


def _run(record: RunRecord) -> dict[str, Any]:
    retry = record.retry and {"attempt": record.retry.attempt, "retry_at": record.retry.retry_at}
    return {"run": to_builtins(record.run), "retry": retry, "key_refused": record.key_refused}


def _name(command: LoadCommand) -> str:
    kind = type(command).__struct_config__.tag
    of_session = command.session_id if isinstance(command, LoadRuns | LoadMessages) else ""
    return f"{kind} {of_session}".strip()
