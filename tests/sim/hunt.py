"""Hunt for defects with one layer of the net, and say how far it had to look: `python -m tests.sim.hunt LAYER`.

Layers: `core` visits every state of the rules, `shell` explores schedules of the real shell, `crash` kills it after
every step, `store` and `tools` run their tests on real SQLite and real processes. Exit 1: something was caught.
"""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.sim.core_exploration import explore as explore_core
from tests.sim.core_inputs import Bounds
from tests.sim.loop import explore, run_schedule, run_to_crash
from tests.sim.shell import Shell
from tests.sim.shell_scenarios import SCENARIOS, after_crash, fresh

ROOT = Path(__file__).parents[2]


def core() -> str:
    found = explore_core(Bounds(prompts=2, crashes=1, resends=0, backlog=2))
    return f"{found.states} states: {found.violation}" if found.violation else ""


def shell() -> str:
    count = 0
    for delays in (0, 1):
        for name in SCENARIOS:
            for history in explore(fresh(name), delays):
                count += 1
                if history.failure:
                    return f"{count} schedules: {history.failure!r}"
    return ""


def crash() -> str:
    count = 0
    for name, scenario in SCENARIOS.items():
        for step in range(1, 1000):
            world = Shell()
            count += 1
            if not run_to_crash(partial(scenario, world), (), step):
                break
            failure = run_schedule(partial(after_crash, world), ()).failure
            if failure:
                return f"{count} crashes ({name}, step {step}): {failure!r}"
    return ""


def _tests(path: str, about: str) -> str:
    """Those of a file whose names say what they are `about`."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", str(ROOT / path), "-k", about]
    result = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    return f"{path}: {result.stdout.splitlines()[-1]}" if result.returncode else ""


LAYERS: dict[str, Callable[[], str]] = {
    "core": core,
    "shell": shell,
    "crash": crash,
    "store": lambda: _tests("tests/store/test_store_conformance.py", "numbered"),
    "tools": lambda: _tests("tests/tools/test_processes.py", "leaves_behind or leaves_nothing or daemon"),
}


def main() -> int:
    logging.disable()
    if len(sys.argv) != 2 or sys.argv[1] not in LAYERS:
        print(__doc__)
        return 2
    try:
        caught = LAYERS[sys.argv[1]]()
    except AssertionError as error:  # the shell already stumbles on its straight way
        caught = f"1 schedule: {error!r}"
    print(f"caught after {caught}"[:300] if caught else "nothing was caught")
    return 1 if caught else 0


if __name__ == "__main__":
    sys.exit(main())
