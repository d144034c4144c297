"""`python -m tests.extensions.run [NAME ...]`: checks against large programs of others, which are installed for it.

Each module `check_NAME.py` here has a function `checks(place)`, which yields outcomes; `place` is a directory that is
removed afterwards. What cannot be installed is skipped, and the reason is printed.
"""

from __future__ import annotations

import importlib
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.extensions.outcomes import Outcome

LIMIT_S = 15 * 60


def main(names: list[str]) -> int:
    found = sorted(path.stem.removeprefix("check_") for path in Path(__file__).parent.glob("check_*.py"))
    began, outcomes = time.monotonic(), list[Outcome]()
    place = Path(tempfile.mkdtemp(prefix="covey-extensions-"))
    try:
        for name in names or found:
            module = importlib.import_module(f"tests.extensions.check_{name}")
            for outcome in module.checks(place):
                outcomes.append(outcome)
                print(f"{outcome.state:8} {outcome.name}{f': {outcome.why}' if outcome.why else ''}", flush=True)
                if time.monotonic() - began > LIMIT_S:
                    print(f"the bound of {LIMIT_S // 60} minutes has passed; what is left was not run")
                    return 1
    finally:
        shutil.rmtree(place, ignore_errors=True)
    words = {"ok": "ok", "failed": "failed", "known": "known to fail", "skipped": "skipped"}
    counts = {state: sum(outcome.state == state for outcome in outcomes) for state in words}
    listed = ", ".join(f"{count} {words[state]}" for state, count in counts.items())
    print(f"{listed} in {time.monotonic() - began:.0f} s")
    return 1 if counts["failed"] or not counts["ok"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
