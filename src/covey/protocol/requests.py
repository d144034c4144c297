"""Request and response bodies, by route. The server validates with these and describes them in /openapi.json."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from covey.protocol.events import Presence
from covey.protocol.messages import Attachment, Message, Session, SessionMode, Wire
from covey.protocol.runs import Mode, RunOptions, SandboxMode
from covey.protocol.who import ClientKind

MAX_BODY_BYTES = 32 * 1024 * 1024

PermissionAction = Literal["allow", "allow_session", "allow_always", "allow_prefix", "deny"]
"""Once; for the session; always, by `PermissionRequest.rules`; always, by its `prefix_rules`; not."""
Rule = Annotated[str, msgspec.Meta(min_length=1, max_length=1_000)]
NotNegative = Annotated[float, msgspec.Meta(ge=0)]
Title = Annotated[str, msgspec.Meta(max_length=1_000)]
"""Sent with every event of its session, and shown on one line."""


class Health(Wire, frozen=True):
    status: str
    store: str = ""
    """That the store refuses to write at the moment, left out otherwise: runs under way wait for it."""


class Version(Wire, frozen=True):
    version: str
    commit: str
    build_id: str
    python_version: str
    platform: str
    page: str = ""
    """Which files the page in the browser consists of: a page that was loaded with others may want to be reloaded."""


class Ready(Wire, frozen=True, omit_defaults=False):
    """Only if it is: else the answer is an error that says why not."""

    ready: bool


class Control(Wire, frozen=True):
    command: str
    node: str = ""
    """Of a cluster: which one, by its name; '' is the node that is asked."""


class NodeView(Wire, frozen=True, omit_defaults=False):
    """One node of a cluster, as the store knows it."""

    name: str
    address: str
    state: Literal["ready", "draining", "gone"]
    workspaces: int
    """How many it owns."""
    lease_s: float
    """How long it may be silent from now on before others take its workspaces; 0 if it is gone."""
    version: int
    """Of the store's tables, as it knows them."""
    id: str
    """New with each start."""
    is_asked: bool = False
    """It is the node that gives this answer."""


class CreateWorkspace(Wire, frozen=True):
    """What is asked for with `data_dir` is refused unless it is the server's own: one server has one."""

    path: str
    client_id: str
    client_name: str = ""
    """What people see of the client, such as a user's name."""
    client_kind: ClientKind = "api"
    yolo: bool = False
    data_dir: str = ""
    env: dict[str, str] | list[str] | None = None


class ModelInfo(Wire, frozen=True):
    id: str
    name: str
    context_window: int
    default_max_tokens: int
    supports_attachments: bool = False
    """Whether it can be shown pictures."""
    can_reason: bool = False
    cost_per_1m_in: float = 0.0
    cost_per_1m_out: float = 0.0
    cost_per_1m_in_cached: float = 0.0
    cost_per_1m_out_cached: float = 0.0
    """Dollars; 0: nothing, or not known. As v1 has it, the third is for what is written to the provider's cache, and
    the fourth for what is read from it."""


class ProviderInfo(Wire, frozen=True):
    """A provider without its secrets."""

    id: str
    name: str
    type: str
    base_url: str
    models: tuple[ModelInfo, ...]
    key_source: str = ""
    """Where its key comes from, for people; empty: it has none."""
    key_problem: str = ""
    """Why its key could not be had, for people."""


class SelectedModel(Wire, frozen=True):
    model: str
    provider: str


def _no_options() -> dict[str, Any]:
    return {}


class Options(Wire, frozen=True):
    """What a v1 client has set is shown to it again: see `protocol/v1.py`."""

    data_directory: str
    tui: dict[str, Any] = msgspec.field(default_factory=_no_options)
    """Always written, also if it is empty: v1 clients count on it. So it has no default that could be left out."""
    disable_notifications: bool | None = None
    notifications: str | None = None


class ConfigView(Wire, frozen=True):
    """The configuration as clients may see it: no key, no token, no header."""

    models: dict[str, SelectedModel]
    providers: dict[str, ProviderInfo]
    options: Options
    recent_models: dict[str, tuple[SelectedModel, ...]] = {}
    """What a v1 client has noted about the models that were chosen last, by role."""
    model_problem: str = ""
    """Why the model that is configured cannot be asked, for people: also a mistake in the files. Empty if it can, or if
    none is configured."""


class WorkspaceView(Wire, frozen=True):
    """An open workspace."""

    id: str
    path: str
    yolo: bool
    data_dir: str
    version: str
    config: ConfigView
    warnings: tuple[str, ...] = ()
    """What of the configuration was not taken, for people."""
    clients: tuple[Presence, ...] = ()
    """Who is attached now."""


class CurrentSession(Wire, frozen=True):
    session_id: str


class CreateSession(Wire, frozen=True):
    title: Title = ""


class SummarizeSession(Wire, frozen=True):
    focus: Annotated[str, msgspec.Meta(max_length=4000)] = ""
    """What the summary has to keep above all."""


class UpdateSession(Wire, frozen=True):
    """Only the fields given are changed; the rest of a session belongs to the server."""

    title: Title | msgspec.UnsetType = msgspec.UNSET
    todos: tuple[dict[str, Any], ...] | msgspec.UnsetType | None = msgspec.UNSET
    model: str | msgspec.UnsetType | None = msgspec.UNSET
    """`provider/model` for this session from its next step on; null or '' for the configured one."""
    mode: SessionMode | msgspec.UnsetType | None = msgspec.UNSET
    """What is asked about from the next tool call on. Only for who may approve; null is `ask`."""
    archived: bool | msgspec.UnsetType = msgspec.UNSET
    """Put it aside to be kept, or take it back: see `Session.archived_at`."""


