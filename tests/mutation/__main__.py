"""`make mutate`: change the core in every small way and see whether anybody notices.

    python -m tests.mutation                         # all files of tests/mutation/nets.py: about half an hour
    python -m tests.mutation lifecycle/runs.py …     # these files, or folders; --jobs 2

Each mutant is put into a copy of the source and given to the nets of its file, the fastest first. What survives is
printed; what is known to survive, and why, is in `known.py`. (mutmut 3.8, the library for this, does not work with the
pytest that we use.)
"""

from __future__ import annotations

import argparse
import compileall
import multiprocessing
import os
import resource
import runpy
import shutil
import signal
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from multiprocessing.connection import wait
from multiprocessing.context import ForkProcess
from pathlib import Path

from tests.mutation.known import KNOWN
from tests.mutation.mutants import mutants, unchanged
from tests.mutation.nets import NETS, QUICK, Net

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 300
"""A mutant that makes a test hang is caught as well."""
QUICK_LIMIT_S = 5
"""Processor time, for tests that take about one second of it."""
PRELOADED = ("pytest", "hypothesis", "msgspec", "asyncio", "tempfile")
"""What tests need, but neither they nor the source: each mutant is judged in a fork that has it already."""


class Lane:
    """A copy of the source, for one mutant after the other. Its compiled files are kept, but for the one to change."""

    def __init__(self, directory: Path, file: str) -> None:
        self.source = directory / "src"
        self.target = self.source / "covey" / file
        shutil.copytree(ROOT / "src", self.source, ignore=shutil.ignore_patterns("__pycache__"))
        self.target.unlink()
        compileall.compile_dir(self.source, quiet=2)

    def start(self, net: Net) -> ForkProcess:
        process = multiprocessing.get_context("fork").Process(target=self._run, args=(net,))
        process.start()
        return process

    def _run(self, net: Net) -> None:
        """In a process of its own: `python -m` with these arguments, and with this source before any other."""
        os.setsid()
        if net[0] == QUICK:
            resource.setrlimit(resource.RLIMIT_CPU, (QUICK_LIMIT_S, QUICK_LIMIT_S))
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for descriptor in (1, 2):
            os.dup2(nowhere, descriptor)
        os.chdir(ROOT)
        os.environ["PYTHONPATH"] = os.pathsep.join([str(self.source), str(ROOT)])
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = os.devnull
        sys.path[:0] = [str(self.source), str(ROOT)]
        sys.dont_write_bytecode = True
        sys.argv = list(net)
        runpy.run_module(net[0], run_name="__main__", alter_sys=True)


@dataclass
class Trial:
    """A mutant before one of its nets."""

    number: int
    lane: Lane
    net: int
    process: ForkProcess
    deadline: float


class Court:
    """Judges the mutants of a file, several at a time."""

    def __init__(
        self, file: str, sources: Sequence[str], lanes: Sequence[Lane], on_judged: Callable[[int], None]
    ) -> None:
        self._nets = NETS[file]
        self._sources = sources
        self._free = list(lanes)
        self._on_judged = on_judged
        self._trials: list[Trial] = []
        self.survivors: set[int] = set()

    def judge(self) -> set[int]:
        """The numbers of those that get through all nets."""
        waiting = deque(range(len(self._sources)))
        while waiting or self._trials:
            while waiting and self._free:
                lane, number = self._free.pop(), waiting.popleft()
                lane.target.write_text(self._sources[number])
                self._trials.append(self._trial(number, lane, 0))
            left = min(trial.deadline for trial in self._trials) - time.monotonic()
            wait([trial.process.sentinel for trial in self._trials], timeout=max(left, 0))
            trials, self._trials = self._trials, []
            for trial in trials:
                self._look_at(trial)
        return self.survivors

    def _trial(self, number: int, lane: Lane, net: int) -> Trial:
        return Trial(number, lane, net, lane.start(self._nets[net]), time.monotonic() + TIMEOUT_S)

    def _look_at(self, trial: Trial) -> None:
        if trial.process.is_alive() and time.monotonic() < trial.deadline:
            self._trials.append(trial)
            return
        assert trial.process.pid
        with suppress(ProcessLookupError):
            os.killpg(trial.process.pid, signal.SIGKILL)  # whatever it has started
        trial.process.join()
        if trial.process.exitcode == 0 and trial.net + 1 < len(self._nets):
            self._trials.append(self._trial(trial.number, trial.lane, trial.net + 1))
            return
        if trial.process.exitcode == 0:
            self.survivors.add(trial.number)
        self._free.append(trial.lane)
        self._on_judged(trial.number)


def judged(file: str, jobs: int) -> int:
    """Judges a file and says how it went; the number of survivors that nobody has explained."""
    source = (ROOT / "src" / "covey" / file).read_text()
    found = list(mutants(source))

    def on_judged(number: int) -> None:
        if number % 50 == 0:
            print(f"{file}: {number} of {len(found)}", file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory() as directory:
        lanes = [Lane(Path(directory) / str(number), file) for number in range(jobs)]
        if not Court(file, [unchanged(source)], lanes, on_judged).judge():
            print(f"{file}: its own tests fail without any change")
            return 1
        survivors = Court(file, [mutant.source for mutant in found], lanes, on_judged).judge()
    return reported(file, len(found), [found[number].name for number in sorted(survivors)])


def reported(file: str, count: int, alive: Sequence[str]) -> int:
    known = KNOWN.get(file, {})
    unknown = [name for name in alive if name not in known]
    for name in alive:
        print(f"survived: {name}" + (f"   (known: {known[name]})" if name in known else ""))
    for name in known.keys() - set(alive):
        print(f"known, but it does not survive: {name}")
    caught, explained = count - len(alive), len(alive) - len(unknown)
    print(
        f"{file}: {count} mutants, {caught} caught, {explained} known, {len(unknown)} unexplained survivors", flush=True
    )
    return len(unknown)


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", metavar="FILE")
    parser.add_argument("--jobs", type=int, default=2)
    wanted = parser.parse_args(argv)
    chosen = [file for file in NETS if not wanted.files or file.startswith(tuple(wanted.files))]
    if not chosen:
        parser.error(f"there are nets for {', '.join(NETS)}")
    for name in PRELOADED:
        import_module(name)
    return 1 if sum(judged(file, wanted.jobs) for file in chosen) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
