"""`python -m tests.demo.record_together`: two windows and a `covey run` on one session, into docs/screens/together.txt.

Somebody else cancels what the command began, and a third answers what its next run asks; then the server is killed with
-9 in the middle of an answer, and comes back by itself. The last moment is also a picture, together.svg. A real server,
real windows, real commands; only the model is scripted.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
from contextlib import ExitStack
from itertools import zip_longest
from pathlib import Path

from covey.lines.widths import width
from tests.cli.conftest import Home, finish
from tests.demo.record import PLACE
from tests.demo.record_tui import Studio, rows_of
from tests.demo.svg import Row, picture
from tests.tui.program import PtyProgram

COLUMNS, LINES = 66, 18
SETTLING = 10
"""Reads until a window shows what is known."""
ESCAPE = b"\x1b[27u"
"""As terminals send it that say what they mean."""
REPLIES = [
    {"when": "explain", "steps": [[{"text": "The feed is fetched, parsed and then "}, {"hang": True}]]},
    {
        "when": "measure",
        "steps": [
            [{"tool": "bash", "input": {"command": "wc -l feed.py > size.txt"}}],
            [{"text": "It has been measured."}],
        ],
    },
    {"when": "review", "steps": [[{"text": "I begin with the parser. Its first loop "}, {"hang": True}]]},
    {"when": "still", "steps": [[{"text": "Yes. All that was said before is here, and once."}]]},
    {"when": "", "steps": [[{"text": "What shall we look at?"}]]},
]


class Pages:
    """Moments, each with both windows beside each other."""

    def __init__(self, ann: PtyProgram, kim: PtyProgram) -> None:
        self._windows = ann, kim
        self.text = ""

    def say(self, words: str) -> None:
        self.text += f"{words}\n\n"

    def shoot(self) -> None:
        for window in self._windows:
            for _ in range(SETTLING):  # what works turns for ever: it is never quiet for long
                window.read(0.05)
        ann, kim = ([row.rstrip() for row in window.screen.rows] for window in self._windows)
        edge = f"+{'-' * COLUMNS}+   +{'-' * COLUMNS}+"
        rows = [f"|{_filled(left)}|   |{_filled(right)}|" for left, right in zip_longest(ann, kim, fillvalue="")]
        self.text += "\n".join([_filled("ann's window") + "     kim's window", edge, *rows, edge]) + "\n\n"


def _side_by_side(windows: tuple[PtyProgram, PtyProgram]) -> list[Row]:
    """Both as they are now."""
    between: Row = [(" ", ""), ("│", "38;5;240"), (" ", "")]
    ann, kim = (rows_of(window) for window in windows)
    return [[*left, *between, *right] for left, right in zip(ann, kim, strict=True)]


def _filled(text: str) -> str:
    return text + " " * (COLUMNS - width(text))


def cancelled_by_another(home: Home, session_id: str, ann: PtyProgram, kim: PtyProgram, pages: Pages) -> None:
    home.env["LOGNAME"] = "lee"
    run = home.spawn("run", "-s", session_id, "explain the feed")
    for window in (ann, kim):
        window.wait_for("parsed and then")
    pages.say('1. lee, in a shell:  covey run -s SESSION "explain the feed". Both windows show the answer as it comes.')
    pages.shoot()
    kim.type(ESCAPE)
    kim.wait_for("again cancels")
    kim.type(ESCAPE)
    kim.wait_for("cancelled 1 run")
    ann.wait_for("cancelled by kim")
    code, printed, said = finish(run)
    pages.say("2. kim presses esc twice. It is cancelled for everybody, and everybody sees by whom.")
    pages.shoot()
    shown = "\n".join(f"   {row}" for row in f"{printed}\n{said}".splitlines() if row.strip())
    pages.say(f"   lee's command had printed and said, and ended with the exit code {code}:\n\n{shown}")


def answered_by_a_third(home: Home, session_id: str, ann: PtyProgram, kim: PtyProgram, pages: Pages) -> None:
    run = home.spawn("run", "-s", session_id, "measure the feed")
    for window in (ann, kim):
        window.wait_for("allow this command?")
    pages.say('3. lee again:  covey run -s SESSION "measure the feed". It asks, and everybody sees it.')
    pages.shoot()
    ann.type("a")
    kim.wait_for("allowed by ann")
    for window in (ann, kim):
        window.wait_for("It has been measured.")
    code, printed, _ = finish(run)
    pages.say("4. ann allows it, once. The panel is gone in kim's window too, which says who it was.")
    pages.shoot()
    pages.say(f"   lee's command ended with the exit code {code}, and had printed:\n\n   {printed.strip()}")


def killed_and_back(home: Home, ann: PtyProgram, kim: PtyProgram, pages: Pages) -> None:
    ann.type("review the parser\r")
    for window in (ann, kim):
        window.wait_for("Its first loop")
    kim.type("still there?\t")
    for window in (ann, kim):
        window.wait_for("still there?")
    pages.say("5. ann asks for a review; kim queues what comes after it.")
    pages.shoot()
    os.kill(home.pid(), signal.SIGKILL)
    for window in (ann, kim):
        window.wait_for("interrupted")
        window.wait_for("is here, and once.")
    pages.say(
        "6. kill -9 of the server, and nothing else. The windows start it anew: the run has ended as interrupted,\n"
        "   the prompt that was queued has been answered, and nothing is missing or there twice."
    )
    pages.shoot()


def story(home: Home, studio: Studio) -> str:
    ann = studio.open(name="ann", theme="dark", columns=COLUMNS, lines=LINES)
    ann.wait_for("What should I do?")
    ann.type("hello\r")
    ann.wait_for("What shall we look at?")
    session_id = home.sessions()[0]["id"]
    kim = studio.open("-s", session_id, name="kim", theme="dark", columns=COLUMNS, lines=LINES)
    kim.wait_for("What shall we look at?")
    ann.wait_for("kim, you")
    pages = Pages(ann, kim)
    pages.say("Two terminals and a `covey run` on one session. Recorded by `python -m tests.demo.record_together`.")
    cancelled_by_another(home, session_id, ann, kim, pages)
    answered_by_a_third(home, session_id, ann, kim, pages)
    killed_and_back(home, ann, kim, pages)
    (PLACE / "together.svg").write_text(picture(_side_by_side((ann, kim)), 2 * COLUMNS + 3, "dark"))
    return pages.text


def main() -> int:
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        home = Home(Path(directory))
        (home.project / "feed.py").write_text("def tail(feed):\n    return feed[-1]\n")
        (Path(directory) / "script.json").write_text(json.dumps({"replies": REPLIES}))
        try:
            text = story(home, Studio(home, stack))
        finally:
            home.close()
    (PLACE / "together.txt").write_text("\n".join(row.rstrip() for row in text.rstrip().splitlines()) + "\n")
    print("together.txt: recorded")
    return 0


if __name__ == "__main__":
    sys.exit(main())
