"""A run as clients see it, and the one event that ends it."""

from __future__ import annotations

from typing import Any, Literal, Self

from msgspec import structs

from covey.protocol.messages import Wire

RunState = Literal["accepted", "queued", "active", "folded", "completed", "failed", "cancelled", "interrupted"]
Mode = Literal["fold", "own_turn", "interrupt"]
SandboxMode = Literal["auto", "required", "off"]
"""As much of the sandbox as the system can; all that matters of it, or the command is not run; none of it."""
CancelledBy = Literal[
    "session_cancel", "run_cancel", "queue_clear", "queue_remove", "interrupt", "session_delete", "shutdown"
]


class Usage(Wire, frozen=True, omit_defaults=False):
    """Tokens that one run used, and what they cost in dollars."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    cached_tokens: int = 0
    """Of the prompt tokens: read from the provider's cache."""

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            cost=self.cost + other.cost,
        )


class RunOptions(Wire, frozen=True):
    """What a prompt may ask for beside its text. What is not given is as the session or the configuration says."""

    model: str = ""
    """`provider/model`, for this run only."""
    plan: bool = False
    """Look, but change nothing."""
    yolo: bool = False
    """Ask nobody; deny rules hold all the same."""
    max_cost: float = 0.0
    """Dollars; 0: as configured."""
    max_steps: int = 0
    sandbox: SandboxMode | None = None
    """None: as configured."""
    allow: tuple[str, ...] = ()
    """Rules that allow something in this run. `deny` and `ask` rules of the configuration win over them."""
    accept_edits: bool = False
    """Edits in the workspace are not asked about, as in the mode of a session with that name."""
    output_schema: dict[str, Any] | None = None
    """A JSON Schema: the run ends with JSON that fits it, or fails."""
    debug: bool = False
    """What is sent to the model and what comes back is written to a file of the server (`paths.debug_file`)."""
    summarize: bool = False
    """Not a prompt: the session's conversation is replaced by a summary of it."""
    delegate: bool = False
    """A model wrote it, for a run that waits for its end."""
    agent: str = ""
    """The custom agent that works on it, for a run that waits for its end; '': the ordinary one."""
    writes_for: str = ""
    """Of a delegate that may change files and run commands: the run whose turn its changes count for."""
    unattended: bool = False
    """Whoever posted it can ask nobody, and denies what is asked: its model reads that before it tries."""
    cwd: str = ""
    """Where its author was: a directory of the workspace, from its root. Its model is told; `@path` is meant there."""

    @property
    def decides(self) -> Self:
        """Those that change what is asked for: not whether somebody is there, which says nothing of that."""
        return structs.replace(self, unattended=False)

    @property
    def are_own(self) -> bool:
        """The turn is another one than a prompt without options would get. Where somebody is belongs to their words."""
        return structs.replace(self.decides, cwd="") != RunOptions()

    @property
    def keep_others_out(self) -> bool:
        """A prompt that joined the turn would get what it never asked for. What is written down changes nothing."""
        return structs.replace(self, debug=False).are_own


class Run(Wire, frozen=True):
    """One accepted prompt. Times are unix seconds with fractions."""

    run_id: str
    session_id: str
    seq: int
    state: RunState
    mode: Mode
    prompt: str
    accepted_at: float
    started_at: float | None = None
    ended_at: float | None = None
    waiting_on: str | None = None
    last_progress_at: float | None = None
    message_id: str | None = None
    text: str | None = None
    error: str | None = None
    cancelled_by: CancelledBy | None = None
    folded_into: str | None = None
    options: RunOptions | None = None
    place: int | None = None
    """While it is queued: where it stands. The lowest place of a session is next; the numbers have no other meaning."""
    parked_by: str | None = None
    """Who edits it: while it is parked it is passed over."""
    posted_by: str | None = None
    cancelled_by_client: str | None = None
    """Who cancelled it, if a client did; `cancelled_by` says how."""
    output: Any = None
    """The JSON that it ended with, if it has an `output_schema` and completed."""
    at_bound: bool = False
    """It failed because it may not go on, and not because it could not: `error` names the bound."""

    @property
    def effective_options(self) -> RunOptions:
        """Those of the prompt, or the defaults."""
        return self.options or RunOptions()

    @property
    def ended(self) -> bool:
        return self.ended_at is not None

    @property
    def is_being_cancelled(self) -> bool:
        """A cancel covers it, and it has not ended yet."""
        return self.cancelled_by is not None and not self.ended

    def joins(self, active: Run) -> bool:
        """While it waits: it becomes part of this active run's turn at its next step, as the lane decides it (R7)."""
        lets_in = not active.effective_options.keep_others_out and not active.is_being_cancelled
        return self.mode == "fold" and not self.parked_by and lets_in


class RunComplete(Wire, frozen=True):
    """The terminal event: exactly one for each accepted run."""

    session_id: str
    run_id: str
    message_id: str
    text: str | None = None
    error: str | None = None
    cancelled: bool = False
    interrupted: bool = False
    folded_into: str | None = None
    usage: Usage | None = None
    output: Any = None
    """The JSON in `text`, which fits the `output_schema` of the prompt."""
    at_bound: bool = False
    """See `Run`."""

    @property
    def outcome(self) -> str:
        """How the run ended, in one word."""
        if self.cancelled:
            return "cancelled"
        if self.interrupted:
            return "interrupted"
        return "failed" if self.error else "completed"


class Covered(Wire, frozen=True):
    """A run that a cancel reached, and the state in which it found it."""

    run_id: str
    state_found: str


class CancelReceipt(Wire, frozen=True):
    """What a cancel did. Nothing covered: there was nothing open to cancel, or it was too late."""

    covered: tuple[Covered, ...]
    mark: int


class PromptReceipt(Wire, frozen=True):
    """The body of the 202."""

    run_id: str
    session_id: str
    seq: int
    state: RunState
