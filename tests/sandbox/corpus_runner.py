"""Runs the corpus of dangerous lines with nobody judging them: `python -m tests.sandbox.corpus_runner [--how unasked]`.

What is shown is what the sandbox alone stops. The lines are run inside of `isolation`, one after the other.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from covey.sandbox.plan import Views
from covey.sandbox.probe import probed
from tests.permissions.dangerous_project import HARMS, DangerousLine, dangerous_lines
from tests.sandbox import isolation
from tests.sandbox.corpus_trap import FIRST, LONGER, SAME_LENGTH, How, Seen, Trap

BASE = Path("/tmp/covey-corpus/a")
"""Inside, where that is memory."""
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PROGRAMS = ("node", "npm", "cargo", "go", "docker", "python3")
"""What the lines use and is often installed elsewhere."""
NOT_PROMISED = {"size", "system file", "variable"}
"""What the sandbox does not hide: names and sizes of files, harmless files of the system, the environment."""
CANNOT = 3
"""The exit code of a program that was not isolated, and has run nothing."""


class NoIsolation(Exception):
    """This system cannot isolate, or the isolation has a hole, or there is no sandbox inside. Nothing was run."""


class Job(msgspec.Struct, frozen=True):
    number: int
    """Of the line in the corpus."""
    how: How


class Result(msgspec.Struct, frozen=True):
    number: int
    how: How
    harm: str
    """What it was meant to do."""
    harms: tuple[str, ...]
    """What was seen of harm. `opened`: a file outside was read, whatever became of it."""
    unclear: bool
    """Whether its output is different each time, so that it cannot be said whether a secret is in it, encoded."""
    timed_out: bool
    exit_code: int | None
    changed: tuple[str, ...] = ()
    output: str = ""


def run(jobs: Sequence[Job]) -> Iterator[Result]:
    """What happened, line by line. Raises NoIsolation; RuntimeError if it has failed."""
    with isolation.outer() as outer:
        command = [sys.executable, "-m", "tests.sandbox.corpus_runner", "--inside", msgspec.json.encode(outer).decode()]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=isolation.SOURCE)
        with process:
            assert process.stdin and process.stdout
            process.stdin.write(msgspec.json.encode(jobs))
            process.stdin.close()
            for row in process.stdout:
                yield msgspec.json.decode(row, type=Result)
        if process.returncode == CANNOT:
            raise NoIsolation("this system has no isolation for us")
        if process.returncode:
            raise RuntimeError(f"the program inside has failed: {process.returncode}")


# ── inside ──


def _inside(outer: isolation.Outer) -> None:
    jobs = msgspec.json.decode(sys.stdin.buffer.read(), type=list[Job])
    environment = _environment()

    def work() -> None:
        if faults := isolation.faults(outer):
            print(f"The isolation has holes, nothing was run: {faults}", file=sys.stderr)
            os._exit(CANNOT)
        if any(job.how is How.APPROVED for job in jobs) and probed().views is not Views.OWN:
            print("There are no views inside of the isolation, nothing was run", file=sys.stderr)
            os._exit(CANNOT)
        trap, lines = Trap(BASE, environment), dangerous_lines()
        for job in jobs:
            result = _tried(trap, job, lines[job.number])
            sys.stdout.buffer.write(msgspec.json.encode(result) + b"\n")
            sys.stdout.buffer.flush()

    try:
        isolation.enter(work)
    except OSError as error:
        print(f"No isolation here: {error}", file=sys.stderr)
        sys.exit(CANNOT)


def _environment() -> dict[str, str]:
    found = (shutil.which(name) for name in PROGRAMS)
    path = dict.fromkeys((*SYSTEM_PATH.split(":"), *(os.path.dirname(place) for place in found if place)))
    rustup = os.path.expanduser("~/.rustup")
    return {
        "PATH": ":".join(path),
        "LANG": "C.UTF-8",
        "USER": "root",
        "LOGNAME": "root",
        "SHELL": "/bin/bash",
        "TERM": "dumb",
        "npm_config_update_notifier": "false",
        **({"RUSTUP_HOME": rustup} if os.path.isdir(rustup) else {}),
    }


def _tried(trap: Trap, job: Job, line: DangerousLine) -> Result:
    seen = trap.run(line.line, job.how)
    harms = {*seen.connections, *trap.where(seen.changed, job.how), *_printed(seen, line)}
    harms |= {"opened"} if seen.opened else set()
    unclear = False
    if line.harm in ("read", "env") and not harms & {"secret", "variable"}:
        encoded, unclear = _encoded(trap, job, line, seen)
        harms |= encoded
    changed = tuple(sorted(seen.changed))[:5]
    output = seen.output[:300].decode("utf-8", "replace")
    ending = (seen.timed_out, seen.exit_code, changed, output)
    return Result(job.number, job.how, line.harm, tuple(sorted(harms)), unclear, *ending)


def _printed(seen: Seen, line: DangerousLine) -> set[str]:
    tokens = {
        FIRST.files[0]: "secret",
        FIRST.files[1]: "secret",
        FIRST.variable: "variable",
        "root:x:0:0": "system file",
    }
    if "hostname" in line.line:
        tokens[Path("/etc/hostname").read_text().strip()] = "system file"
    return {kind for token, kind in tokens.items() if token.encode() in seen.output}


def _encoded(trap: Trap, job: Job, line: DangerousLine, seen: Seen) -> tuple[set[str], bool]:
    """Whether the output depends on a secret, and whether that cannot be said."""
    kind, has_it = ("variable", True) if line.harm == "env" else ("secret", seen.opened)
    if trap.run(line.line, job.how).output != seen.output:
        return set(), has_it
    if trap.run(line.line, job.how, SAME_LENGTH).output != seen.output:
        return {kind} if has_it else set(), False
    return {"size"} if trap.run(line.line, job.how, LONGER).output != seen.output else set(), False


# ── what is chosen, and what is shown ──


def sample(lines: Sequence[DangerousLine], count: int, seed: int = 1) -> list[int]:
    """Numbers of lines that work, spread over harms and mechanisms."""
    groups = defaultdict(list)
    for number, line in enumerate(lines):
        if line.works:
            groups[line.harm, line.how].append(number)
    draw, chosen, by_harm = random.Random(seed), list[int](), defaultdict(list)
    for (harm, _), numbers in groups.items():
        by_harm[harm].append(draw.sample(numbers, len(numbers)))
    while len(chosen) < count and any(by_harm.values()):
        for harm in HARMS:
            if by_harm[harm] and len(chosen) < count:
                group = by_harm[harm].pop(0)
                chosen.append(group.pop())
                by_harm[harm] += [group] if group else []
    return chosen


def stopped(result: Result) -> bool:
    """Whether the line did no harm of what the sandbox promises to stop; and, if it was about the environment, that."""
    done = set(result.harms) - ({"system file"} if result.harm == "env" else NOT_PROMISED)
    return not done and not result.unclear


def table(results: Iterable[Result]) -> str:
    """By harm: how many were run, and what was seen of harm."""
    tallies: dict[str, Counter[str]] = defaultdict(Counter)
    for result in results:
        tally = tallies[result.harm]
        tally["run"] += 1
        tally["stopped"] += stopped(result)
        tally.update(dict.fromkeys(result.harms, 1))
        tally["unclear"] += result.unclear
        tally["timed out"] += result.timed_out
    return "\n".join(f"{harm:8}{dict(tallies[harm])}" for harm in HARMS if harm in tallies)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--how", type=How, default=How.UNASKED, choices=[*How], metavar="bare|unasked|approved")
    parser.add_argument("--limit", type=int, default=0, help="a sample of so many lines; 0: all that work")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--harm", choices=HARMS, action="append", help="only these; may be given again")
    parser.add_argument("--results", type=Path, help="where to write what was seen of each line, as JSON lines")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.inside:
        _inside(msgspec.json.decode(given.inside, type=isolation.Outer))
    lines = dangerous_lines()
    chosen = sample(lines, given.limit or len(lines), given.seed)
    jobs = [Job(number, given.how) for number in chosen if not given.harm or lines[number].harm in given.harm]
    results = []
    for result in run(jobs):
        results.append(result)
        if not stopped(result) and given.how is not How.BARE:
            print(f"{result.harm} {result.harms} {lines[result.number].line!r}", flush=True)
        if given.results:
            with given.results.open("ab") as file:
                file.write(msgspec.json.encode(result) + b"\n")
    print(table(results))


if __name__ == "__main__":
    main()
