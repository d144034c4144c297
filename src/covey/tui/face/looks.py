"""What the face asks the view: each answer is made from it when it is needed, and kept nowhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from covey.client.view.meters import Meters, meters_of
from covey.client.view.records import OpenAsk, RunRecord, SessionRecord
from covey.client.view.view import View
from covey.protocol.messages import Message, Session, SessionMode, TextPart, ToolCallPart
from covey.protocol.runs import Run

MODES: tuple[SessionMode, ...] = ("ask", "plan", "accept_edits", "sandboxed")
MODE_WORDS = {
    "ask": "ask",
    "plan": "plan",
    "accept_edits": "accept edits",
    "sandboxed": "sandboxed",
}


def record(view: View) -> SessionRecord | None:
    return view.sessions.get(view.current) if view.current else None


def session(view: View) -> Session | None:
    found = record(view)
    return found.session if found else None


def active(view: View) -> RunRecord | None:
    """The run of the shown session that is under way."""
    found = record(view)
    return found.active if found else None


def is_busy(view: View) -> bool:
    found = record(view)
    return found is not None and found.is_busy


def can_be_steered(view: View) -> bool:
    found = record(view)
    return found is None or found.can_be_steered


def joins(view: View, run: Run) -> bool:
    """A prompt that waits becomes part of the turn under way."""
    found = record(view)
    return found is not None and found.joins(run)


def queue(view: View) -> list[Run]:
    found = record(view)
    return found.queue if found else []


def title(view: View) -> str:
    known = session(view)
    return (known.title or "untitled") if known else "new session"


def mode(view: View) -> SessionMode:
    known = session(view)
    return (known.mode or "ask") if known else "ask"


def model(view: View) -> str:
    """`provider/model` of the shown session, else the configured one; '' if there is none."""
    known = session(view)
    if known and known.model:
        return known.model
    configured = view.workspace.config.models.get("large") if view.workspace else None
    return f"{configured.provider}/{configured.model}" if configured else ""


def meters(view: View) -> Meters | None:
    known = session(view)
    return meters_of(known, view.workspace) if known else None


def context_share(view: View) -> float | None:
    """How full the context is, from 0 to 1; None: not known."""
    found = meters(view)
    if found is None or not found.context_window or not found.prompt_tokens + found.completion_tokens:
        return None
    return (found.prompt_tokens + found.completion_tokens) / found.context_window


def todos(view: View) -> Sequence[dict[str, Any]]:
    known = session(view)
    return (known.todos or ()) if known else ()


def asks_here(view: View) -> list[OpenAsk]:
    """Of the session that is shown and of the whole workspace, the oldest first; what a run waits for before others."""
    found = [ask for ask in view.asks.open.values() if ask.session_id in (view.current, "")]
    return sorted(found, key=lambda ask: ask.session_id == "")


def asks_elsewhere(view: View) -> list[OpenAsk]:
    return [ask for ask in view.asks.open.values() if ask.session_id not in (view.current, "")]


@dataclass(frozen=True, slots=True)
class Attendee:
    name: str
    kind: str
    is_you: bool
    is_here: bool
    """It shows this session."""
    is_yours: bool = False
    """Another client of one's own name: the same person, as far as names say. As everywhere, `you`."""


def present(view: View, client_id: str, me: str) -> list[Attendee]:
    """Who is attached, oneself first."""
    found = [
        Attendee(
            c.name or "somebody",
            c.kind or "",
            is_you=c.client_id == client_id,
            is_here=c.session_id == view.current,
            is_yours=c.client_id != client_id and bool(me) and c.name == me,
        )
        for c in view.clients.values()
    ]
    if not any(each.is_you for each in found):  # the server has not heard of this window yet
        found.append(Attendee("you", "tui", is_you=True, is_here=True))
    return sorted(found, key=lambda each: (not each.is_you, not each.is_yours, not each.is_here, each.name))


def listed(view: View) -> list[tuple[Session, SessionRecord]]:
    """Sessions as lists show them: the last changed first, without those of agents and those put aside."""
    shown = [(known, found) for known, found in view.sessions if not known.parent_session_id and not known.archived_at]
    return sorted(shown, key=lambda each: (each[0].updated_at, each[0].id), reverse=True)


def mark(view: View, known: Session, found: SessionRecord) -> str:
    """What is to be known of a session at a glance."""
    if view.asks.waits_in(known.id):
        return "?"
    if found.is_busy:
        return "●"
    if found.has_failed:
        return "✗"
    return "•" if found.is_unread else ""


def is_asking(view: View, run: Run) -> bool:
    """It waits for a person; an open ask says so before the run does."""
    if (run.waiting_on or "").partition(":")[0] in ("permission", "question"):
        return True
    return any(getattr(ask.request, "run_id", None) == run.run_id for ask in view.asks.open.values())


def is_speaking(view: View, run: Run) -> bool:
    """The model of an active run writes its answer, or a call, and does not only think."""
    messages = view.conversation.messages
    last = messages.begun(messages.last_id)  # a part that begins comes with the whole message
    if last is None or last.role != "assistant" or last.run_id != run.run_id or not last.parts:
        return False
    return isinstance(last.parts[-1], TextPart | ToolCallPart)


def prompts(view: View) -> list[Message]:
    """What people asked in the shown session, the oldest first, as far as it is loaded."""
    return [m for m in view.conversation.messages if m.role == "user" and m.run_id and not m.is_summary_message]
