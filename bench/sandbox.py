"""What a command costs inside the sandbox: CPU of the server, of whoever forks for it, and of the command itself."""

from __future__ import annotations

import asyncio
import os
import resource
import time
from collections.abc import Iterator
from pathlib import Path

from bench.processes import scratch
from bench.report import Figure
from bench.rig import Options
from covey.sandbox.facts import gather
from covey.sandbox.plan import Views
from covey.sandbox.policy import Policy, approved, unasked
from covey.sandbox.probe import probed, wrap
from covey.sandbox.starter import STARTER
from covey.tools.processes import LocalProcesses

COMMANDS = 100
ROUNDS = 5
UNASKED, APPROVED = 2.5, 4.5
"""Times a bare one, as the server runs it. To start an interpreter for each would be far above."""


def measure(options: Options) -> Iterator[Figure]:
    able = probed()
    if not able.landlock or not able.seccomp:
        return
    with scratch() as place:
        (place / "temp").mkdir()
        facts = gather(place, place / "temp", os.environ, [])
        policies = {"bare": None, "unasked": unasked(facts), "approved": approved(facts)}
        best = {name: float("inf") for name in policies}
        for _ in range(options.size(ROUNDS, 2)):
            for name, policy in policies.items():
                best[name] = min(best[name], asyncio.run(_cost(place, policy, options.size(COMMANDS, 20))))
        alone = min(_started_alone(place, unasked(facts), 20) for _ in range(options.size(3, 1)))
    note = "" if able.views is Views.OWN else "without a view of its own"
    yield Figure("sandbox: CPU of `bash -c :` without it", best["bare"], "ms")
    yield Figure("sandbox: the same, unasked", best["unasked"], "ms")
    yield Figure("sandbox: the same, approved", best["approved"], "ms", note=note)
    yield Figure("sandbox: unasked / without", best["unasked"] / best["bare"], "x", UNASKED)
    yield Figure("sandbox: approved / without", best["approved"] / best["bare"], "x", APPROVED)
    yield Figure("sandbox: unasked, an interpreter for each", alone, "ms", note="not done: for comparison")


async def _cost(place: Path, policy: Policy | None, count: int) -> float:
    """Milliseconds of CPU for a command, one after the other."""
    processes = LocalProcesses()
    env = {"PATH": os.environ["PATH"], "HOME": str(place)}

    async def run() -> None:
        done = await processes.run_command(
            "true", cwd=place, env=env, tag="covey-bench/c1", timeout_s=60, output_limit=1000, policy=policy
        )
        assert done.exit_code == 0, done.output

    await run()
    before = _used()
    for _ in range(count):
        await run()
    return (_used() - before) / count * 1000


def _used() -> float:
    """Seconds of CPU: ours, of all that has ended, and of the forker, which has not."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    forker = STARTER.cpu_s()
    return time.process_time() + children.ru_utime + children.ru_stime + forker


def _started_alone(place: Path, policy: Policy, count: int) -> float:
    import subprocess

    line = wrap(["bash", "-c", ":"], policy, dict(os.environ)).line()
    before = _used()
    for _ in range(count):
        subprocess.run(line, cwd=place, check=True)
    return (_used() - before) / count * 1000
