"""Which events of a workspace are worth a notice, and what a notice says. The text of a run is left out by default."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from covey.config.schema import NotifyOn
from covey.protocol.events import Event, PermissionRequest, QuestionBatchRequest
from covey.protocol.runs import Run

TITLE_CHARS = 200
ERROR_CHARS = 500
TEXT_CHARS = 4_000
"""Of the text of a run: a notice is no transcript."""


@dataclass(frozen=True, slots=True)
class NoticeOrigin:
    """Where something happened."""

    workspace_id: str
    path: str
    title: str
    """Of the session; '' if it has none."""


class Notice(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is sent, as it is sent."""

    id: str
    """The same in every attempt to deliver it."""
    event: NotifyOn
    state: str
    """How the run ended; or what is asked for: `permission` or `question`."""
    at: float
    workspace_id: str
    path: str
    session_id: str
    run_id: str
    title: str = ""
    duration_s: float | None = None
    """Since the run was accepted. Only of a run that has ended, as are the next three."""
    folded_into: str | None = None
    error: str | None = None
    text: str | None = None
    """Only if the settings ask for it."""
    request_id: str | None = None
    """Of what is asked."""


def notice_of(event: Event, origin: NoticeOrigin, now: float) -> Notice | None:
    """What to say about an event; None: nothing. It has the final text of the run, which `without_text` removes."""
    match event.payload:
        case Run() as run if run.ended and not run.effective_options.delegate:
            return _ended(run, origin)
        case PermissionRequest() as request:
            return _asked("permission", request, origin, now)
        case QuestionBatchRequest() as batch:
            return _asked("question", batch, origin, now)
    return None


def without_text(notice: Notice) -> Notice:
    return msgspec.structs.replace(notice, text=None)


def one_line(text: str, limit: int) -> str:
    """The beginning of a text that a model may have written, without anything that could drive a terminal."""
    words = "".join(c if c.isprintable() else " " for c in text[: 2 * limit]).split()
    return _cut(" ".join(words), limit)


def _ended(run: Run, origin: NoticeOrigin) -> Notice:
    assert run.ended_at is not None
    return Notice(
        id=f"{origin.workspace_id}:{run.run_id}",
        event="ended",
        state=run.state,
        at=run.ended_at,
        workspace_id=origin.workspace_id,
        path=origin.path,
        session_id=run.session_id,
        run_id=run.run_id,
        title=one_line(origin.title, TITLE_CHARS),
        duration_s=max(0.0, round(run.ended_at - run.accepted_at, 3)),
        folded_into=run.folded_into,
        error=one_line(run.error, ERROR_CHARS) if run.error else None,
        text=_cut(run.text, TEXT_CHARS) if run.text else None,
    )


def _asked(kind: str, request: PermissionRequest | QuestionBatchRequest, origin: NoticeOrigin, now: float) -> Notice:
    return Notice(
        id=f"{origin.workspace_id}:{request.id}",
        event="asked",
        state=kind,
        at=now,
        workspace_id=origin.workspace_id,
        path=origin.path,
        session_id=request.session_id,
        run_id=request.run_id or "",
        title=one_line(origin.title, TITLE_CHARS),
        request_id=request.id,
    )


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
