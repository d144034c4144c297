"""What it costs to find out what a command changed: CPU of a command that is watched, in projects of different size.

The command is `:`, watched as one is that may change files. The CPU is ours, and that of git and of the command.
"""

from __future__ import annotations

import asyncio
import os
import resource
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from bench.processes import scratch
from bench.report import Figure
from bench.rig import Options
from covey.context.snapshots import Snapshots
from covey.engine.command_changes import CommandChanges
from covey.tools.processes import LocalProcesses
from covey.tools.walk import ALWAYS_IGNORED

SIZES = (10, 10_000, 50_000)
ROUNDS = 3
LIMIT_MS = {10: 30.0, 10_000: 110.0, 50_000: 420.0}
PER_FILE = 8.0
"""Microseconds for each file more: two looks, of which each asks the system about it once."""
IN_A_DIRECTORY = 50


def measure(options: Options) -> Iterator[Figure]:
    costs: dict[int, float] = {}
    for size in SIZES:
        with scratch() as place:
            root = place / "project"
            _make(root, size)
            rounds = range(options.size(ROUNDS, 1))
            count = options.size(10, 3)
            watched = min(asyncio.run(_cost(root, place / "kept", count, watched=True)) for _ in rounds)
            bare = min(asyncio.run(_cost(root, place / "kept", count, watched=False)) for _ in rounds)
        costs[size] = watched - bare
        name = f"changes: CPU of `bash -c :` among {size:,} files"
        yield Figure(f"{name}, not watched", bare, "ms")
        yield Figure(f"{name}, more if watched", costs[size], "ms", LIMIT_MS[size])
    more = (costs[SIZES[2]] - costs[SIZES[1]]) / (SIZES[2] - SIZES[1]) * 1000
    yield Figure("changes: for each file more, in one command", more, "us", PER_FILE)
    ratio = costs[SIZES[2]] / costs[SIZES[1]]
    yield Figure("changes: 50,000 files / 10,000", ratio, "x", 5.0)


def _make(root: Path, size: int) -> None:
    for number in range(size):
        directory = root / f"d{number // IN_A_DIRECTORY // 20}" / f"e{number // IN_A_DIRECTORY % 20}"
        if number % IN_A_DIRECTORY == 0:
            directory.mkdir(parents=True, exist_ok=True)
        (directory / f"f{number}.py").write_text(f"value = {number}\n")
    who = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "All"]):
        subprocess.run(["git", *arguments], cwd=root, env={**os.environ, **who}, check=True)


async def _cost(root: Path, kept: Path, count: int, *, watched: bool) -> float:
    """Milliseconds of CPU for a command, one after the other."""
    changes = CommandChanges(root, Snapshots(kept, os.environ, ALWAYS_IGNORED))
    processes = LocalProcesses()
    env = {"PATH": os.environ["PATH"], "HOME": str(kept)}

    async def run() -> None:
        watch = await changes.begin("s", "command", ":") if watched else None
        await processes.run_command(":", cwd=root, env=env, tag="covey-bench/c1", timeout_s=60, output_limit=1000)
        if watch:
            found = await changes.end(watch)
            assert (found.files, found.missed) == ((), ""), found

    await run()
    before = _used()
    for _ in range(count):
        await run()
    used = _used() - before
    await changes.aclose()
    return used / count * 1000


def _used() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime
