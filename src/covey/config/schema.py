"""The configuration, as one checked value. Where it comes from is `load.py`."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from covey.config.extension_schema import (
    EXTENSION_SECTIONS,
    ExtensionSections,
    HookCommand,
    HookGroup,
    LspSettings,
    McpSettings,
)
from covey.config.face_settings import KeyNames, TuiSettings
from covey.config.setting_types import ConfigError, Count, Positive, Price, Seconds, Settings, Url
from covey.protocol.runs import SandboxMode

__all__ = [
    "EXTENSION_SECTIONS", "ConfigError", "Count", "ExtensionSections", "HookCommand", "HookGroup", "LspSettings",
    "McpSettings", "Price", "Settings", "Url",
]  # fmt: skip


ProviderId = Annotated[str, Meta(pattern=r"^[^/\s]+\Z", description="a name without slashes and spaces")]
"""No slash: in `provider/model` the first one ends the provider."""
ProjectPath = Annotated[
    str,
    Meta(
        pattern=r"^(/|(/(?!\.{1,2}(/|\Z))[^/]+)+)\Z",
        description='the full path of a directory, such as "/home/ann/birdhouse"',
    ),
]
"""In the one form that a resolved path has, so that it is found by comparing text."""

Command = Annotated[
    tuple[str, ...] | str, Meta(description='a command, such as ["pass", "show", "openai"]; no shell reads it')
]
AccountName = Annotated[
    str,
    Meta(
        pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]{0,63})?\Z",
        description="a name of letters, digits, dots, dashes and underscores, 64 at most",
    ),
]
"""It becomes a part of a name in the system's keyring, and an argument of the programs that keep it."""

WebhookUrl = Annotated[
    str,
    Meta(
        pattern=r"^(https?://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?([/?][!-~]*)?)?\Z",
        description='a URL such as "https://hooks.example/covey"',
    ),
]
"""Without a user or a password: nobody would send them."""
NotifyOn = Literal["ended", "asked"]

Effort = Literal["", "low", "medium", "high"]
ProviderType = Literal["openai", "anthropic", "google", "openai-compatible", "embedded", "scripted"]


class ModelSettings(Settings, frozen=True):
    id: str
    name: str = ""
    context_window: Count = 0
    """0: not known."""
    max_tokens: Count = 0
    """The longest answer to ask for; 0: leave it to the provider."""
    price_prompt: Price | None = None
    price_completion: Price | None = None
    price_cached: Price | None = None
    price_cache_write: Price | None = None
    """Dollars for a million tokens; not given: as the catalogue says, else nothing."""
    sees_images: bool | None = None
    """Not given: as the catalogue says, else no."""
    effort: Effort = ""
    """How long a model that can think does so; empty: as the provider likes."""
    edit_tool: Literal["", "edit", "apply_patch"] = ""
    """By which tool it changes files; empty: what its family is trained on."""


class ProviderSettings(Settings, frozen=True):
    type: ProviderType
    name: str = ""
    base_url: Url = ""
    api_key: str = ""
    """A secret: never shown, logged or sent anywhere but to this provider."""
    api_key_command: Command = ()
    """A program that prints the key. Only the user's own files may name one."""
    account: AccountName = ""
    """Which of the keys that `covey login` keeps for this provider; empty: the default one."""
    headers: dict[str, str] = {}
    models: tuple[ModelSettings, ...] = ()
    script: str = ""
    """Only for `scripted`: the file to replay, absolute once loaded; empty for the one that Covey carries."""
    api: Literal["", "responses", "chat"] = ""
    """Only for `openai`: which of its two APIs; empty: `responses`, or `chat` where base_url is another server's."""
    model_file: str = ""
    """Only for `embedded`: a GGUF file, absolute once loaded; empty for the small one that covey[local] brings."""
    idle_timeout_s: Seconds = 120.0
    """How long the model may be silent in the middle of an answer, or before it."""
    connect_timeout_s: Seconds = 10.0
    max_attempts: Positive = 5
    """How often a request is tried, also if its answer breaks off."""

    def __repr__(self) -> str:
        # Neither the key nor the URL, which may carry a password: a repr ends up in logs and tracebacks.
        return f"ProviderSettings(type={self.type!r}, models={[model.id for model in self.models]!r})"


class ModelChoice(Settings, frozen=True):
    """`provider/model` for each role."""

    large: str = ""
    small: str = ""
    fallback: tuple[str, ...] = ()
    """Asked in this order when the model that was meant cannot be reached."""
    aliases: dict[str, str] = {}
    """Other names for models: what agents of other programs ask for as `sonnet`, for instance."""


class AllowRule(Settings, frozen=True):
    """An allow rule that says more than what it is about."""

    rule: str
    network: bool = False
    """Its commands have the network."""
    sandbox: SandboxMode | None = None
    """For its commands; not given: as everywhere."""


class PermissionSettings(Settings, frozen=True):
    allow: tuple[str | AllowRule, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    sandbox: SandboxMode = "auto"

    @property
    def allowed(self) -> tuple[str, ...]:
        """The allow rules, without what else they say."""
        return tuple(entry if isinstance(entry, str) else entry.rule for entry in self.allow)

    def allowed_with(self, *, network: bool = False, sandbox: SandboxMode | None = None) -> tuple[str, ...]:
        """Those of them that give the network, or say this of the sandbox."""
        tables = (entry for entry in self.allow if isinstance(entry, AllowRule))
        return tuple(
            entry.rule for entry in tables if (network and entry.network) or (sandbox and entry.sandbox == sandbox)
        )


class LimitSettings(Settings, frozen=True):
    queue_per_session: Positive = 100
    """Prompts that may wait in one session; more are refused with 429."""
    cancel_grace_s: Seconds = 5.0
    """How long a cancelled turn may take to stop before it is abandoned, and how long last words may take."""
    steps_per_run: Positive = 200
    """Model calls in one turn: a run that needs more is going in circles."""
    events_kept: Positive = 100_000
    """Durable events kept for each workspace: an older `Last-Event-ID` gets a `gap`."""
    cost_per_run: Price = 0.0
    cost_per_session: Price = 0.0
    """Dollars after which no further step is begun; 0: no bound."""
    summarize_at: Annotated[float, Meta(ge=0, le=1, description="a share, from 0 to 1")] = 0.8
    """The share of the context window after which a conversation is summarised; 0: never by itself."""


class RetentionSettings(Settings, frozen=True):
    """How long is kept what nobody has deleted. 0: for ever."""

    sessions_days: Count = 0
    """Sessions that did not change for so many days go."""
    sessions_kept: Count = 0
    """Of the sessions of a workspace so many stay, the newest."""
    sessions_mb: Count = 0
    """Of the sessions of a workspace the newest stay, as many as have so many megabytes together."""
    events_mb: Count = 0
    """Of the events of a workspace the newest stay, with so many megabytes together; see also `limits.events_kept`."""
    backups: Count = 3
    """Copies of the store that are kept, one for each day on which something was written; 0: none is made."""


class ContextSettings(Settings, frozen=True):
    files: tuple[str, ...] = ("AGENTS.md", "CLAUDE.md", "CRUSH.md", "GEMINI.md", "COVEY.md", ".cursorrules")
    """Read into every prompt where a project, or a directory above it, has them."""


class ToolSettings(Settings, frozen=True):
    disabled: tuple[str, ...] = ()
    """Tools that the model does not get."""
    pass_env: tuple[str, ...] = ()
    """Variables with a provider's key that commands get all the same."""
    language_servers: Literal["auto", "configured", "off"] = "auto"
    """Used in trusted directories: those of `[lsp]` and well-known ones on the PATH, the former alone, or none."""


class ServerSettings(Settings, frozen=True):
    allowed_hosts: tuple[str, ...] = ()  # names beside the loopback ones, of the server and as `https://NAME`
    web_port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 0  # of the page; 0: a free one, which is kept


class ClusterSettings(Settings, frozen=True):
    """This server as one node of several on one PostgreSQL. Only the user's own files set this: it names a database."""

    store: Annotated[
        str, Meta(pattern=r"^(postgres(ql)?://\S+)?\Z", description="a URL that begins with postgres://")
    ] = ""
    """The database that all nodes share. Empty: one server, with a store of its own."""
    node: Annotated[
        str, Meta(pattern=r"^([A-Za-z0-9][A-Za-z0-9_-]{0,62})?\Z", description="a name of letters, digits and dashes")
    ] = ""
    """The name of this node: another one for each, and the same after a restart."""
    advertise: Url = ""
    """Where the other nodes reach this one."""
    secret_file: str = ""
    """A file with the secret by which nodes know each other: the same for all."""
    lease_s: Annotated[float, Meta(gt=0, le=600, description="seconds, above 0 and at most 600")] = 9.0
    """How long a node counts as alive after it was last heard of."""
    drain_s: Annotated[float, Meta(ge=0, le=86_400, description="seconds, from 0 to 86400 (a day)")] = 600.0
    """How long a node that is asked to leave lets turns go on before it cancels them."""
    reach: tuple[str, ...] = ("any",)
    """Which places of files this node can work in; `any` are those that every node sees under the same path."""

    def __repr__(self) -> str:
        return f"ClusterSettings(node={self.node!r}, advertise={self.advertise!r})"


class NotifySettings(Settings, frozen=True):
    """Notices to a person who is not watching. Only the user's own files set this: it sends data and runs a program."""

    on: tuple[NotifyOn, ...] = ("ended", "asked")
    webhook: WebhookUrl = ""
    """Where notices are posted to. It may be a secret itself: never shown or logged."""
    webhook_secret: str = ""
    """What notices are signed with. Never shown, logged or sent."""
    include_text: bool = False
    """Webhooks get the final text of a run, too."""
    desktop: bool = False
    after_s: Annotated[float, Meta(ge=0, le=86_400, description="seconds, from 0 to 86400 (a day)")] = 30.0
    """Only runs that took as long are worth a notice on the desktop when they end."""

    @property
    def is_used(self) -> bool:
        return bool(self.webhook) or self.desktop

    def __repr__(self) -> str:
        return f"NotifySettings(on={self.on!r}, desktop={self.desktop!r})"


class SearchSettings(Settings, frozen=True):
    """The search engine of the tool web_search. Only the user's own files set this: it gets queries, and a key."""

    type: Literal["", "searxng", "brave", "tavily"] = ""
    """Empty: there is no such tool."""
    url: Url = ""
    """Not given: the provider's own address, and for searxng port 8888 of this machine."""
    api_key: str = ""
    """A secret: never shown, logged or sent anywhere but there."""
    results: Annotated[int, Meta(ge=1, le=20, description="a whole number, from 1 to 20")] = 8
    """At most, for one search."""

    def __repr__(self) -> str:
        return f"SearchSettings(type={self.type!r})"


class ProjectSettings(ExtensionSections, frozen=True):
    """What the user's own file says about one directory."""

    permissions: PermissionSettings = PermissionSettings()


class Sections(ExtensionSections, frozen=True):
    """What both the files and the configuration of a directory have."""

    models: ModelChoice = ModelChoice()
    providers: dict[ProviderId, ProviderSettings] = {}
    permissions: PermissionSettings = PermissionSettings()
    limits: LimitSettings = LimitSettings()
    retention: RetentionSettings = RetentionSettings()
    context: ContextSettings = ContextSettings()
    tools: ToolSettings = ToolSettings()
    server: ServerSettings = ServerSettings()
    cluster: ClusterSettings = ClusterSettings()
    notify: NotifySettings = NotifySettings()
    search: SearchSettings = SearchSettings()


class KeyState(msgspec.Struct, frozen=True):
    """What is known of a provider's key: never the key itself."""

    source: str
    """Where it comes from, for people; empty: there is none, which may be right."""
    problem: str = ""
    """Why it could not be had, for people; empty: it was."""


class Config(Sections, frozen=True):
    """What holds in one directory."""

    keys: dict[str, KeyState] = {}
    """By provider, once the keys have been looked for. No file can say this."""
    key_variables: tuple[str, ...] = ()
    """The environment variables that became a part of a key or a header."""
    at_hand: tuple[str, ...] = ()
    """Providers that no file names, whose key is there: used once somebody names them, and never by themselves."""
    of_project: ExtensionSections = ExtensionSections()
    """What the project's own file names, if its directory is trusted: as it is written, no variable is looked up."""
    mistake: str = ""
    """Why the files could not be read, and nothing is known of what they say: then there is no model, and no turn."""


class Files(Sections, frozen=True):
    """What files may say: `projects` becomes a part of the rest for the directory that is opened, and is gone then."""

    tui: TuiSettings = TuiSettings()
    keys: dict[str, KeyNames] = {}
    """These two become `FaceSettings`."""

    projects: dict[ProjectPath, ProjectSettings] = {}
