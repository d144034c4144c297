"""How far a command gets once it may run: what an answer, a rule or a mode gives, and what a command asks for."""

from __future__ import annotations

from enum import IntEnum
from typing import Literal


class Reach(IntEnum):
    """In order: each has what the ones before it have."""

    WORKSPACE = 0
    """It works in the sandbox: it changes the workspace, and has no network."""
    NETWORK = 1
    """The same, with the network."""
    EVERYTHING = 2
    """Without the sandbox: whatever the user may do."""

    @property
    def wish(self) -> Literal["", "network", "everything"]:
        """What a command that must get so far asks for, in one word; '': nothing."""
        return _WISHES[self]


_WISHES: dict[Reach, Literal["", "network", "everything"]] = {
    Reach.WORKSPACE: "",
    Reach.NETWORK: "network",
    Reach.EVERYTHING: "everything",
}


def reach_of(*, network: bool, unsandboxed: bool) -> Reach:
    """As it is said on the wire, in rules and in parameters of a tool."""
    if unsandboxed:
        return Reach.EVERYTHING
    return Reach.NETWORK if network else Reach.WORKSPACE
