"""Extensions on the wire: their states, what somebody is asked to approve, and the events that v1 clients know."""

from __future__ import annotations

from typing import Any, Literal

from covey.protocol.messages import Wire

ExtensionKind = Literal["mcp", "lsp", "hook", "skill", "command", "agent"]
ExtensionState = Literal["off", "starting", "ready", "needs_login", "needs_approval", "failed", "resting"]
"""`resting`: not running because nobody has needed it, and started by the next who does."""


class ExtensionView(Wire, frozen=True):
    """One extension of a workspace."""

    kind: ExtensionKind
    name: str
    state: ExtensionState
    why: str | None = None
    """Why it is in this state, for people. Never a value of a variable or a header."""
    source: str | None = None
    """The file that names it."""
    tools: tuple[str, ...] = ()
    """What the model may call, as the server calls it."""
    withheld: tuple[str, ...] = ()
    """Tools that nobody has approved as they are now."""
    prompts: int = 0
    resources: int = 0
    left_out: tuple[str, ...] = ()
    """What of it cannot be used, and why."""
    pid: int | None = None
    memory_mb: float | None = None
    cpu_s: float | None = None
    """Of all its processes; None: it has none, or the system does not say."""
    log: str | None = None
    """The end of what it wrote to stderr: only where one extension is asked for."""


class OfferedTool(Wire, frozen=True):
    """A tool as its server describes it: the server's words, without characters that cannot be seen."""

    name: str
    description: str = ""
    schema: dict[str, Any] = {}
    annotations: dict[str, Any] = {}
    change: Literal["new", "changed", "same"] = "new"
    """Compared with what was approved before."""
    diff: str | None = None
    """What is different, for one that changed."""


class ApprovalRequest(Wire, frozen=True):
    """What would be executed or told to the model, and waits until somebody approves it. No run waits for it."""

    id: str
    """The digest of all that it shows: what is approved is this very content."""
    kind: ExtensionKind
    name: str
    source: str
    """The file that names it."""
    what: Literal["entry", "tools"] = "entry"
    """Whether it may be started at all, or whether its tools may be offered to the model as they are now."""
    command: str | None = None
    args: tuple[str, ...] = ()
    cwd: str | None = None
    variables: tuple[str, ...] = ()
    """The names of the variables that it gets, with the names of those that they come from."""
    url: str | None = None
    headers: tuple[str, ...] = ()
    """Names alone."""
    matcher: str | None = None
    """For a hook: when it is run."""
    text: str | None = None
    """For a skill, a command or an agent: what the model would read."""
    instructions: str | None = None
    """For an MCP server: what it tells the model about itself."""
    tools: tuple[OfferedTool, ...] = ()
    warnings: tuple[str, ...] = ()
    """What whoever decides should know."""


class ApprovalNotification(Wire, frozen=True):
    """An approval was answered, or is not asked for any more: neither approved nor refused."""

    approval_id: str
    approved: bool = False
    refused: bool = False
    answered_by: str | None = None


class AnswerApproval(Wire, frozen=True):
    id: str
    approve: bool


McpEventType = Literal["state_changed", "tools_list_changed", "prompts_list_changed", "resources_list_changed"]
V1State = Literal["disabled", "starting", "connected", "error", "needs auth"]
_V1: dict[ExtensionState, V1State] = {
    "off": "disabled",
    "starting": "starting",
    "ready": "connected",
    "resting": "connected",
    "needs_login": "needs auth",
    "needs_approval": "disabled",
    "failed": "error",
}


def v1_state(state: ExtensionState) -> V1State:
    """The nearest of the words that v1 clients know."""
    return _V1[state]


V1LspState = Literal[0, 1, 2, 3, 4, 5]
"""Unstarted, starting, ready, error, stopped, disabled: v1 clients know numbers for language servers."""
_V1_LSP: dict[ExtensionState, V1LspState] = {
    "off": 0,
    "starting": 1,
    "ready": 2,
    "failed": 3,
    "resting": 4,
    "needs_login": 5,
    "needs_approval": 5,
}


def v1_lsp_state(state: ExtensionState) -> V1LspState:
    """The nearest of the numbers that v1 clients know."""
    return _V1_LSP[state]


class McpEvent(Wire, frozen=True):
    """Something about an MCP server changed. What is there now, `GET W/extensions` says."""

    type: McpEventType
    name: str
    state: V1State
    error: str | None = None
    tool_count: int = 0
    prompt_count: int = 0
    resource_count: int = 0
    extension: ExtensionView | None = None


class LspEvent(Wire, frozen=True):
    """Something about a language server changed."""

    type: Literal["state_changed", "diagnostics_changed"]
    name: str
    state: V1LspState
    error: str | None = None
    diagnostic_count: int = 0
    extension: ExtensionView | None = None


class SkillsEvent(Wire, frozen=True):
    """Skills, commands or agents came, went or changed."""

    type: Literal["skills_changed"] = "skills_changed"
    names: tuple[str, ...] = ()
