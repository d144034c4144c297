"""The state of the face: what of it is on the screen that no server knows. A frozen value; the rest is in the view."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal

from covey.lines.line import StyledLine
from covey.protocol.messages import SessionMode
from covey.protocol.requests import QuestionResponse
from covey.tui.face.composer import Composer, Suggestion
from covey.tui.face.editor import NOTHING, Editor
from covey.tui.face.keys import KeyTable

Focus = Literal["composer", "transcript", "ask", "queue"]
PickerKind = Literal[
    "palette", "sessions", "models", "timeline", "jobs", "history", "themes", "modes", "start", "providers", "hits"
]

TOAST_S = 4.0
"""Long enough to read a sentence."""
ARMED_S = 1.0
"""How long the first of two keys waits for the second."""
QUIET_S, QUIET_AT_MOST_S = 0.4, 1.5
"""An ask takes keys when nobody has typed for so long since it appeared, or at last after the second."""
ALONE_S = 0.25
"""A letter answers if no other key follows so soon: who types "add tests" does not allow anything."""


@dataclass(frozen=True, slots=True)
class Item:
    """One row of a list to choose from."""

    id: str
    text: str
    about: str = ""
    """On the right."""
    mark: str = ""
    """A sign before it."""
    found_by: str = ""
    """What else it is found by."""
    is_current: bool = False


@dataclass(frozen=True, slots=True)
class Picker:
    """A list to choose from, over the conversation."""

    kind: PickerKind
    title: str
    query: Editor = NOTHING
    items: tuple[Item, ...] = ()
    selected: int = 0
    is_loading: bool = False
    is_whole: bool = False
    """Of sessions: there are no older ones."""
    hint: str = ""
    filters: bool = True
    """What is typed narrows the list down; else it is no answer to it, and goes into the prompt below."""
    renaming: Editor | None = None
    deleting: str = ""
    """The id of the item that would be deleted by the same key again."""


@dataclass(frozen=True, slots=True)
class PageText:
    """What stands on a page of some width."""

    lines: tuple[StyledLine, ...]
    files: tuple[int, ...] = ()
    """Rows at which files begin, where there are several; the keys go from one to the next."""
    hunks: tuple[int, ...] = ()
    """The same for places that were changed."""


PageWriter = Callable[[int], PageText]
"""For so many columns."""


@dataclass(frozen=True, slots=True)
class TextPage:
    """Something to read, over the conversation; `confirms`: what enter does."""

    title: str
    write: PageWriter
    """It is written anew for each width: a window may change while somebody reads."""
    top: int = 0
    confirms: Literal["", "undo", "kill_job"] = ""
    subject: str = ""
    """What it is about: a run, or a job."""
    hint: str = ""
    asks: str = ""
    """Of all that a permission or an approval is about: the ask, which can be answered at the end of the page."""

    def text(self, columns: int) -> PageText:
        return _written(self.write, columns)


@lru_cache(maxsize=2)
def _written(write: PageWriter, columns: int) -> PageText:
    return write(columns)


Overlay = Picker | TextPage


@dataclass(frozen=True, slots=True)
class PendingAnswer:
    """A letter that answers, if it stays alone."""

    intent: str
    text: str
    at: float


@dataclass(frozen=True, slots=True)
class AskPanel:
    """The ask that is shown, and how far its answer has got."""

    ask_id: str = ""
    appeared_at: float = 0.0
    has_keys: bool = False
    """It was quiet once since it has the focus."""
    network: bool = False
    unsandboxed: bool = False
    confirming: Literal["", "allow_always", "allow_prefix"] = ""
    pending: PendingAnswer | None = None
    is_sent: bool = False
    """It was answered here."""
    is_seen: bool = False
    """All of it was looked at, to its end."""
    words: Editor | None = None
    """An answer in words, while it is written."""
    question: int = 0
    choice: int = 0
    has_moved: bool = False
    """Somebody has gone to the choice that is marked, and has chosen none since."""
    answers: tuple[QuestionResponse, ...] = ()
    """To the questions, in their order, as far as given."""

    @property
    def is_half_given(self) -> bool:
        """Words are being written, or a rule waits for its confirmation: the next esc takes that back, and no more."""
        return self.words is not None or bool(self.confirming)


@dataclass(frozen=True, slots=True)
class Toast:
    text: str
    kind: Literal["note", "warning", "error"]
    until: float


@dataclass(frozen=True, slots=True)
class Armed:
    """A key that does something only if it is pressed twice."""

    what: Literal["cancel", "quit", "timeline"]
    until: float


@dataclass(frozen=True, slots=True)
class SearchBar:
    query: Editor = NOTHING
    number: int = 0
    """Which of the places is shown, from the oldest on; 0: none."""
    total: int = 0
    is_typing: bool = True
    further_up: tuple[str, ...] = ()
    """Messages that are not loaded and have all the words, the newest first."""
    is_loading: bool = False
    """The first of them is on its way."""


@dataclass(frozen=True, slots=True)
class FacePreferences:
    """How the user likes it: from the configuration, for as long as the face runs."""

    keys: KeyTable = field(default_factory=KeyTable)
    busy: Literal["steer", "queue"] = "steer"
    """What enter does while the session works."""
    notifies: bool = True
    shares_shell: bool = True
    """The model sees what `!` commands print; with `!!` it is the other way round."""


@dataclass(frozen=True, slots=True)
class FaceState:
    width: int = 80
    height: int = 24
    is_focused: bool = True
    """As far as the terminal says."""
    me: str = ""
    """What the user here is called."""
    preferences: FacePreferences = field(default_factory=FacePreferences)
    focus: Focus = "composer"
    session_id: str = ""
    """The one whose composer is shown; '' before the first prompt of a new one."""
    composers: Mapping[str, Composer] = field(default_factory=dict)
    overlay: Overlay | None = None
    search: SearchBar | None = None
    looked_for: str = ""
    """Words that are looked for as soon as the session that was chosen by them is there."""
    ask: AskPanel = AskPanel()
    seen_asks: tuple[str, ...] = ()
    """Asks that have been shown or announced."""
    queued: str = ""
    """The prompt of the queue that is chosen."""
    history: tuple[str, ...] = ()
    commands: tuple[Suggestion, ...] = ()
    """Of the workspace."""
    toast: Toast | None = None
    armed: Armed | None = None
    last_input_at: float = 0.0
    hides_sides: bool = False
    is_unified: bool = False
    """Changes that are asked about are shown below each other, also where there is room beside."""
    shows_todos: bool = False
    is_starting: str = ""
    """What is being done before there is a connection."""
    unsent: str = ""
    """The first prompt of a session that is being made."""
    new_model: str = ""
    new_mode: SessionMode = "ask"
    """What was chosen for the next new session, before there is one."""
    now: float = 0.0
    """When the last input came."""

    @property
    def composer(self) -> Composer:
        return self.composers.get(self.session_id) or Composer()

    def joined(self, session_id: str) -> FaceState:
        """There is a connection, and this session is shown: what was typed before belongs to it, sent or not."""
        composers = dict(self.composers)
        if session_id and "" in composers and not composers[""].is_empty:
            composers[session_id] = composers.pop("")
        return replace(self, session_id=session_id, composers=composers, unsent="" if session_id else self.unsent)
