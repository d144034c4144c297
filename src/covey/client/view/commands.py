"""What a view asks of the shell around it: to load something, to send something, or to connect again.

The shell carries each one out and feeds the answer back. If there is no answer, nothing is fed: whatever still matters
is asked for again after the next `Connected`.
"""

from __future__ import annotations

from msgspec import Struct


class LoadSessions(Struct, frozen=True, tag_field="command", tag="load_sessions"):
    """GET W/sessions?children=1&archived=1 → SessionsLoaded."""

    load: int


class LoadRuns(Struct, frozen=True, tag_field="command", tag="load_runs"):
    """GET W/runs → RunsLoaded: the newest of one session or, with '', the newest of all, and every open one."""

    load: int
    session_id: str = ""


class LoadMessages(Struct, frozen=True, tag_field="command", tag="load_messages"):
    """GET W/sessions/{sid}/messages → MessagesLoaded: the last ones or, with `before`, the page that ends there."""

    load: int
    session_id: str
    before: str = ""


class LoadAsks(Struct, frozen=True, tag_field="command", tag="load_asks"):
    """GET W/permissions, GET W/questions and GET W/approvals → AsksLoaded."""

    load: int


class LoadWorkspace(Struct, frozen=True, tag_field="command", tag="load_workspace"):
    """GET W → WorkspaceLoaded."""

    load: int


class SendPrompt(Struct, frozen=True, tag_field="command", tag="send_prompt"):
    """POST W/agent with the prompt of this run id, which is in the outbox → PromptAccepted or PromptRefused."""

    run_id: str


class SendCancel(Struct, frozen=True, tag_field="command", tag="send_cancel"):
    """POST S/cancel or, with a run id, POST W/runs/{run_id}/cancel → CancelAnswered."""

    session_id: str
    run_id: str = ""


class ShowSession(Struct, frozen=True, tag_field="command", tag="show_session"):
    """POST W/current-session: this client shows this session now. Needs no answer."""

    session_id: str


class Reconnect(Struct, frozen=True, tag_field="command", tag="reconnect"):
    """Open the event stream again from the last id: text is missing, and it brings messages in progress whole."""


LoadCommand = LoadSessions | LoadRuns | LoadMessages | LoadAsks | LoadWorkspace
ViewCommand = LoadCommand | SendPrompt | SendCancel | ShowSession | Reconnect
