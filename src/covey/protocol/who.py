"""Who makes a request: what a client says of itself, and what it may do because of how it got in."""

from __future__ import annotations

from typing import Literal

from covey.protocol.messages import Wire

ClientKind = Literal["tui", "web", "run", "acp", "api"]
May = Literal["read", "prompt", "approve", "admin"]

EVERYTHING: tuple[May, ...] = ("read", "prompt", "approve", "admin")
"""The user: whoever can use the socket, or has the token."""
NOTHING_APPROVED: tuple[May, ...] = ("read", "prompt")
"""A process that one of our own tools started: it may not answer the questions that are asked about it."""

PAGE: tuple[May, ...] = ("read", "prompt", "approve")
"""A page in a browser, let in by a code: whoever uses it is the user, but it lies beside other pages."""

NAME_LENGTH = 60


class Who(Wire, frozen=True):
    """One client. Its name and kind are what it says: untrusted text, bounded, and never a reason to allow anything."""

    client_id: str = ""
    name: str = ""
    kind: ClientKind = "api"
    may: tuple[May, ...] = EVERYTHING

    @property
    def label(self) -> str | None:
        """What people see of it: its name, else its id; None if it said neither."""
        return self.name or self.client_id or None


NOBODY = Who()
"""A client that said nothing of itself."""


def bounded_name(name: str) -> str:
    """A name as it is kept and shown: one line, printable, not long."""
    line = " ".join(name.split())
    return "".join(character for character in line if character.isprintable())[:NAME_LENGTH]
