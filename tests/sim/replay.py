"""Replay one schedule: `python -m tests.sim.replay SCENARIO 0,1,0,2`. Prints the failure, or that there is none."""

from __future__ import annotations

import sys
import traceback

from tests.sim.loop import run_schedule
from tests.sim.shell_scenarios import SCENARIOS, fresh


def main() -> int:
    if len(sys.argv) != 3 or sys.argv[1] not in SCENARIOS:
        print(__doc__, "\nscenarios:", ", ".join(SCENARIOS))
        return 2
    history = run_schedule(fresh(sys.argv[1]), [int(number) for number in sys.argv[2].split(",")])
    if history.failure is None:
        print(f"{len(history.offered)} choices, every promise was kept")
        return 0
    traceback.print_exception(history.failure)
    return 1


if __name__ == "__main__":
    sys.exit(main())
