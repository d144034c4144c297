"""What a session has cost, and how full its context is."""

from __future__ import annotations

from msgspec import Struct

from covey.protocol.messages import Session
from covey.protocol.requests import WorkspaceView


class Meters(Struct, frozen=True):
    prompt_tokens: int
    completion_tokens: int
    """Of the last step: together, what the context holds now."""
    context_window: int
    """Of the session's model; 0: not known."""
    cost: float
    """Dollars, of all its runs."""


def meters_of(session: Session, workspace: WorkspaceView | None) -> Meters:
    return Meters(session.prompt_tokens, session.completion_tokens, _context_window(session, workspace), session.cost)


def _context_window(session: Session, workspace: WorkspaceView | None) -> int:
    if workspace is None:
        return 0
    configured = workspace.config.models.get("large")
    choice = session.model or (f"{configured.provider}/{configured.model}" if configured else "")
    provider_id, _, model_id = choice.partition("/")
    provider = workspace.config.providers.get(provider_id)
    models = provider.models if provider else ()
    return next((model.context_window for model in models if model.id == model_id), 0)
