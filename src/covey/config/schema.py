"""The configuration, as one checked value. Where it comes from is `load.py`."""

from __future__ import annotations

from typing import Literal

import msgspec

ProviderType = Literal["openai", "anthropic", "google", "openai-compatible", "embedded", "scripted"]


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all settings: a key that nobody reads is a mistake of the writer, so it is refused by name."""


class ModelSettings(Settings, frozen=True):
    id: str
    name: str = ""
    context_window: int = 0
    """0: not known."""
    max_tokens: int = 0
    """The longest answer to ask for; 0: leave it to the provider."""
    price_prompt: float = 0.0
    price_completion: float = 0.0
    """Dollars for a million tokens."""


class ProviderSettings(Settings, frozen=True):
    type: ProviderType
    name: str = ""
    base_url: str = ""
    api_key: str = ""
    """A secret: never shown, logged or sent anywhere but to this provider."""
    headers: dict[str, str] = {}
    models: tuple[ModelSettings, ...] = ()
    script: str = ""
    """Only for `scripted`: the file to replay; empty for the one that Covey carries."""
    idle_timeout_s: float = 120.0
    """How long the model may be silent in the middle of an answer, or before it."""
    connect_timeout_s: float = 10.0
    max_attempts: int = 5
    """How often a request is tried while nothing of its answer has arrived."""

    def __repr__(self) -> str:
        return f"ProviderSettings(type={self.type!r}, base_url={self.base_url!r})"


class ModelChoice(Settings, frozen=True):
    """`provider/model` for each role."""

    large: str = ""
    small: str = ""


class PermissionSettings(Settings, frozen=True):
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


class LimitSettings(Settings, frozen=True):
    queue_per_session: int = 100
    """Prompts that may wait in one session; more are refused with 429."""
    cancel_grace_s: float = 5.0
    """How long a cancelled turn may take to stop before it is abandoned, and how long last words may take."""
    steps_per_run: int = 200
    """Model calls in one turn: a run that needs more is going in circles."""
    events_kept: int = 100_000
    """Durable events kept for each workspace: an older `Last-Event-ID` gets a `gap`."""


class ServerSettings(Settings, frozen=True):
    allowed_hosts: tuple[str, ...] = ()
    """Names beside the loopback ones under which the server may be addressed."""


class Config(Settings, frozen=True):
    models: ModelChoice = ModelChoice()
    providers: dict[str, ProviderSettings] = {}
    permissions: PermissionSettings = PermissionSettings()
    limits: LimitSettings = LimitSettings()
    server: ServerSettings = ServerSettings()
