"""`python -m tests.demo.record_tui`: the terminal face on a coding task, in several sizes, into docs/screens.

A real server, real tools, real windows; only the model is scripted.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from tests.cli.conftest import Home
from tests.demo.record import FILES, PLACE, PROMPT, SCRIPT
from tests.demo.svg import Row, picture
from tests.tui.program import PtyProgram

Shot = Callable[[str, PtyProgram, str], None]


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


def shoot(name: str, window: PtyProgram, theme: str) -> None:
    while window.read(0.3):
        pass
    (PLACE / f"{name}.svg").write_text(picture(rows_of(window), window.screen.columns, theme))
    print(f"{name}: recorded", flush=True)


def story(studio: Studio, take: Shot) -> None:
    ann = studio.open(name="ann", theme="dark", columns=100, lines=30)
    ann.wait_for("what shall be done?")
    take("tui-100-start", ann, "dark")
    ann.type(f"{PROMPT}\r")
    ann.wait_for("allow this command?")
    session_id = studio.home.sessions()[0]["id"]
    kim = studio.open("-s", session_id, name="kim", theme="light", columns=60, lines=20)
    kim.wait_for("allow this command?")
    wide = studio.open("-s", session_id, name="lee", theme="dark", columns=200, lines=50)
    wide.wait_for("allow this command?")
    ann.wait_for("see it too")
    take("tui-100-permission", ann, "dark")
    take("tui-60-permission", kim, "light")
    kim.type("s")
    kim.wait_for("collecting 3")
    kim.type("then write a changelog entry\t")
    wide.wait_for("then write a changelog")
    wide.type("and bump the version\t")
    kim.wait_for("queue 2")
    take("tui-200-work", wide, "dark")
    take("tui-60-work", kim, "light")
    ann.wait_for("allow this change?")
    take("tui-100-diff", ann, "dark")
    ann.type("a")
    ann.wait_for("CHANGELOG.md says")
    ann.type("/")
    ann.wait_for("/sessions")
    take("tui-100-commands", ann, "dark")
    ann.type("\x7f")
    ann.type("\x1b[11~")
    ann.wait_for("The prompt")
    take("tui-100-keys", ann, "dark")


def main() -> int:
    PLACE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        home = Home(Path(directory))
        replies = [{"when": "changelog", "steps": [[{"text": "CHANGELOG.md says it now."}, {"hang": True}]]}]
        script = {"replies": [*replies, *SCRIPT["replies"]]}
        (Path(directory) / "script.json").write_text(json.dumps(script))
        config = home.config.read_text().replace('{ id = "default" }', '{ id = "default", context_window = 20000 }')
        home.config.write_text(config)
        for name, text in FILES.items():
            (home.project / name).write_text(text)
        try:
            story(Studio(home, stack), shoot)
        finally:
            home.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
