"""`python -m tests.demo.record`: a coding task on a small repository, as `covey run` shows it, into docs/screens.

A real server and the real tools; only the model is scripted. Each theme at 80 and at 120 columns.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from tests.cli.conftest import Home
from tests.demo.svg import GROUNDS, Row, picture
from tests.demo.terminal import TerminalProgram

PLACE = Path(__file__).resolve().parent.parent.parent / "docs" / "screens"
PROMPT = "The test of prices.py fails. Fix it."
FILES = {
    "prices.py": '''def total(items):
    """The price of all items, in cents."""
    return sum(item["price"] for item in items)
''',
    "check.py": """import time

from prices import total

for number in range(1, 7):
    print(f"collecting {number} of 6", flush=True)
    time.sleep(0.3)
assert total([{"price": 100, "amount": 2}, {"price": 50, "amount": 1}]) == 250, "the amounts do not count"
print("1 passed")
""",
}
TODOS = ("Find out why the check fails", "Fix the total", "Run the check again")
ANSWER = """## What was wrong

`total` added the prices and **ignored the amount** of each item. Now it multiplies:

```python
def total(items):
    return sum(item["price"] * item["amount"] for item in items)  # cents
```

| file      | change                   |
|-----------|--------------------------|
| prices.py | multiplies by the amount |
| 注文.md   | 変更なし                 |

- the check *passes*, see [the documentation](https://docs.python.org/3/library/functions.html#sum)
"""


def _todos(done: int) -> dict[str, object]:
    states = ["completed"] * done + ["in_progress"] + ["pending"] * len(TODOS)
    return {
        "tool": "todos",
        "input": {
            "todos": [{"content": c, "status": s, "active_form": c} for c, s in zip(TODOS, states, strict=False)]
        },
    }


def _bash(command: str) -> dict[str, object]:
    return {"tool": "bash", "input": {"command": command}}


SCRIPT = {
    "replies": [
        {
            "steps": [
                [
                    {"text": "I look at the code and run the check."},
                    _todos(0),
                    {"tool": "view", "input": {"file_path": "prices.py"}},
                ],
                [_bash("python3 check.py")],
                [
                    {"text": "The amounts do not count: `total` has to multiply."},
                    {
                        "tool": "edit",
                        "input": {
                            "file_path": "prices.py",
                            "old_string": 'item["price"] for',
                            "new_string": 'item["price"] * item["amount"] for',
                        },
                    },
                ],
                [_bash("python3 check.py")],
                [{"text": ANSWER[:40]}, {"text": ANSWER[40:], "delay_ms": 100}, {"usage": [5210, 640]}],
            ]
        }
    ]
}


def record(home: Home, columns: int, theme: str) -> list[Row]:
    """What stands on the terminal in the end, and before that while a change is asked about, and a command runs."""
    for name, text in FILES.items():
        (home.project / name).write_text(text)
    env = {**home.env, "TERM": "xterm-256color", "COVEY_THEME": theme}
    del env["NO_COLOR"]
    program = TerminalProgram(home.command("run", PROMPT), home.project, env, columns)
    program.wait_for("Allow it? ")
    program.type("s")
    program.wait_for("  │ collecting 4")
    middle = [list(row) for row in program.screen.rows]
    program.wait_for("Allow it? ")  # the first question has gone with its answer
    asking = [list(row) for row in program.screen.rows]
    program.type("y")
    program.finish()
    prompt: Row = [*(("$", "2"), (" ", "")), *((char, "1") for char in f'covey run "{PROMPT}"')]
    return [
        *(prompt, *program.screen.rows[:-1]),
        *([], _note("(while it runs)"), *_from("collecting", middle, before=1)),
        *([], _note("(while it asks)"), *_from("Edit prices.py", asking)),
    ]


def _note(text: str) -> Row:
    return [(char, "3") for char in text]


def _from(text: str, rows: list[Row], before: int = 0) -> list[Row]:
    """The rows from the first one with this text on."""
    first = next(number for number, row in enumerate(rows) if text in "".join(char for char, _ in row))
    return rows[first - before :]


def main() -> int:
    PLACE.mkdir(exist_ok=True)
    for theme in GROUNDS:
        for columns in (80, 120):
            with tempfile.TemporaryDirectory() as directory:
                home = Home(Path(directory))
                (Path(directory) / "script.json").write_text(json.dumps(SCRIPT))
                try:
                    rows = record(home, columns, theme)
                finally:
                    home.close()
            (PLACE / f"run-{columns}-{theme}.svg").write_text(picture(rows, columns, theme))
            print(f"{columns} columns, {theme}: recorded", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
