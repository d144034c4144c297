"""What stands in a transcript, as values: a kind for each thing that looks different. They hold facts, and no rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, assert_never

from covey.lines.line import Style
from covey.lines.pictures import PictureSource
from covey.protocol.messages import ShellCommand, ToolCall, ToolResult

SendingState = Literal["said", "sending", "not_sent", "refused"]
CallState = Literal["written", "waits", "asked", "running", "ended", "left"]
"""`written`: the model is not done with it · `asked`: a person must answer first · `left`: its run ended before it."""


OWN_LINES, OWN_CHARACTERS = 40, 4000
"""What a command of one's own printed is shown in full up to about a screen; of more, the end."""


@dataclass(frozen=True, slots=True)
class PromptItem:
    key: str
    text: str
    who: str = ""
    at: float = 0.0
    files: tuple[str, ...] = ()
    state: SendingState = "said"
    error: str = ""
    """Why the server refused it."""
    pictures: tuple[PictureSource, ...] = ()


@dataclass(frozen=True, slots=True)
class AnswerItem:
    key: str
    text: str
    is_growing: bool = False


@dataclass(frozen=True, slots=True)
class ThoughtItem:
    key: str
    text: str
    seconds: int | None = None
    is_growing: bool = False


@dataclass(frozen=True, slots=True)
class CallItem:
    key: str
    call: ToolCall
    state: CallState
    result: ToolResult | None = None
    seconds: float | None = None
    """How long it runs, or ran, as seen from here."""
    tail: tuple[str, ...] = ()
    """The last lines that it has printed, while it runs or as a job."""
    printed: str = ""
    """All that is known of it, where the item is open and there is no result yet."""


@dataclass(frozen=True, slots=True)
class ShellItem:
    """What a person ran beside the conversation."""

    key: str
    command: ShellCommand
    at: float = 0.0

    @property
    def is_short(self) -> bool:
        """All that it printed is shown at first: whoever ran it wants to look at that."""
        output = self.command.output
        return len(output) <= OWN_CHARACTERS and output.strip().count("\n") < OWN_LINES


@dataclass(frozen=True, slots=True)
class SummaryItem:
    key: str
    text: str
    is_growing: bool = False


@dataclass(frozen=True, slots=True)
class NoteItem:
    """A sentence of ours: how a run ended, why an answer is cut off, what is waited for."""

    key: str
    text: str
    mark: str = "·"
    style: Style = "dim"
    is_waiting: bool = False
    """It tells how long until something happens."""
    picture: PictureSource | None = None


Item = PromptItem | AnswerItem | ThoughtItem | CallItem | ShellItem | SummaryItem | NoteItem


def ticks(item: Item) -> bool:
    """It tells seconds that go by: the only reason to draw anything anew without an event."""
    return (isinstance(item, CallItem) and item.state == "running") or (isinstance(item, NoteItem) and item.is_waiting)


def is_live(item: Item) -> bool:
    """Something about it goes on."""
    match item:
        case AnswerItem() | ThoughtItem() | SummaryItem():
            return item.is_growing
        case CallItem():
            return item.state in ("written", "waits", "asked", "running")
        case PromptItem():
            return item.state in ("sending", "not_sent")
        case NoteItem():
            return item.is_waiting
        case ShellItem():
            return False
        case _:
            assert_never(item)
