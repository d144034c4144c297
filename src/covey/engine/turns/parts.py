"""What the turns of a workspace share, and what they read about the run that they work for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from covey.config.schema import LimitSettings
from covey.engine.agent import Agent
from covey.engine.recorder import Recorder
from covey.engine.session_book import SessionBook
from covey.engine.turns.hooks import TurnHooks
from covey.engine.turns.model_trace import ModelTrace
from covey.engine.turns.reception import Reception
from covey.engine.turns.tool_calls import ToolCalls
from covey.engine.world import World
from covey.feed.feed import Feed
from covey.lifecycle.budget import Bounds
from covey.protocol.messages import Message
from covey.protocol.paths import debug_file
from covey.protocol.runs import Run


@dataclass(frozen=True, slots=True)
class TurnParts:
    """What the turns of a workspace share."""

    world: World
    recorder: Recorder
    sessions: SessionBook
    agent: Agent
    tool_calls: ToolCalls
    reception: Reception
    hooks: TurnHooks
    feed: Feed
    """For what running calls print, and for nothing that is written."""
    refresh: Callable[[int], Awaitable[Sequence[str]]]
    """Reads the configuration again if its files have changed, and gives what people should know about that. The
    number: 1 for a turn that begins with it, 0 for anybody else."""
    read_messages: Callable[[str, str], Awaitable[list[Message]]]
    """Those of a session that decide what a model sees from a summary on ('': from the beginning)."""
    read_run: Callable[[str, str], Awaitable[list[Message]]]
    """The messages of one run in a session."""
    data_dir: Path
    awaits_results: bool = False
    """Others share the store: no call is begun before the results of those before it are written, so that a node which
    has lost the workspace goes no further."""

    def trace_of(self, run: Run) -> ModelTrace | None:
        """Where a run keeps what it sends to its model, if it was posted so."""
        wanted = run.effective_options.debug
        return ModelTrace(debug_file(self.data_dir, run.run_id), self.world.now) if wanted else None

    @property
    def limits(self) -> LimitSettings:
        return self.agent.config.limits

    def model_of(self, run: Run) -> str:
        """The model that a run asks for, or its session does; '' for the configured one."""
        session = self.sessions.find(run.session_id)
        return run.effective_options.model or (session and session.model) or ""

    def bounds_of(self, run: Run) -> tuple[Bounds, float]:
        """What a run and its session may cost, and what the session had cost before."""
        session = self.sessions.find(run.session_id)
        of_session, own = self.limits.cost_per_session, run.effective_options.max_cost
        bounds = (
            Bounds(own, of_session, "max_cost of this run") if own else Bounds(self.limits.cost_per_run, of_session)
        )
        return bounds, session.cost if session else 0.0
