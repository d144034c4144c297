"""Which key means what: one table, from which the help, the footer and the configuration are made. Pure.

A context is where the user is; more than one holds at a time, and the nearest is asked first. What a key does is an
intent, by name. Keys are those of `inputs.Key.name`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, get_args

Context = Literal[
    "everywhere",
    "editing",
    "composer",
    "completion",
    "transcript",
    "permission",
    "question",
    "approval",
    "queue",
    "picker",
    "page",
]
CONTEXTS: tuple[Context, ...] = get_args(Context)
TITLES: Mapping[Context, str] = {
    "everywhere": "Everywhere",
    "composer": "The prompt",
    "editing": "Editing a line",
    "completion": "Suggestions",
    "transcript": "The conversation (tab goes there)",
    "permission": "A permission",
    "question": "A question",
    "approval": "An extension",
    "queue": "The queue",
    "picker": "Lists",
    "page": "Pages",
}


@dataclass(frozen=True, slots=True)
class Binding:
    intent: str
    contexts: tuple[Context, ...]
    keys: tuple[str, ...]
    about: str


def _bind(intent: str, contexts: str, keys: str, about: str) -> Binding:
    return Binding(intent, tuple(c for c in CONTEXTS if c in contexts.split()), tuple(keys.split()), about)


DEFAULT: tuple[Binding, ...] = (
    _bind("escape", "everywhere", "escape", "leave, close; twice: cancel what runs, or go back in time when idle"),
    _bind("interrupt_or_quit", "everywhere", "ctrl+c", "copy what is selected, put the draft aside, twice: quit"),
    _bind("palette", "everywhere", "ctrl+p", "all commands"),
    _bind("sessions", "everywhere", "ctrl+s", "sessions"),
    _bind("new_session", "everywhere", "ctrl+n", "a new session"),
    _bind("models", "everywhere", "ctrl+l", "models"),
    _bind("next_mode", "everywhere", "shift+tab", "ask, plan, accept edits, sandboxed"),
    _bind("search", "everywhere", "ctrl+f", "search in the conversation"),
    _bind("todos", "everywhere", "ctrl+t", "all things to do, or only the next"),
    _bind("details", "everywhere", "ctrl+o", "open or close all details"),
    _bind("sidebar", "everywhere", "ctrl+b", "show or hide the sides"),
    _bind("queue", "everywhere", "ctrl+q", "the queue"),
    _bind("help", "everywhere", "f1", "these keys"),
    _bind("redraw", "everywhere", "ctrl+\\", "draw the screen again"),
    _bind("suspend", "everywhere", "ctrl+z", "to the shell; fg comes back"),
    _bind("page_up", "everywhere", "pageup", "a page up in the conversation"),
    _bind("page_down", "everywhere", "pagedown", "a page down"),
    _bind("to_end", "everywhere", "ctrl+end", "to the end, and follow"),
    _bind("to_top", "everywhere", "ctrl+home", "to the beginning"),
    _bind("send", "composer", "enter", "send; while it works: steer, or as configured"),
    _bind("send_other", "composer", "tab", "while it works: the other of steer and queue; else the next field"),
    _bind("send_now", "composer", "alt+i", "interrupt what runs, and send"),
    _bind("newline", "composer", "ctrl+j shift+enter alt+enter ctrl+enter", "a new line; also \\ and enter"),
    _bind("take_back", "composer", "alt+up", "take the last queued prompt back, to edit it"),
    _bind("previous", "composer", "up", "a row up; on the first: the prompt before"),
    _bind("next", "composer", "down", "a row down; on the last: the next prompt"),
    _bind("history", "composer", "ctrl+r", "search in earlier prompts"),
    _bind("editor", "composer", "ctrl+g", "write the prompt in $EDITOR"),
    _bind("attach", "composer", "ctrl+v", "an image from the clipboard"),
    _bind("quit_if_empty", "composer", "ctrl+d", "quit, if nothing is written"),
    _bind("session_1", "everywhere", "alt+1", "the newest session; alt+2 … alt+9: the others"),
    *(_bind(f"session_{n}", "everywhere", f"alt+{n}", "") for n in range(2, 10)),
    _bind("left", "editing", "left", "a character to the left"),
    _bind("right", "editing", "right", "a character to the right"),
    _bind("word_left", "editing", "alt+b ctrl+left alt+left", "a word to the left"),
    _bind("word_right", "editing", "alt+f ctrl+right alt+right", "a word to the right"),
    _bind("line_start", "editing", "ctrl+a home", "to the start of the line"),
    _bind("line_end", "editing", "ctrl+e end", "to its end"),
    _bind("select_left", "editing", "shift+left", "select to the left"),
    _bind("select_right", "editing", "shift+right", "select to the right"),
    _bind("select_word_left", "editing", "ctrl+shift+left alt+shift+left", "select a word to the left"),
    _bind("select_word_right", "editing", "ctrl+shift+right alt+shift+right", "select a word to the right"),
    _bind("select_up", "composer", "shift+up", "select a row up"),
    _bind("select_down", "composer", "shift+down", "select a row down"),
    _bind("select_start", "editing", "shift+home", "select to the start of the line"),
    _bind("select_end", "editing", "shift+end", "select to its end"),
    _bind("select_all", "editing", "alt+a", "select everything"),
    _bind("delete_left", "editing", "backspace shift+backspace ctrl+h", "delete to the left"),
    _bind("delete_right", "editing", "delete", "delete to the right"),
    _bind("kill_word", "editing", "ctrl+w alt+backspace", "cut the word before"),
    _bind("kill_word_right", "editing", "alt+d", "cut the word after"),
    _bind("kill_line", "editing", "ctrl+k", "cut to the end of the line"),
    _bind("kill_start", "editing", "ctrl+u", "cut to its start"),
    _bind("yank", "editing", "ctrl+y", "put back what was cut"),
    _bind("undo_edit", "editing", "ctrl+_ ctrl+/", "undo"),
    _bind("redo_edit", "editing", "alt+_ alt+/", "redo"),
    _bind("suggest_previous", "completion", "up ctrl+p", "the one above"),
    _bind("suggest_next", "completion", "down ctrl+n", "the one below"),
    _bind("suggest_take", "completion", "tab enter", "take it"),
    _bind("line_up", "transcript", "k up", "a row up"),
    _bind("line_down", "transcript", "j down", "a row down"),
    _bind("item_up", "transcript", "K shift+up", "the item above"),
    _bind("item_down", "transcript", "J shift+down", "the item below"),
    _bind("half_up", "transcript", "u", "half a page up"),
    _bind("half_down", "transcript", "d", "half a page down"),
    _bind("whole_up", "transcript", "b", "a page up"),
    _bind("whole_down", "transcript", "f", "a page down"),
    _bind("first", "transcript", "g home", "to the beginning"),
    _bind("last", "transcript", "G end", "to the end, and follow"),
    _bind("open", "transcript", "space enter", "open or close the item"),
    _bind("select_more", "transcript", "v alt+down", "select the row; again: a row more"),
    _bind("select_less", "transcript", "V alt+up", "a row less, or more above"),
    _bind("copy_item", "transcript", "y", "copy what is selected, or the item"),
    _bind("copy_code", "transcript", "Y", "copy its last code"),
    _bind("find", "transcript", "/", "search"),
    _bind("find_next", "transcript", "n", "the next hit"),
    _bind("find_previous", "transcript", "N", "the hit before"),
    _bind("leave", "transcript queue", "tab i", "back to the prompt"),
    _bind("allow_once", "permission", "a y 1", "yes, this once"),
    _bind("allow_session", "permission", "s 2", "yes, and not asked again in this session"),
    _bind("allow_edits", "permission", "m", "yes, and all edits in this session"),
    _bind("allow_always", "permission", "A 3 r", "yes, always here, by a rule; enter confirms"),
    _bind("allow_prefix", "permission", "P 4 p", "the same, with any further words; enter confirms"),
    _bind("with_network", "permission", "w", "with the network, or not"),
    _bind("without_sandbox", "permission", "u", "outside of the sandbox, or not"),
    _bind("deny", "permission", "d n 5", "no"),
    _bind("deny_with_words", "permission", "e 6", "no, and why: the agent reads it"),
    _bind("approve", "approval", "a", "it may be used, as it is now"),
    _bind("refuse", "approval", "d n", "it may not"),
    _bind("whole", "permission question approval", "f", "see all of it"),
    _bind("diff_shape", "permission", "t", "a change beside what was before, or below it"),
    _bind("confirm", "permission", "enter", "confirm a rule; nothing else"),
    _bind("choice_up", "question", "up k", "the choice above"),
    _bind("choice_down", "question", "down j", "the choice below"),
    _bind("choose", "question", "space", "choose it, or not"),
    _bind("question_next", "question", "enter right tab", "choose where you went; the next question, or send"),
    _bind("question_back", "question", "left", "the question before"),
    _bind("question_yes", "question", "y", "yes"),
    _bind("question_no", "question", "n", "no"),
    _bind("question_words", "question", "e", "answer in words"),
    _bind("question_refuse", "question", "x", "answer none: the agent goes on without"),
    _bind("leave_ask", "permission approval", "tab", "back to the prompt, and answer later"),
    _bind("queue_up", "queue", "up k", "the one above"),
    _bind("queue_down", "queue", "down j", "the one below"),
    _bind("queue_earlier", "queue", "K alt+up shift+up", "move it up"),
    _bind("queue_later", "queue", "J alt+down shift+down", "move it down"),
    _bind("queue_edit", "queue", "enter e", "edit it; it waits meanwhile"),
    _bind("queue_drop", "queue", "d delete backspace", "drop it"),
    _bind("queue_park", "queue", "p", "park it, or let it go on"),
    _bind("queue_now", "queue", "n", "to the front"),
    _bind("pick_up", "picker", "up ctrl+p", "up"),
    _bind("pick_down", "picker", "down ctrl+n", "down"),
    _bind("pick_page_up", "picker", "pageup", "a page up"),
    _bind("pick_page_down", "picker", "pagedown", "a page down"),
    _bind("pick", "picker", "enter", "choose"),
    _bind("pick_delete", "picker", "ctrl+x", "delete it, where that can be; twice"),
    _bind("pick_rename", "picker", "ctrl+r", "rename it"),
    _bind("pick_other", "picker", "tab", "the other thing to do with it"),
    _bind("page_line_up", "page", "up k", "a row up"),
    _bind("page_line_down", "page", "down j", "a row down"),
    _bind("page_page_up", "page", "pageup b u", "a page up"),
    _bind("page_page_down", "page", "pagedown f d space", "a page down"),
    _bind("page_top", "page", "g home", "to the top"),
    _bind("page_end", "page", "G end", "to the end"),
    _bind("page_next_file", "page", "n", "the next file"),
    _bind("page_previous_file", "page", "N", "the file before"),
    _bind("page_next_hunk", "page", "]", "the next change"),
    _bind("page_previous_hunk", "page", "[", "the change before"),
    _bind("page_confirm", "page", "enter", "confirm, where something is asked"),
    _bind("page_close", "page", "q", "close"),
)
TOGETHER: tuple[tuple[Context, ...], ...] = (
    ("everywhere", "composer", "editing"),
    *((context,) for context in CONTEXTS if context not in ("everywhere", "composer", "editing")),
)
"""Where a key may mean only one thing. What is there for a moment, such as a list, may hide what holds everywhere."""


class KeyConflict(ValueError):
    """Keys that were configured cannot be so; the message says which, and what to do."""


@dataclass(frozen=True)
class KeyTable:
    bindings: tuple[Binding, ...] = DEFAULT

    @cached_property
    def _by_key(self) -> dict[tuple[Context, str], str]:
        return {(context, key): b.intent for b in self.bindings for context in b.contexts for key in b.keys}

    @cached_property
    def _by_intent(self) -> dict[str, Binding]:
        return {binding.intent: binding for binding in self.bindings}

    def find(self, contexts: Sequence[Context], key: str) -> str:
        """What the key means where the user is, the nearest context first; '': nothing."""
        return next((found for context in contexts if (found := self._by_key.get((context, key)))), "")

    def shown(self, intent: str, *, beside: Collection[str] = ()) -> str:
        """The first key of an intent, for people; '': it has none. `beside`: intents that keep their keys there."""
        binding = self._by_intent.get(intent)
        taken = {key for other in beside if other in self._by_intent for key in self._by_intent[other].keys}
        return next((shown(key) for key in binding.keys if key not in taken), "") if binding else ""

    def of(self, context: Context) -> list[Binding]:
        return [b for b in self.bindings if context in b.contexts and b.about and b.keys]


_SYMBOLS = {"enter": "⏎", "tab": "⇥", "escape": "esc", "up": "↑", "down": "↓", "left": "←", "right": "→"}
_SYMBOLS |= {"pageup": "pgup", "pagedown": "pgdn", "space": "space"}


def shown(key: str) -> str:
    """A key as the footer and the help write it."""
    *modifiers, last = key.split("+") if key != "+" else [key]
    return "+".join([*modifiers, _SYMBOLS.get(last, last)])


_MODIFIERS = ("ctrl", "alt", "shift")
_NAMED = {"enter", "tab", "escape", "space", "backspace", "delete", "insert", "home", "end", "pageup", "pagedown"}
_NAMED |= {"up", "down", "left", "right", *(f"f{n}" for n in range(1, 25))}


def normal(key: str) -> str:
    """A key as the terminal reports it, from how somebody wrote it; '' if there is no such key."""
    if len(key) == 1:
        return key
    *given, last = key.strip().split("+") if not key.endswith("++") else [*key[:-2].split("+"), "+"]
    modifiers = [m.lower() for m in given]
    last = {"esc": "escape", "return": "enter", "del": "delete", "pgup": "pageup", "pgdn": "pagedown"}.get(
        last.lower(), last.lower() if len(last) > 1 else last
    )
    if any(m not in _MODIFIERS for m in modifiers) or not (last in _NAMED or len(last) == 1):
        return ""
    if len(last) == 1 and modifiers:
        last = last.lower()
    return "+".join([*(m for m in _MODIFIERS if m in modifiers), last])


def configured(wanted: Mapping[str, str | Iterable[str]]) -> KeyTable:
    """The table with the keys that a user wants for some intents. Raises KeyConflict."""
    known = {binding.intent: binding for binding in DEFAULT}
    for intent, keys in wanted.items():
        if intent not in known:
            raise KeyConflict(f"keys.{intent}: there is no such action; `covey` and f1 show all of them")
        names = [keys] if isinstance(keys, str) else list(keys)
        for name in names:
            if not normal(name):
                raise KeyConflict(f'keys.{intent}: {name!r} is no key; write "ctrl+k", "alt+enter", "f2" or "x"')
        known[intent] = replace(known[intent], keys=tuple(normal(name) for name in names))
    table = KeyTable(tuple(known.values()))
    check(table.bindings, set(wanted))
    return table


def check(bindings: Iterable[Binding], changed: set[str] | None = None) -> None:
    """Raises KeyConflict if a key would mean two things in one place, or could not be typed any more."""
    bindings = list(bindings)
    for together in TOGETHER:
        taken: dict[str, str] = {}
        for binding in (b for b in bindings if set(b.contexts) & set(together)):
            for key in binding.keys:
                other = taken.setdefault(key, binding.intent)
                if other != binding.intent:
                    raise KeyConflict(_conflict(key, other, binding.intent, changed or set()))
                if (len(key) == 1 or key == "space") and "everywhere" in together:
                    raise KeyConflict(f"keys.{binding.intent}: {key} could not be typed any more; add ctrl+ or alt+")


def _conflict(key: str, one: str, other: str, changed: set[str]) -> str:
    if one in changed and other not in changed:
        one, other = other, one
    return (
        f"keys.{other}: {key} already means {one}. Choose another key for {other}, or give {one} one: "
        f'{one} = "…" under [keys]'
    )
