"""What somebody is writing to a session: the text with its tokens, the way back through history, and suggestions.

A long paste, or a file that comes along, is a token: one character of the text, shown by its label. It opens to its
text again, and what is sent has the text in its place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from covey.lines.words import counted, size
from covey.tui.face.editor import FIRST_TOKEN, LAST_TOKEN, NOTHING, Editor, is_token, typed

FOLDED_LINES, FOLDED_CHARS = 8, 1000
"""A paste with more than either becomes a token: it would push everything else off the screen."""
HISTORY_SHOWN = 500
"""Earlier prompts that can be gone back to."""


@dataclass(frozen=True, slots=True)
class PromptToken:
    """What one character of the text stands for."""

    kind: Literal["paste", "file"]
    label: str
    text: str = ""
    """Of a paste: all of it. Of a file: where it is."""
    mime_type: str = ""
    data: bytes = b""
    """Of a file that has no path, such as an image out of the clipboard."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """What may be taken in place of what was typed."""

    text: str
    about: str = ""
    places: tuple[int, ...] = ()
    """Characters of the text that were typed."""


@dataclass(frozen=True, slots=True)
class Completion:
    kind: Literal["file", "command"]
    start: int
    """Where in the text the word begins that it completes."""
    query: str
    items: tuple[Suggestion, ...] = ()
    selected: int = 0


@dataclass(frozen=True, slots=True)
class Composer:
    editor: Editor = NOTHING
    tokens: Mapping[str, PromptToken] = field(default_factory=dict)
    completion: Completion | None = None
    history_at: int | None = None
    """Which earlier prompt is shown, from the end; None: the draft."""
    draft: Editor | None = None
    """What was written before somebody went back in the history, or began to edit a queued prompt."""
    editing: str = ""
    """The queued run whose text this is."""
    closed_at: tuple[str, int] | None = None
    """The text and place where the user closed the suggestions: they stay closed there."""

    @property
    def text(self) -> str:
        return self.editor.text

    @property
    def is_empty(self) -> bool:
        return not self.editor.text

    @property
    def is_shell(self) -> bool:
        return self.editor.text.startswith("!")

    def label(self, token: str) -> str:
        known = self.tokens.get(token)
        return f"[{known.label}]" if known else "[?]"

    def with_editor(self, editor: Editor) -> Composer:
        return self if editor is self.editor else replace(self, editor=editor)

    # ── tokens ──

    def add_token(self, token: PromptToken) -> Composer:
        char = next((chr(n) for n in range(FIRST_TOKEN, LAST_TOKEN + 1) if chr(n) not in self.tokens), chr(LAST_TOKEN))
        return replace(self, tokens={**self.tokens, char: token}, editor=self.editor.insert(char))

    def pasted(self, text: str) -> Composer:
        """Put it in, folded if it is long. Line ends in it are line ends, and send nothing."""
        text = typed(text)
        lines = text.rstrip("\n").count("\n") + 1
        if lines <= FOLDED_LINES and len(text) <= FOLDED_CHARS:
            return self.with_editor(self.editor.insert(text))
        about = counted(lines, "line") if lines > FOLDED_LINES else size(len(text.encode()))
        number = sum(token.kind == "paste" for token in self.tokens.values()) + 1
        return self.add_token(PromptToken("paste", f"paste {number}: {about}", text))

    def token_at_caret(self) -> str:
        """The token that the caret stands on or behind; '' if there is none."""
        text, caret = self.editor.text, self.editor.caret
        return next((text[at] for at in (caret - 1, caret) if 0 <= at < len(text) and is_token(text[at])), "")

    def opened(self) -> Composer:
        """The paste at the caret as text."""
        token = self.tokens.get(char := self.token_at_caret())
        if token is None or token.kind != "paste":
            return self
        at = self.editor.text.index(char)
        return self.with_editor(self.editor.replace_range(at, at + 1, token.text))

    def expanded(self) -> str:
        """The text as it is sent: with all pastes in full, and names in place of files."""
        if not self.tokens:
            return self.editor.text
        return "".join(self._expanded(char) if is_token(char) else char for char in self.editor.text)

    def _expanded(self, char: str) -> str:
        token = self.tokens.get(char)
        return "" if token is None else token.text if token.kind == "paste" else f"[{token.label}]"

    @property
    def files(self) -> list[PromptToken]:
        """What comes along, in the order of the text."""
        found = [self.tokens.get(char) for char in self.editor.text if is_token(char)]
        return [token for token in found if token and token.kind == "file"]

    # ── history ──

    def back(self, history: Sequence[str]) -> Composer:
        """The prompt before this one; what is being written is kept."""
        at = 0 if self.history_at is None else self.history_at + 1
        if at >= len(history) or self.editing:
            return self
        draft = self.draft if self.history_at is not None else self.editor
        return replace(self, history_at=at, draft=draft, editor=shown_text(history[-1 - at]), completion=None)

    def forward(self, history: Sequence[str]) -> Composer:
        if self.history_at is None:
            return self
        if self.history_at == 0:
            return replace(self, history_at=None, draft=None, editor=self.draft or Editor())
        at = self.history_at - 1
        return replace(self, history_at=at, editor=shown_text(history[-1 - at]))

    # ── a queued prompt ──

    def edit_queued(self, run_id: str, text: str) -> Composer:
        """Show a queued prompt to be edited; the draft comes back when that is over."""
        draft = self.draft if self.draft is not None else self.editor
        return replace(self, editing=run_id, draft=draft, history_at=None, editor=shown_text(text), completion=None)

    def edited(self) -> Composer:
        return replace(self, editing="", draft=None, editor=self.draft or Editor(), completion=None)

    def sent(self) -> Composer:
        """Empty, with what was written still to be had by undo."""
        return Composer(editor=replace(self.editor.cleared(), grouping=""), tokens=self.tokens)

    # ── suggestions ──

    def word(self) -> tuple[str, int, str] | None:
        """What may be completed at the caret: its kind, where it begins, and what was typed of it."""
        text, caret = self.editor.text, self.editor.caret
        if self.editor.selection or self.closed_at == (text, caret):
            return None
        if text.startswith("/") and "\n" not in text and " " not in text[:caret] and caret:
            return "command", 0, text[1:caret]
        start = max(text.rfind(blank, 0, caret) for blank in (" ", "\n", "\t")) + 1
        word = text[start:caret]
        return ("file", start, word[1:]) if word.startswith("@") else None

    def taken(self, suggestion: Suggestion) -> Composer:
        """With the suggestion in place of what was typed, and a blank after it."""
        if self.completion is None:
            return self
        mark = "/" if self.completion.kind == "command" else "@"
        editor = self.editor.replace_range(self.completion.start, self.editor.caret, f"{mark}{suggestion.text} ")
        return replace(self, editor=editor, completion=None)

    def closed(self) -> Composer:
        return replace(self, completion=None, closed_at=(self.editor.text, self.editor.caret))


def shown_text(text: str) -> Editor:
    return Editor(text, len(text))


@dataclass(frozen=True, slots=True)
class Draft:
    """What is kept of a composer on disk."""

    text: str
    tokens: Mapping[str, PromptToken]


def draft_of(composer: Composer) -> Draft:
    """What would be lost: the draft itself, also while something else is shown in its place."""
    editor = composer.draft if composer.draft is not None and composer.draft.text else composer.editor
    used = {char: token for char, token in composer.tokens.items() if char in editor.text}
    return Draft(editor.text, used)


def from_draft(draft: Draft) -> Composer:
    return Composer(editor=shown_text(draft.text), tokens=dict(draft.tokens))
