"""Shapes that only v1 clients know: their settings, and what they ask for that we do not have.

A v1 client may set how it looks, and nothing else: what it sends lands in front of every other client of the user.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from covey.protocol.extensions import V1LspState, V1State
from covey.protocol.messages import Wire
from covey.protocol.requests import Options, SelectedModel

ModelRole = Literal["large", "small"]
Word = Annotated[str, msgspec.Meta(max_length=100)]
RecentModels = Annotated[tuple[SelectedModel, ...], msgspec.Meta(max_length=50)]

PREFERENCES: dict[str, Any] = {
    "options.tui.compact_mode": bool,
    "options.tui.diff_mode": Literal["unified", "split"],
    "options.tui.transparent": bool,
    "options.tui.theme": Word,
    "options.disable_notifications": bool,
    "options.notifications": Word,
    "recent_models.large": RecentModels,
    "recent_models.small": RecentModels,
}
"""The settings that a client may change, and their types. All others are in files that only the user changes."""

TUI = "options.tui."
RECENT = "recent_models."
COMPACT_MODE = TUI + "compact_mode"
NO_KEYS = "keys and providers are not set by clients: use `covey login` on the server's machine, or config.toml"
SECRETS = ("providers.", "provider.")
"""Settings that may hold a key."""


def with_preferences(options: Options, values: dict[str, Any]) -> Options:
    """The options, with what was set."""
    tui = {key.removeprefix(TUI): value for key, value in values.items() if key.startswith(TUI)}
    return msgspec.structs.replace(
        options,
        tui=tui,
        disable_notifications=values.get("options.disable_notifications"),
        notifications=values.get("options.notifications"),
    )


def recent_models(values: dict[str, Any]) -> dict[str, tuple[SelectedModel, ...]]:
    """What was noted about the models that were chosen last, by role."""
    return {key.removeprefix(RECENT): value for key, value in values.items() if key.startswith(RECENT)}


class SetConfig(Wire, frozen=True):
    """`scope` is not looked at: how clients look is the user's, in every directory."""

    key: str
    value: Any = None


class RemoveConfig(Wire, frozen=True):
    key: str


class CompactMode(Wire, frozen=True):
    enabled: bool


class PreferModel(Wire, frozen=True):
    """Which model a workspace uses. What else a client says of the model (effort, temperature) is not looked at."""

    model: SelectedModel
    model_type: ModelRole = "large"


class ImportedToken(Wire, frozen=True, omit_defaults=False):
    token: None = None
    success: bool = False


class NeedsInit(Wire, frozen=True):
    needs_init: bool


class InitPrompt(Wire, frozen=True):
    prompt: str


class HistoryFile(Wire, frozen=True):
    """One version of a file that a session has changed."""

    id: str
    session_id: str
    path: str
    content: str
    version: int
    created_at: int
    updated_at: int


class SkillInfo(Wire, frozen=True, omit_defaults=False):
    id: str
    name: str
    description: str
    label: str
    source: str
    user_invocable: bool = True


class ReadSkill(Wire, frozen=True):
    skill_id: str = ""


class SkillAbout(Wire, frozen=True, omit_defaults=False):
    name: str
    description: str
    source: str
    builtin: bool = False


class SkillContent(Wire, frozen=True):
    content: bytes
    """Base64 on the wire."""
    result: SkillAbout


class McpState(Wire, frozen=True):
    name: str
    state: V1State
    error: str | None = None
    tool_count: int = 0
    prompt_count: int = 0
    resource_count: int = 0


class LspState(Wire, frozen=True):
    name: str
    state: V1LspState
    error: str | None = None
    diagnostic_count: int = 0


class LspPosition(Wire, frozen=True, omit_defaults=False):
    line: int
    character: int = 0


class LspRange(Wire, frozen=True, omit_defaults=False):
    start: LspPosition
    end: LspPosition


class LspDiagnostic(Wire, frozen=True):
    """Its range is the beginning of its line: which characters of it are meant is not kept."""

    range: LspRange
    severity: Literal[1, 2, 3]
    """Error, warning, information."""
    message: str
    source: str = ""
    code: str = ""


class StartLsp(Wire, frozen=True):
    path: str = ""
    """A file of the workspace: the servers for files like it are started."""


class V1PromptArgument(Wire, frozen=True):
    id: str
    title: str
    required: bool = False


class V1Prompt(Wire, frozen=True):
    """A prompt of an MCP server. `client_id` is the name of the server."""

    id: str
    title: str
    prompt_id: str
    client_id: str
    description: str = ""
    arguments: tuple[V1PromptArgument, ...] = ()


class GetPrompt(Wire, frozen=True):
    client_id: str
    prompt_id: str
    args: dict[str, str] | None = None


class McpPromptText(Wire, frozen=True):
    prompt: str


class ReadResource(Wire, frozen=True):
    name: str
    """Of the server."""
    uri: str


class McpName(Wire, frozen=True):
    name: str = ""
