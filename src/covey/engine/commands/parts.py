"""What the commands of one workspace share. Only the workspace and its commands see it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Concatenate, ParamSpec, TypeVar

from covey.config.schema import ConfigError
from covey.engine.admission import Admission
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
    admission: Admission

    @property
    def store(self) -> Store:
        return self.shared.store

    async def session(self, session_id: str) -> Session:
        """A session as it is now: read from the store, if nobody has asked for it yet. Raises NotFound.

        Those for which agents work in it come along: what is asked there is asked in their name.
        """
        missing = session_id
        while missing and missing not in self.book:
            row = await self.read(self.store.session, missing)
            if row is None or not self.book.take_in(row.session):
                break
            self.lanes.know(missing, row.mark)
            missing = row.session.parent_session_id
        return self.book.get(session_id)

    async def check_model(self, reference: str) -> None:
        """Raise ConfigError for a model that nobody knows: also not what the files say by now."""
        try:
            self.agent.choice(reference)
        except ConfigError:
            await self.turns.refresh(0)
            self.agent.choice(reference)

    async def read(self, call: Callable[Concatenate[str, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What a reading method of the store says about this workspace."""
        return await self.shared.journal.read(call, self.id, *args, **kwargs)
