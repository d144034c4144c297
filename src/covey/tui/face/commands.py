"""Everything that can be done, as one list: the palette and `/` show it, and each entry says its key. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from covey.tui.face.composer import Suggestion
from covey.tui.face.fuzzy import best, places
from covey.tui.face.state import FaceState, Item


@dataclass(frozen=True, slots=True)
class FaceCommand:
    name: str
    about: str
    intent: str
    """What a key would mean, or a name of its own (`reduce.py`)."""
    takes: str = ""
    """What may be written after it."""


COMMANDS: tuple[FaceCommand, ...] = (
    FaceCommand("new", "a new session", "new_session"),
    FaceCommand("sessions", "go to another session", "sessions"),
    FaceCommand("model", "which model answers in this session", "models", "NAME"),
    FaceCommand("mode", "what is asked about: ask, plan, accept edits, sandboxed", "modes", "MODE"),
    FaceCommand("undo", "go back in time: take turns back with their files", "timeline"),
    FaceCommand("fork", "go on from an earlier point in a session of its own", "timeline"),
    FaceCommand("compact", "replace the conversation by a summary of it", "compact", "WHAT TO KEEP"),
    FaceCommand("diff", "what this session has changed in files", "changes"),
    FaceCommand("queue", "see, edit, move and drop what waits", "queue"),
    FaceCommand("todos", "all things to do", "todos"),
    FaceCommand("jobs", "commands that run in the background", "jobs"),
    FaceCommand("extensions", "MCP servers, skills and hooks, and their states", "extensions"),
    FaceCommand("search", "search in this conversation", "search"),
    FaceCommand("find", "search in all sessions", "find_text", "WORDS"),
    FaceCommand("copy", "copy the last answer", "copy_answer"),
    FaceCommand("details", "open or close all details", "details"),
    FaceCommand("rename", "give this session a title", "rename", "TITLE"),
    FaceCommand("export", "write this session to a Markdown file", "export"),
    FaceCommand("archive", "put this session aside", "archive"),
    FaceCommand("delete", "delete this session", "delete"),
    FaceCommand("history", "search in earlier prompts", "history"),
    FaceCommand("editor", "write the prompt in $EDITOR", "editor"),
    FaceCommand("theme", "dark, light, the terminal's colours, or none", "themes", "NAME"),
    FaceCommand("mouse", "the mouse for Covey, or for the terminal's own selection", "mouse"),
    FaceCommand("login", "give Covey the key of a provider", "login", "PROVIDER"),
    FaceCommand("sidebar", "show or hide the sides", "sidebar"),
    FaceCommand("help", "all keys", "help"),
    FaceCommand("redraw", "draw the screen again", "redraw"),
    FaceCommand("quit", "leave; what runs goes on", "quit"),
)
BY_NAME = {command.name: command for command in COMMANDS}
BY_NAME |= {"clear": BY_NAME["new"], "exit": BY_NAME["quit"], "resume": BY_NAME["sessions"]}
BY_NAME |= {"rewind": BY_NAME["undo"], "summarize": BY_NAME["compact"], "models": BY_NAME["model"]}


def suggestions(state: FaceState, query: str) -> tuple[Suggestion, ...]:
    """What fits the letters after a `/`: our own commands, and those of the workspace."""
    own = [Suggestion(c.name, f"{f'{c.takes}: ' * bool(c.takes)}{c.about}") for c in COMMANDS]
    fitting = best(query, [*own, *state.commands], lambda each: each.text)
    by_words = [s for s in (*own, *state.commands) if s not in fitting and query and query in s.about]
    return tuple(Suggestion(s.text, s.about, tuple(places(query, s.text))) for s in [*fitting, *by_words])


def palette_items(state: FaceState) -> tuple[Item, ...]:
    keys = state.preferences.keys
    own = [Item(c.name, c.about, keys.shown(c.intent) or f"/{c.name}", found_by=c.name) for c in COMMANDS]
    theirs = [Item(s.text, s.about or s.text, f"/{s.text}", found_by=s.text) for s in state.commands]
    return (*own, *theirs)
