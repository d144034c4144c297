"""`python -m tests.demo.record_tui`: each screen of the terminal face at three sizes, into docs/screens.

All of them as text, some also as pictures. A real server, real tools, real windows; only the model is scripted.
"""

from __future__ import annotations

import json
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from tests.cli.conftest import Home
from tests.demo.record import FILES, PLACE, PROMPT, SCRIPT
from tests.demo.svg import Row, picture
from tests.tui.program import PtyProgram

SIZES = {60: 20, 100: 30, 200: 60}
"""Rows for so many columns."""
THEMES = {60: "light", 100: "dark", 200: "dark"}
PEOPLE = {60: "kim", 100: "ann", 200: "lee"}
SCREENS = ["start", "permission", "work", "change", "queue", "question", "commands", "palette", "sessions", "models"]
SCREENS += ["search", "changes", "keys", "back in time", "details"]
PICTURES = {
    *((100, name) for name in ("start", "permission", "change", "commands", "keys")),
    *((60, name) for name in ("permission", "work")),
    *((200, name) for name in ("work", "change")),
}
ESCAPE = "\x1b[27u"
"""As terminals send it that say what they mean."""
SETTLING = 10
"""Reads until a window shows what is known; what works turns for ever."""
QUESTIONS = [
    {
        "type": "single_choice",
        "question": "Which entry shall it be?",
        "description": "The changelog has two kinds.",
        "choices": [
            {"label": "Fixed", "description": "something was wrong"},
            {"label": "Changed", "description": "it is otherwise now"},
        ],
    },
    {"type": "free_text", "question": "For which version?"},
]
REPLIES = [
    {
        "when": "changelog",
        "steps": [[{"tool": "question", "input": {"questions": QUESTIONS}}], [{"text": "It says so."}]],
    }
]


class Studio:
    """Windows of different people on one project."""

    def __init__(self, home: Home, stack: ExitStack) -> None:
        self.home = home
        self._stack = stack

    def open(self, *args: str, name: str, theme: str, columns: int, lines: int) -> PtyProgram:
        state = str(self.home.data_dir.parent / f"state-{name}")
        env = {**self.home.env, "LOGNAME": name, "COVEY_THEME": theme, "XDG_STATE_HOME": state}
        env.pop("NO_COLOR", None)
        command = self.home.command(*args)
        program = PtyProgram(command, cwd=self.home.project, env=env, columns=columns, lines=lines)
        return self._stack.enter_context(program)


def rows_of(window: PtyProgram) -> list[Row]:
    return [[(char, style) for char, style, _ in row if char] for row in window.screen.grid]


class Album:
    """Windows of three sizes, and what was on them at each moment."""

    def __init__(self, studio: Studio) -> None:
        self._studio = studio
        self.windows: dict[int, PtyProgram] = {}
        self.pages: dict[int, str] = dict.fromkeys(SIZES, "")

    def open(self, columns: int, *args: str) -> PtyProgram:
        name, theme = PEOPLE[columns], THEMES[columns]
        window = self._studio.open(*args, name=name, theme=theme, columns=columns, lines=SIZES[columns])
        self.windows[columns] = window
        return window

    def each(self, keys: str, shows: str) -> None:
        """Everybody does the same."""
        for window in self.windows.values():
            window.type(keys)
            window.wait_for(shows)

    def take(self, name: str, *sizes: int) -> None:
        for columns, window in self.windows.items():
            if sizes and columns not in sizes:
                continue
            for _ in range(SETTLING):
                window.read(0.05)
            edge = f"+{'-' * columns}+"
            where = str(self._studio.home.project.parent)
            rows = [f"|{row}".replace(where, "/home/ann") for row in window.screen.rows]
            self.pages[columns] += "\n".join([f"## {name}", "", edge, *rows, edge, "", ""])
            if (columns, name) in PICTURES:
                drawn = picture(rows_of(window), columns, THEMES[columns])
                (PLACE / f"tui-{columns}-{name}.svg").write_text(drawn)
        print(f"{name}: recorded", flush=True)


def story(studio: Studio, album: Album) -> None:
    ann = album.open(100)
    for columns in (60, 200):
        album.open(columns)
    for window in album.windows.values():
        window.wait_for("What should I do?")
    album.take("start")
    ann.type(f"{PROMPT}\r")
    ann.wait_for("allow this command?")
    session_id = studio.home.sessions()[0]["id"]
    for columns in (60, 200):
        album.windows[columns].type("\x04")
        album.windows[columns].finish()
        album.open(columns, "-s", session_id).wait_for("allow this command?")
    ann.wait_for("see it too")
    album.take("permission")
    kim, lee = album.windows[60], album.windows[200]
    kim.type("s")
    kim.wait_for("collecting 3")
    kim.type("then write a changelog entry\t")
    lee.wait_for("then write a changelog")
    lee.type("and bump the version\t")
    kim.wait_for("queue 2")
    album.take("work")
    ann.wait_for("allow this change?")
    for window in (kim, lee):
        window.wait_for("allow this change?")
    album.take("change")
    album.each(ESCAPE, "⇥ answer")
    album.each("\x11", "drop")
    album.take("queue")
    album.each(ESCAPE, "⇥ answer")
    ann.type("\t")
    ann.wait_for("look further up")
    ann.type("a")
    for window in album.windows.values():
        window.wait_for("Which entry shall it be?")
    album.take("question")


def lists(album: Album) -> None:
    """What each opens for itself."""
    album.windows[100].type(ESCAPE)
    album.windows[100].wait_for("again cancels")
    album.windows[100].type(ESCAPE)
    for window in album.windows.values():
        window.wait_for("cancelled by")
    for name, keys, shows, back in (
        ("commands", "/", "/sessions", "\x7f"),
        ("palette", "\x10", "commands ─", ESCAPE),
        ("sessions", "\x13", "sessions ─", ESCAPE),
        ("models", "\x0c", "for this session", ESCAPE),
        ("search", "\x06amount", "of ", ESCAPE),
        ("changes", "/diff\r", "this session has changed", ESCAPE),
        ("keys", "\x1b[11~", "The prompt", ESCAPE),
        ("back in time", "/undo\r", "go back to before", ESCAPE),
        ("details", "\x0f", "f1 keys", "\x0f"),
    ):
        album.each(keys, shows)
        album.take(name)
        album.each(back, "f1 keys")
        for window in album.windows.values():
            for _ in range(SETTLING):
                window.read(0.05)


def main() -> int:
    PLACE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        home = Home(Path(directory))
        (Path(directory) / "script.json").write_text(json.dumps({"replies": [*REPLIES, *SCRIPT["replies"]]}))
        config = home.config.read_text().replace('{ id = "default" }', '{ id = "default", context_window = 20000 }')
        home.config.write_text(config)
        for name, text in FILES.items():
            (home.project / name).write_text(text.replace("sleep(0.3)", "sleep(1.5)"))  # time to look at it
        album = Album(studio := Studio(home, stack))
        try:
            story(studio, album)
            lists(album)
        finally:
            home.close()
            for columns, pages in album.pages.items():
                (PLACE / f"tui-{columns}.txt").write_text("\n".join(row.rstrip() for row in pages.splitlines()) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
