"""Loads that are under way, and what events have changed meanwhile.

An answer is as old as the moment in which the server read it, and events go on while it travels. Whatever an event has
touched since the load was asked for stays as the events have it: if the answer knows more of it, another event brings
that too. Everything else is as the answer says. So no event has to wait for an answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import assert_never

from covey.client.view.commands import (
    LoadAsks,
    LoadCommand,
    LoadMessages,
    LoadRuns,
    LoadSessions,
    LoadWorkspace,
)

LoadKey = tuple[type[LoadCommand], str]
"""What is loaded, and of which session: of each at most one load is under way."""


@dataclass(slots=True)
class Load:
    """One load under way."""

    command: LoadCommand
    touched: set[str] = field(default_factory=set)
    """The ids of what events have changed since it was asked for."""


class Loads:
    """At most one of each kind is under way: asking again makes the one before it void."""

    def __init__(self) -> None:
        self._count = 0
        self._open: dict[LoadKey, Load] = {}

    def __iter__(self) -> Iterator[LoadCommand]:
        return (load.command for load in self._open.values())

    def number(self) -> int:
        """For the next load."""
        self._count += 1
        return self._count

    def begin(self, command: LoadCommand) -> LoadCommand:
        self._open[_key(command)] = Load(command)
        return command

    def find(self, kind: type[LoadCommand], session_id: str = "") -> LoadCommand | None:
        load = self._open.get((kind, session_id))
        return load.command if load else None

    def is_loading(self, session_id: str) -> bool:
        """Whether the messages of the session are on their way: its end, not an older page."""
        command = self.find(LoadMessages, session_id)
        return isinstance(command, LoadMessages) and not command.before

    def touch(self, kind: type[LoadCommand], item_id: str, session_id: str = "") -> None:
        """An event changed this."""
        if self._open:
            for key in {(kind, ""), (kind, session_id)}:
                if load := self._open.get(key):
                    load.touched.add(item_id)

    def end(self, kind: type[LoadCommand], number: int) -> Load | None:
        """The load that this answer is for; None if nobody waits for it any more."""
        for key, load in self._open.items():
            if key[0] is kind and load.command.load == number:
                return self._open.pop(key)
        return None

    def drop_session(self, session_id: str) -> None:
        """Nobody looks at it any more."""
        for kind in (LoadMessages, LoadRuns):
            self._open.pop((kind, session_id), None)

    def again(self) -> list[LoadCommand]:
        """All that is under way, asked for once more under new numbers."""
        commands, self._open = list(self), {}
        return [self.begin(_renumbered(command, self.number())) for command in commands]


def _key(command: LoadCommand) -> LoadKey:
    return type(command), command.session_id if isinstance(command, LoadRuns | LoadMessages) else ""


def _renumbered(command: LoadCommand, number: int) -> LoadCommand:
    match command:
        case LoadSessions() | LoadAsks() | LoadWorkspace():
            return type(command)(number)
        case LoadRuns():
            return LoadRuns(number, command.session_id)
        case LoadMessages():
            return LoadMessages(number, command.session_id, command.before)
        case _:
            assert_never(command)
