"""A cluster at work, struck again and again; then everything is mended, ends, and is judged.

make chaos SECONDS=600 SEED=7
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos.cluster import Cluster, cluster
from tests.chaos.faults import Blows, Fault
from tests.chaos.judge import Verdict, judge
from tests.chaos.load import Load, until
from tests.support.fake_model import FakeModel

OPEN_RUNS = 20
"""How many runs are open when a fault strikes, at least."""
NOTICED_S = 20.0
"""So long after a fault is over what it has interrupted has ended; N3 says 15 s after it began."""
END_S = 120.0
"""How long the last runs may take, when nothing is broken any more."""


@dataclass(frozen=True)
class Plan:
    seconds: float
    seed: int
    lease_s: float = 9.0
    workspaces: int = 8
    sessions: int = 3
    open_runs: int = 5
    kinds: tuple[str, ...] = ()
    faults: int = 0
    """Enough after so many, if this is given."""
    told: Callable[[str], None] = print


@dataclass
class Result:
    plan: Plan
    faults: list[Fault] = field(default_factory=list)
    verdict: Verdict = field(default_factory=Verdict)
    needless: list[str] = field(default_factory=list)
    """Runs that were interrupted although the node that had them was never lost: asked to leave at most."""
    unready: list[str] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    """What the nodes' logs have tracebacks for: nothing in a cluster's life is an accident."""

    @property
    def is_good(self) -> bool:
        return self.verdict.is_good and not self.other

    @property
    def other(self) -> list[str]:
        """What must not be, beside what was lost, doubled or out of order."""
        light = (f"only {fault.open_runs} runs were open when it struck: {fault}" for fault in self.faults)
        return [
            *(f"not ready again: {text}" for text in self.unready),
            *(f"needless: {text}" for text in self.needless),
            *(f"still active a minute after {f}: {', '.join(f.stuck)}" for f in self.faults if f.stuck),
            *(f"{fault}: {fault.broken}" for fault in self.faults if fault.broken),
            *(text for text, fault in zip(light, self.faults, strict=True) if fault.open_runs < OPEN_RUNS),
        ]

    def lines(self) -> Iterator[str]:
        kinds = Counter(fault.kind for fault in self.faults)
        single = sum(fault.is_single for fault in self.faults)
        both = f"{single} single, {len(self.faults) - single} overlapping"
        yield f"seed {self.plan.seed}: {len(self.faults)} faults, {both}"
        yield "  " + ", ".join(f"{count} × {kind}" for kind, count in kinds.most_common())
        yield from _times(self.faults)
        yield from self.verdict.lines()
        yield from (f"  {text}" for text in self.other[:40])
        yield from (f"  in the logs, {count} ×: {text}" for text, count in self.errors.most_common(10))

    def as_json(self) -> str:
        verdict = self.verdict
        return json.dumps(
            {
                "seed": self.plan.seed,
                "faults": len(self.faults),
                "single": sum(fault.is_single for fault in self.faults),
                "accepted": verdict.accepted,
                "lost": len(verdict.lost),
                "doubled": len(verdict.doubled),
                "disordered": len(verdict.disordered),
                "other": len(verdict.broken) + len(self.other),
                "outcomes": verdict.outcomes,
                "times": [
                    [fault.kind, fault.is_single, round(fault.noticed, 2), round(fault.ended, 2)]
                    for fault in self.faults
                    if fault.noticed is not None and fault.ended is not None and fault.orphaned
                ],
            }
        )


def _times(faults: list[Fault]) -> Iterator[str]:
    """Of faults after which others took over what was active."""
    by_kind: dict[str, list[Fault]] = defaultdict(list)
    for fault in faults:
        if fault.orphaned and fault.noticed is not None and fault.ended is not None and fault.kind != "hand-over":
            by_kind[f"{fault.kind}, {'single' if fault.is_single else 'overlapping'}"].append(fault)
    for kind, same in sorted(by_kind.items()):
        noticed, ended = [f.noticed or 0.0 for f in same], [f.ended or 0.0 for f in same]
        runs = sum(fault.orphaned for fault in same)
        yield (
            f"  {kind}: noticed after p50 {statistics.median(noticed):.1f} s, max {max(noticed):.1f} s;"
            f" active runs ended after p50 {statistics.median(ended):.1f} s, max {max(ended):.1f} s"
            f" ({len(same)} faults, {runs} runs)"
        )


async def run(plan: Plan, directory: Path) -> Result:
    """All of it. The caller removes the directory."""
    chance = random.Random(plan.seed)
    result = Result(plan)
    with FakeModel() as model:
        async with cluster(directory, model.url, lease_s=plan.lease_s) as made:
            load = Load(made.ports, directory, chance, plan.open_runs)
            model.on(load.answer)
            beside = [asyncio.create_task(made.look()), asyncio.create_task(made.supervise())]
            try:
                await made.start()
                await load.furnish(plan.workspaces, plan.sessions)
                await _strike(plan, made, load, result, chance)
                result.verdict = await asyncio.to_thread(judge, made, load, model)
                result.needless = list(_needless(result, made))
                result.errors = _tracebacks(member.node.log() for member in made.members)
            finally:
                for task in beside:
                    task.cancel()
    return result


def _tracebacks(logs: Iterable[str]) -> Counter[str]:
    """Each kind of them, and how often: what was said before it, and the error."""
    found: Counter[str] = Counter()
    for log in logs:
        said, lines = "", log.splitlines()
        for number, line in enumerate(lines):
            if line.startswith("Traceback"):
                inside = itertools.takewhile(lambda text: not text[:4].isdigit(), lines[number:])
                error = [text for text in inside if text and not text.startswith((" ", "Traceback", "During"))]
                found[f"{said}: {error[-1][:150] if error else ''}"] += 1
            elif line[:4].isdigit():
                said = " ".join(line.split()[2:])[:100]
    return found


async def _strike(plan: Plan, made: Cluster, load: Load, result: Result, chance: random.Random) -> None:
    async def loaded() -> int:
        await until(lambda: load.open_count >= OPEN_RUNS, END_S)
        return load.open_count

    blows = Blows(made, chance, plan.lease_s, loaded)
    working = [asyncio.create_task(load.work(place)) for place in load.places]
    watching = [asyncio.create_task(load.watch(place, deltas=n % 2 == 0)) for n, place in enumerate(load.places * 2)]
    result.faults = blows.faults
    deadline = time.monotonic() + plan.seconds
    try:
        while time.monotonic() < deadline and (not plan.faults or len(blows.faults) < plan.faults):
            if not await until(lambda: load.open_count >= OPEN_RUNS and made.sight.open_runs >= OPEN_RUNS, END_S):
                result.unready.append(f"there are only {load.open_count} open runs")
                break
            singles = sum(fault.is_single for fault in blows.faults)
            is_single = singles <= len(blows.faults) - singles
            struck = await (blows.one(plan.kinds) if is_single else blows.two(plan.kinds))
            result.unready += await made.settled()
            plan.told("; ".join(map(str, struck)) + f" ({load.open_count} open, {len(load.accepted)} accepted)")
            if result.unready:
                break
        made.mend()
        await _wind_down(made, load, working)
    finally:
        load.is_watching = False
        for task in (*working, *watching):
            task.cancel()
        await asyncio.gather(*working, *watching, return_exceptions=True)


def _needless(result: Result, made: Cluster) -> Iterator[str]:
    """Interrupted, although no node that had its workspace was lost: that an owner left in order interrupts nothing."""
    lost = [fault for fault in result.faults if fault.interrupts]
    for run_id, (workspace, at) in result.verdict.interrupted.items():
        near = [fault for fault in result.faults if fault.began - 1 <= at <= _noticed_until(fault, result.faults)]
        if not any(f in lost and made.owned_between(workspace, f.node, f.began - 1, f.over) for f in near):
            yield f"{run_id} of {workspace} was interrupted at {at:.1f}; then: {', '.join(map(str, near)) or 'nothing'}"


def _noticed_until(fault: Fault, faults: list[Fault]) -> float:
    """While the store is away nobody can notice anything."""
    without_store = (each.over for each in faults if not each.node and fault.began <= each.over)
    return max([fault.over, *(over for over in without_store if over <= fault.over + NOTICED_S)]) + NOTICED_S


async def _wind_down(made: Cluster, load: Load, working: list[asyncio.Task[None]]) -> None:
    """No new prompts; what was acknowledged ends; nodes stop in order."""
    load.is_posting = False
    await asyncio.wait(working, timeout=END_S)
    await until(lambda: made.sight.open_runs == 0 and load.open_count == 0, END_S)
    for member in made.members:
        member.is_struck = True  # so that nobody starts it again
        if member.node.is_running:
            await made.run(member.node.stop)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--seed", type=int, default=0, help="0: any")
    parser.add_argument("--lease", type=float, default=9.0)
    parser.add_argument("--kinds", default="", help="only these, with commas")
    parser.add_argument("--keep", action="store_true", help="leave the logs of the nodes")
    parser.add_argument("--json", metavar="FILE", help="add a line with the figures to this file")
    args = parser.parse_args()
    seed = args.seed or random.SystemRandom().randrange(1, 10**6)
    print(f"seed {seed}, {args.seconds:.0f} s", flush=True)
    directory = Path(tempfile.mkdtemp(prefix="covey-chaos-"))
    kinds = tuple(kind for kind in args.kinds.split(",") if kind)
    plan = Plan(args.seconds, seed, args.lease, kinds=kinds, told=lambda text: print(text, flush=True))
    try:
        result = asyncio.run(run(plan, directory))
    finally:
        if args.keep:
            print(f"the logs are in {directory}")
        else:
            shutil.rmtree(directory, ignore_errors=True)
    print("\n".join(result.lines()))
    if args.json:
        with open(args.json, "a") as file:
            print(result.as_json(), file=file)
    return 0 if result.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
