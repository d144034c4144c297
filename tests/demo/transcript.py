"""`python -m tests.demo.transcript FOLDER`: a coding task as the transcript of the terminal face, as pictures.

At 60, 100 and 200 columns, dark and light. No server and no model: the messages are made up.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from covey.client.view.inputs import PromptGiven
from covey.client.view.view import View
from covey.lines.line import StyledLine
from covey.lines.theme import THEMES, Theme
from covey.protocol.events import AgentEvent, created
from covey.protocol.messages import (
    Binary,
    BinaryPart,
    Message,
    Reasoning,
    ReasoningPart,
    ShellCommand,
    ShellCommandPart,
)
from covey.protocol.requests import PostPrompt
from tests.demo.svg import Row, picture
from tests.tui.transcript.support import (
    END,
    NOW,
    Screen,
    answer,
    call,
    finish,
    message,
    printed,
    put,
    result,
    run,
    text_part,
    user,
    view_of,
)

_DIFF = """--- a/tests/test_feed.py
+++ b/tests/test_feed.py
@@ -9,9 +9,11 @@ from feed import tail
·
 def test_tail() -> None:
-    now = time.time()
+    now = clock()
     feed = Feed(now)
     feed.add("a", at=now)
-    assert feed.tail(at=time.time()) == ["a"]
+    later = now + 1
+    assert feed.tail(at=later) == ["a"]
·
·
 def test_empty() -> None:
@@ -40,4 +42,4 @@ def test_long() -> None:
     feed = Feed(0)
-    for number in range(100): feed.add(str(number), at=number)
+    feed.add_all((str(number), number) for number in range(100))
     assert len(feed.tail(at=100)) == 10
"""
PRINTED = """tests/test_feed.py .....    [ 41%]
tests/test_lane.py ..
E   ModuleNotFoundError: clock
1 failed, 6 passed

exit code 1"""
DIFF = _DIFF.replace("·", " ")
"""A line without text has a blank in a diff, which editors like to take away."""
ANSWER = """## What was wrong

The test read the clock **twice**: once in `arrange`, once in the assertion at tests/test_feed.py:14. \
Between the two a second could pass, and then the entry was too old.

1. `clock` is passed in, as everywhere else in `src/feed/feed.py:31`
2. the assertion uses a fixed time

```python
def tail(self, *, at: float) -> list[str]:
    # what is older than a minute is gone
    return [entry.text for entry in self._entries if at - entry.at < 60]
```

| test       | before | after |
|------------|--------|-------|
| test_tail  | flaky  | 200 × passed |
| test_empty | passed | passed |

> The other tests never look at the clock.

See <https://docs.python.org/3/library/time.html#time.monotonic> for why `monotonic` would not help here.
"""


def task() -> View:
    """A turn with everything in it, one that was cancelled, and one that runs."""
    view = view_of([*_first_turn(), *_later_turns()], active=False)
    view.event(created(run("cancelled", "r2", cancelled_by="session_cancel", cancelled_by_client="ada")), "1.1")
    view.event(created(run("active", "r3")), "1.2")
    printed(view, "c6", "tests/test_feed.py ..........    [ 41%]\ntests/test_lane.py ..\n")
    return view


def _first_turn() -> list[Message]:
    edit = json.dumps({"file_path": "tests/test_feed.py", "diff": DIFF, "additions": 4, "removals": 3})
    denied = "The user denied this call. The user says: not the build folder"
    thought = Reasoning(thinking="It reads the clock.", signature="", started_at=1, finished_at=7)
    return [
        message(
            "u1",
            "user",
            text_part("make the test in tests/test_feed.py deterministic;\nit fails about once a day"),
            BinaryPart(data=Binary(Path="failure.png", MIMEType="image/png", Data="")),
        ),
        message(
            "a1",
            "assistant",
            ReasoningPart(data=thought),
            text_part("I will look at the test and at what it tests."),
            call("c1", "view", '{"file_path":"tests/test_feed.py"}'),
            call("c2", "grep", '{"pattern":"time\\\\.time","path":"src"}'),
            END,
        ),
        result("t1", "c1", "…", name="view", facts='{"lines":214}'),
        result("t2", "c2", "…", name="grep", facts='{"matches":3}'),
        message("a2", "assistant", call("c3", "edit", '{"file_path":"tests/test_feed.py"}'), call("c4"), END),
        result("t3", "c3", "Edited.", name="edit", facts=edit),
        result("t4", "c4", PRINTED, facts='{"exit_code":1}'),
        message("a3", "assistant", call("c5", "bash", '{"command":"rm -rf build && make test"}'), END),
        result("t5", "c5", denied, is_error=True, facts='{"denied":"person"}'),
        answer("a4", ANSWER),
    ]


def _later_turns() -> list[Message]:
    status = ShellCommand(command="git status --short", output=" M tests/test_feed.py\n", exit_code=0)
    stopped = finish("canceled", "Stopped by the user")
    again = call("c6", "bash", '{"command":"make test COUNT=200"}')
    return [
        message("x", "user", ShellCommandPart(data=status), run_id=""),
        message("u2", "user", text_part("and now run it 200 times"), run_id="r2"),
        message("a5", "assistant", text_part("That will take a while"), stopped, run_id="r2"),
        message("u3", "user", text_part("again, please"), run_id="r3"),
        message("a6", "assistant", text_part("Once more:"), again, run_id="r3"),
    ]


def endings() -> View:
    """How a turn can end, and what is not with the server yet."""
    messages: list[Message] = []
    ends = [
        finish("error", "The run failed", "anthropic: the model server answered 529: overloaded"),
        finish("error", "The run was interrupted", "The server stopped while this run was active."),
        finish("canceled", "Stopped by a shutdown"),
        finish("max_tokens"),
    ]
    for number, end in enumerate(ends):
        messages += [user(f"u{number}", "go on"), message(f"a{number}", "assistant", text_part("I begin with"), end)]
    summary = answer("sum", "What was said so far.")
    view = view_of([*messages, summary, user("u9", "next")])
    retry = AgentEvent(
        type="retry", session_id="s", run_id="r1", reason="the model server answered 429", attempt=2, retry_at=NOW + 12
    )
    view.event(created(retry), "1.1")
    view.apply(PromptGiven(PostPrompt(session_id="s", prompt="then update the changelog", run_id="r9"), NOW))
    put(view)
    return view


def cells(row: StyledLine, theme: Theme) -> Row:
    return [(char, theme.codes.get(span.style, "")) for span in row.spans for char in span.text]


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, made in (("task", task), ("endings", endings)):
        for columns in (60, 100, 200):
            for is_open in (False, True):
                screen = Screen(made(), columns, 500)
                screen.rows()
                screen.now += 12
                screen.transcript.fold_all(is_open=is_open)
                rows = list(screen.rows())
                while not rows[-1].spans:
                    rows.pop()
                for theme in ("dark", "light"):
                    drawn = picture([cells(row, THEMES[theme]) for row in rows], columns, theme)
                    opened = "-open" if is_open else ""
                    (folder / f"{name}-{columns}-{theme}{opened}.svg").write_text(drawn, "utf-8")


if __name__ == "__main__":
    main()