class PostPrompt(Wire, frozen=True):
    """A prompt for a session. With a `run_id` it is safe to post it again."""

    session_id: str = ""
    prompt: str = ""
    run_id: str = ""
    attachments: tuple[Attachment, ...] = ()
    mode: Mode | None = None
    model: str = ""
    plan: bool = False
    yolo: bool = False
    max_cost: NotNegative = 0.0
    max_steps: Annotated[int, msgspec.Meta(ge=0)] = 0
    sandbox: SandboxMode | None = None
    allow: Annotated[tuple[Rule, ...], msgspec.Meta(max_length=100)] = ()
    accept_edits: bool = False
    debug: bool = False
    unattended: bool = False
    """These ten: see `RunOptions`. Only who may approve can ask for what `answers_for_people`."""
    output_schema: dict[str, Any] | None = None
    """A JSON Schema that the answer has to fit: `run_complete` then has it as `output`."""
    cwd: Annotated[str, msgspec.Meta(max_length=4096)] = ""
    """See `RunOptions`. As long as a path can be."""

    @property
    def options(self) -> RunOptions:
        return RunOptions(
            model=self.model,
            plan=self.plan,
            yolo=self.yolo,
            max_cost=self.max_cost,
            max_steps=self.max_steps,
            sandbox=self.sandbox,
            allow=self.allow,
            accept_edits=self.accept_edits,
            debug=self.debug,
            unattended=self.unattended,
            output_schema=self.output_schema,
            cwd=self.cwd,
        )

    @property
    def answers_for_people(self) -> bool:
        """Whether some option says yes in advance to what somebody would be asked about."""
        return self.yolo or self.accept_edits or bool(self.allow) or self.sandbox in ("auto", "off")


class EditPrompt(Wire, frozen=True):
    """Changes of one queued prompt: its text, its place, whether it is parked. What is not given stays as it is."""

    prompt: str | None = None
    before: str = ""
    after: str = ""
    """The id of a queued run to stand before, or after."""
    first: bool = False
    park: bool | None = None
    """Pass it over while somebody edits it; false is the same as `unpark`."""
    unpark: bool = False


class AgentInfo(Wire, frozen=True):
    is_busy: bool
    is_ready: bool
    model: ModelInfo | None
    model_cfg: SelectedModel | None


class AgentSession(Session, frozen=True):
    """A session, as `GET W/agent/sessions/{sid}` shows it."""


class RunShell(Wire, frozen=True):
    """A person's own command."""

    command: str
    share: bool = False
    """The model sees it, with its output, with the next prompt."""
    term_width: int = 0
    """Columns that the output has, for programs that want to know; 0: not known."""
    cwd: Annotated[str, msgspec.Meta(max_length=4096)] = ""
    """The directory below the root of the workspace in which it is run; '': the root."""


class ShellResult(Wire, frozen=True):
    output: str
    """What it wrote to stdout and stderr; of very much, the beginning and the end."""
    exit_code: int


class Skip(Wire, frozen=True):
    skip: bool


class PermissionId(Wire, frozen=True):
    id: str


class Grant(Wire, frozen=True):
    permission: PermissionId
    action: PermissionAction
    reason: str = ""
    """With `deny`: passed on to the model."""
    network: bool = False
    """If it is allowed: the command has the network. Otherwise it has none, where the sandbox holds."""
    unsandboxed: bool = False
    """If it is allowed: the command runs without the sandbox."""
    unattended: bool = False
    """With `deny`: nobody could be asked, which is what the model reads then."""


class QuestionResponse(Wire, frozen=True):
    """The answer to one question: which of the fields counts depends on its type. `notes` may be added to any.

    A table of notes has them by the id of the choice that they are about, as v1 clients send them.
    """

    request_id: str
    selected_ids: tuple[str, ...] = ()
    fill_in_text: str = ""
    yes: bool | None = None
    notes: str | dict[str, str] = ""


class AnswerQuestions(Wire, frozen=True):
    """Without a `batch_request_id` the one batch that waits is meant, if there is just one."""

    responses: tuple[QuestionResponse, ...]
    batch_request_id: str = ""


class CancelQuestions(Wire, frozen=True):
    batch_request_id: str = ""


class Resolved(Wire, frozen=True):
    resolved: bool


class UndoTurns(Wire, frozen=True):
    """Take back the newest turn, or every turn from that of `run_id` on."""

    run_id: str = ""
    keep_files: bool = False
    """Only the messages go."""
    force_files: tuple[str, ...] = ()
    """Files that are restored although somebody else has changed them: their present content is lost."""
    dry_run: bool = False
    """Change nothing: say what would be done, and what stands in the way."""


class UndoneTurn(Wire, frozen=True):
    run_id: str
    prompt: str


class FileConflict(Wire, frozen=True):
    """A file that is not restored, and why."""

    path: str
    reason: str


class UndoReceipt(Wire, frozen=True):
    undone: tuple[UndoneTurn, ...]
    """In their order: a client may offer the first prompt again."""
    restored: tuple[str, ...]
    removed_messages: int
    removed: tuple[str, ...] = ()
    """Of those in `restored`: the files that the turns had made, and that are gone again."""
    untracked: bool = False
    """A call was cut off, or not all that a command changed is known: what else they changed stays."""
    skipped: tuple[FileConflict, ...] = ()
    """Files that stay as they are: a command changed them and they cannot be restored, or writing one failed."""
    conflicts: tuple[FileConflict, ...] = ()
    """With `dry_run`: what would be refused."""


class ExportedSession(Wire, frozen=True):
    """All of a session, as `export?format=json` gives it."""

    session: Session
    messages: tuple[Message, ...]


class ForkSession(Wire, frozen=True):
    message_id: str = ""
    """The last message to copy; '': all."""
    title: Title = ""
