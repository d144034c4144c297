"""What a program gets for a prompt."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import structs

from covey.client.denials import Denied, denied_calls
from covey.protocol.messages import Message
from covey.protocol.runs import RunComplete


class Answer(RunComplete, frozen=True):
    """The terminal event of a run, and what of the way there a program should know. Never on the wire."""

    denied: tuple[Denied, ...] = ()
    """What the run was not allowed to do. It may have completed all the same."""


def answer_of(terminal: RunComplete, messages: Iterable[Message]) -> Answer:
    """`messages`: all that there are of the run. One that was folded into another was answered in the turn of that."""
    return Answer(**structs.asdict(terminal), denied=denied_calls(messages, terminal.folded_into or terminal.run_id))
