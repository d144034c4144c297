"""Explore for as long as you like: `python -m tests.sim.explore --seconds 600` (`make explore`).

First every state of the rules within large bounds, then schedules of the real shell: all with two delays, then random
ones from ever new seeds until the time is up. Prints how much was seen and, for a failure, what replays it.
"""

from __future__ import annotations

import argparse
import itertools
import logging
import sys
import time
from collections.abc import Iterator

from tests.sim.core_exploration import explore as explore_core
from tests.sim.core_inputs import Bounds
from tests.sim.loop import History, explore, run_seed, shorten
from tests.sim.shell_scenarios import SCENARIOS, fresh

CORE_BOUNDS = (Bounds(3, 2, 1, 1), Bounds(3, 1, 0, 3), Bounds(2, 2, 1, 3))


def shell_histories(first_seed: int) -> Iterator[tuple[str, History]]:
    """All schedules with two delays, then random ones without end."""
    for name in SCENARIOS:
        for history in explore(fresh(name), delays=2):
            yield name, history
    for seed in itertools.count(first_seed):
        for name in SCENARIOS:
            yield name, run_seed(fresh(name), seed)


def main() -> int:
    logging.disable()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=300.0, help="how long to explore schedules (default: 300)")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="the first random seed")
    args = parser.parse_args()
    for bounds in CORE_BOUNDS:
        exploration = explore_core(bounds)
        print(f"rules, {bounds}: {exploration}", flush=True)
        if exploration.violation:
            return 1
    began = time.monotonic()
    count = 0
    for name, history in shell_histories(args.seed):
        count += 1
        elapsed = time.monotonic() - began
        if history.failure:
            schedule = ",".join(map(str, shorten(fresh(name), history.schedule))) or "0"
            print(f"shell: {history.failure!r}\nreplay with: python -m tests.sim.replay {name} {schedule}")
            return 1
        if count % 2000 == 0:
            print(f"shell: {count:,} schedules, {count / elapsed:,.0f}/s, every promise was kept", flush=True)
        if elapsed > args.seconds:
            break
    print(f"shell: {count:,} schedules in {elapsed:.0f} s, {count / elapsed:,.0f}/s, every promise was kept")
    return 0


if __name__ == "__main__":
    sys.exit(main())
