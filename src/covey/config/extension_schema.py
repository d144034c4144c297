"""What files may say about extensions: servers of tools and languages, and hooks. A project's need an approval."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from covey.config.setting_types import Seconds, Settings
from covey.protocol.hook_events import HookEvent, OnFailure

ServerName = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,31}\Z",
        description="a name of letters, digits, dashes and underscores, 32 at most",
    ),
]
"""It becomes a part of the names of tools, of which providers allow 64 characters."""


class McpSettings(Settings, frozen=True):
    """One MCP server: a program (`command`), or a URL."""

    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    """What its process gets beside a short list of variables. May hold secrets: never shown."""
    cwd: str = ""
    """Where it runs, seen from the workspace's directory; empty: there."""
    url: str = ""
    """Of a server that is reached by streamable HTTP."""
    headers: dict[str, str] = {}
    """May hold secrets: never shown, and sent to the origin of `url` alone."""
    client_id: str = ""
    """For a login by OAuth: the id under which Covey is registered there; empty: it registers itself."""
    client_secret: str = ""
    """What goes with it, where one was given. Never shown; `$NAME` is a variable."""
    login: Literal["browser", "client_credentials"] = "browser"
    """Who agrees to a login: somebody in a browser, or nobody, where Covey itself has an account there."""
    enabled: bool = True
    start: Literal["late", "early"] = "late"
    """With the first call, or in the background when the workspace is opened."""
    reads: tuple[str, ...] = ()
    """Tools that change nothing: they need no permission, and plans may use them."""
    disabled_tools: tuple[str, ...] = ()
    """Tools that the model does not get."""
    sandbox: bool = False
    """Its processes run in the sandbox of approved commands, with the network."""
    start_timeout_s: Seconds = 30.0
    idle_timeout_s: Seconds = 120.0
    """How long a call may be silent; progress counts."""
    call_timeout_s: Seconds = 600.0
    """How long a call may take at all."""

    def __repr__(self) -> str:
        return f"McpSettings(command={self.command!r})"  # neither variables nor headers


class LspSettings(Settings, frozen=True):
    """One language server."""

    command: str = ""
    args: tuple[str, ...] = ()
    suffixes: tuple[str, ...] = ()
    """Of the files that it is for: `.py`."""
    env: dict[str, str] = {}
    """What its process gets beside a short list of variables. May hold secrets: never shown."""
    options: dict[str, Any] = {}
    """What it is handed over at its start (`initializationOptions`)."""
    settings: dict[str, Any] = {}
    """What it may ask for, by section (`workspace/configuration`)."""
    enabled: bool = True
    """False: neither this one nor a well-known one of its name is used."""

    def __repr__(self) -> str:
        return f"LspSettings(command={self.command!r})"  # no variables


class HookCommand(Settings, frozen=True):
    """A program that is run at an event; what it is told and what it may answer is in docs/SKILLS_AND_HOOKS.md."""

    command: Annotated[str, Meta(min_length=1, description="a command for a shell, or with `args` a program")]
    args: tuple[str, ...] = ()
    """With these no shell reads it."""
    type: Literal["command"] = "command"
    timeout: Annotated[float, Meta(gt=0, le=600, description="seconds, above 0 and at most 600")] = 30.0
    on_failure: OnFailure = "ask"
    """What holds for a call or a prompt if it fails: somebody is asked, it is denied, or nothing."""
    env: dict[str, str] = {}
    """What its process gets beside a short list of variables. May hold secrets: never shown."""
    enabled: bool = True

    def __repr__(self) -> str:
        return f"HookCommand(command={self.command!r})"


class HookGroup(Settings, frozen=True):
    """Hooks for the same tools."""

    matcher: str = ""
    """Names of tools, `Bash|Edit`, or an expression; empty: all."""
    hooks: tuple[HookCommand, ...] = ()


class ExtensionSections(Settings, frozen=True):
    """What names programs that are started, or texts that the model reads: each kind is a section."""

    mcp: dict[ServerName, McpSettings] = {}
    lsp: dict[ServerName, LspSettings] = {}
    hooks: dict[HookEvent, tuple[HookGroup, ...]] = {}


EXTENSION_SECTIONS = ExtensionSections.__struct_fields__
"""Of a project's file they are kept apart: its entries never change the user's own, and each needs an approval."""
