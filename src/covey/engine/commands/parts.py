"""What the commands of one workspace share. Only the workspace and its commands see it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Concatenate, ParamSpec, TypeVar

from covey.engine.agent import Agent
from covey.engine.command_changes import CommandChanges
from covey.engine.lanes.lanes import Lanes
from covey.engine.recorder import Recorder
from covey.engine.session_book import SessionBook
from covey.engine.shared import Shared
from covey.engine.turns.parts import TurnParts
from covey.feed.feed import Feed
from covey.protocol.messages import Session
from covey.store.base import Store

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class WorkspaceParts:
    """The insides of a workspace."""

    id: str
    shared: Shared
    feed: Feed
    agent: Agent
    book: SessionBook
    recorder: Recorder
    turns: TurnParts
    lanes: Lanes
    view: Callable[[Session], Session]
    """A session with the facts of the moment."""
    changes: CommandChanges
    """Of those that commands make to files."""
    check_open: Callable[[], None]
    """Raises Conflict once the workspace is closing."""

    @property
    def store(self) -> Store:
        return self.shared.store

    async def read(self, call: Callable[Concatenate[str, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What a reading method of the store says about this workspace."""
        return await self.shared.journal.read(call, self.id, *args, **kwargs)
