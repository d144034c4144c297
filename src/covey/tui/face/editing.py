"""What the keys for editing do to a line or a text. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from covey.tui.face.editor import Editor, typed
from covey.tui.inputs import Key

_EDITS: dict[str, Callable[[Editor], Editor]] = {
    "left": lambda e: e.moved(e.selection[0] if e.selection else e.left_of()),
    "right": lambda e: e.moved(e.selection[1] if e.selection else e.right_of()),
    "word_left": lambda e: e.moved(e.word_left()),
    "word_right": lambda e: e.moved(e.word_right()),
    "line_start": lambda e: e.moved(e.line_start()),
    "line_end": lambda e: e.moved(e.line_end()),
    "select_left": lambda e: e.moved(e.left_of(), selecting=True),
    "select_right": lambda e: e.moved(e.right_of(), selecting=True),
    "select_word_left": lambda e: e.moved(e.word_left(), selecting=True),
    "select_word_right": lambda e: e.moved(e.word_right(), selecting=True),
    "select_start": lambda e: e.moved(e.line_start(), selecting=True),
    "select_end": lambda e: e.moved(e.line_end(), selecting=True),
    "select_all": lambda e: replace(e.moved(len(e.text)), anchor=0),
    "delete_left": lambda e: e.delete(e.left_of(), "deleting"),
    "delete_right": lambda e: e.delete(e.right_of(), "deleting"),
    "kill_word": lambda e: e.kill(e.blank_left()),
    "kill_word_right": lambda e: e.kill(e.word_right()),
    "kill_line": lambda e: e.kill(e.line_end() if e.caret < e.line_end() else e.right_of()),
    "kill_start": lambda e: e.kill(e.line_start() if e.caret > e.line_start() else e.left_of()),
    "yank": lambda e: e.insert(e.killed) if e.killed else e,
    "undo_edit": Editor.undone,
    "redo_edit": Editor.redone,
}


def edited(editor: Editor, intent: str) -> Editor | None:
    """What an intent makes of a text; None: it is none for editors."""
    edit = _EDITS.get(intent)
    return edit(editor) if edit else None


def keyed(editor: Editor, intent: str, key: Key) -> Editor | None:
    """The same, or what the key types; None: it is not for this line."""
    if (found := edited(editor, intent)) is not None:
        return found
    return editor.insert(typed(key.text)) if not intent and key.text else None


def one_line(text: str) -> str:
    """A paste for a line that has no line ends."""
    return " ".join(typed(text).split("\n")).strip("\n")
