"""Request and response bodies, by route. The server validates with these and describes them in /openapi.json."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from covey.protocol.messages import Attachment, Session, Wire
from covey.protocol.runs import Mode

MAX_BODY_BYTES = 32 * 1024 * 1024


class Health(Wire, frozen=True):
    status: str


class Version(Wire, frozen=True):
    version: str
    commit: str
    build_id: str
    python_version: str
    platform: str


class Control(Wire, frozen=True):
    command: str


class CreateWorkspace(Wire, frozen=True):
    path: str
    client_id: str
    yolo: bool = False
    data_dir: str | None = None
    env: dict[str, str] | list[str] | None = None


class ModelInfo(Wire, frozen=True):
    id: str
    name: str
    context_window: int
    default_max_tokens: int


class ProviderInfo(Wire, frozen=True):
    """A provider without its secrets."""

    id: str
    name: str
    type: str
    base_url: str
    models: tuple[ModelInfo, ...]


class SelectedModel(Wire, frozen=True):
    model: str
    provider: str


class Options(Wire, frozen=True):
    data_directory: str


class ConfigView(Wire, frozen=True):
    """The configuration as clients may see it: no key, no token, no header."""

    models: dict[str, SelectedModel]
    providers: dict[str, ProviderInfo]
    options: Options


class Workspace(Wire, frozen=True):
    id: str
    path: str
    yolo: bool
    data_dir: str
    version: str
    config: ConfigView


class CurrentSession(Wire, frozen=True):
    session_id: str


class CreateSession(Wire, frozen=True):
    title: str = ""


class UpdateSession(Wire, frozen=True):
    """Only the fields given are changed; the rest of a session belongs to the server."""

    title: str | msgspec.UnsetType = msgspec.UNSET
    todos: tuple[dict[str, Any], ...] | msgspec.UnsetType | None = msgspec.UNSET


class PostPrompt(Wire, frozen=True):
    session_id: str = ""
    prompt: str = ""
    run_id: str = ""
    attachments: tuple[Attachment, ...] = ()
    mode: Mode | None = None


class EditPrompt(Wire, frozen=True):
    prompt: str


class AgentInfo(Wire, frozen=True):
    is_busy: bool
    is_ready: bool
    model: ModelInfo | None
    model_cfg: SelectedModel | None


class AgentSession(Session, frozen=True):
    """A session, as `GET W/agent/sessions/{sid}` shows it."""


class Skip(Wire, frozen=True):
    skip: bool


class PermissionId(Wire, frozen=True):
    id: str


class Grant(Wire, frozen=True):
    permission: PermissionId
    action: Literal["allow", "allow_session", "deny"]


class Resolved(Wire, frozen=True):
    resolved: bool
