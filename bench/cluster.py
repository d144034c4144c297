"""One server on SQLite, a node that owns its workspace, and the same through another node: side by side, in one run.

PostgreSQL is a real one from a wheel, on this machine, with fsync. Rounds go around among the three, so that whatever
else the machine does befalls all of them.
"""

from __future__ import annotations

import contextlib
import re
import statistics
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.latency import _cancel, _prompt
from bench.processes import TOKEN, Process, covey_server, fast_model, running, scratch, write_config
from bench.report import Figure, best_round
from bench.rig import Options, Rig
from bench.wire import TERMINAL, Caller, Stream
from tests.support.postgres import PostgresProcess, free_port

ROUNDS = 3
PACE_S = 0.005
"""Between two words: slow enough that none are merged."""
CHANGES = re.compile(r"covey_store_commit_changes_sum (\d+)")


@dataclass
class Way:
    """One of the three, and the processes whose CPU it costs."""

    name: str
    rig: Rig
    processes: Sequence[Process]
    postgres: PostgresProcess | None = None

    def cpu_s(self) -> float:
        return sum(process.cpu_s() for process in self.processes)

    def database_s(self) -> float:
        """CPU of PostgreSQL and all its children."""
        if self.postgres is None:
            return 0.0
        postmaster = int((self.postgres.data / "postmaster.pid").read_text().split()[0])
        return sum(_cpu_of(pid) for pid in (postmaster, *_children(postmaster)))


def measure(options: Options) -> Iterator[Figure]:
    with ways(options) as found:
        samples = options.size(100, 25)
        yield from _compared(found, "prompt -> 202", lambda way, stream: _prompt(way.rig, stream)[0], samples)
        yield from _compared(found, "prompt -> first delta", lambda way, stream: _prompt(way.rig, stream)[2], samples)
        cancels = options.size(40, 15)
        yield from _compared(found, "cancel -> terminal event", lambda way, stream: _cancel(way.rig, stream), cancels)
        yield from _words(found, options.size(2000, 500))
        yield from _changes(found, options.size(200, 50))


# ── times ──


def _compared(
    found: Sequence[Way], name: str, sample: Callable[[Way, Stream], float], samples: int
) -> Iterator[Figure]:
    times: dict[str, list[list[float]]] = {way.name: [] for way in found}
    for _ in range(ROUNDS):
        for way in found:
            stream = way.rig.stream()
            times[way.name].append([sample(way, stream) for _ in range(samples)])
            stream.close()
    yield from _beside(name, {way: statistics.median(best_round(rounds)) for way, rounds in times.items()}, "ms")


def _beside(name: str, values: dict[str, float], unit: str, notes: dict[str, str] | None = None) -> Iterator[Figure]:
    first = next(iter(values.values()))
    for way, value in values.items():
        note = "; ".join(text for text in (f"{value / first:.2f} × SQLite", (notes or {}).get(way, "")) if text)
        yield Figure(f"{name}, {way}", value, unit, note=note)


# ── CPU ──


def _words(found: Sequence[Way], words: int) -> Iterator[Figure]:
    """Of the servers, for each word that one client sees."""
    costs: dict[str, list[float]] = {way.name: [] for way in found}
    shares: dict[str, list[float]] = {way.name: [] for way in found}
    for _ in range(ROUNDS):
        for way in found:
            stream = way.rig.stream()
            before, database = way.cpu_s(), way.database_s()
            way.rig.prompt(way.rig.session(), f"chunks={words} gap={PACE_S}")
            stream.until(TERMINAL)
            costs[way.name].append((way.cpu_s() - before) / words * 1e6)
            shares[way.name].append((way.database_s() - database) / words * 1e6)
            stream.close()
    notes = {way: f"and {min(share):.0f} µs of PostgreSQL" for way, share in shares.items() if any(share)}
    yield from _beside("CPU for each word", {way: min(cost) for way, cost in costs.items()}, "µs", notes)


def _changes(found: Sequence[Way], runs: int) -> Iterator[Figure]:
    """Of short runs, one after the other. How many changes a run has is counted where the store counts them."""
    changes, costs, shares = 0.0, {}, {}
    for way in found:
        stream = way.rig.stream()
        before, database, counted = way.cpu_s(), way.database_s(), _counted(way)
        session = way.rig.session()
        for _ in range(runs):
            stream.forget()
            way.rig.prompt(session, "chunks=1")
            stream.until(TERMINAL)
        costs[way.name], shares[way.name] = way.cpu_s() - before, way.database_s() - database
        changes = max(changes, _counted(way) - counted)
        stream.close()
    notes = {way: f"and {share / changes * 1e6:.0f} µs of PostgreSQL" for way, share in shares.items() if share}
    values = {way: cost / changes * 1e6 for way, cost in costs.items()}
    yield Figure("changes in a short run", changes / runs, "")
    yield from _beside("CPU for each change", values, "µs", notes)


def _counted(way: Way) -> int:
    """Changes that were written so far by whoever owns the workspace."""
    caller = Caller(way.processes[0].port)
    caller.send("GET", "/metrics")
    text = caller.receive()[1].decode()
    caller.close()
    found = CHANGES.search(text)
    return int(found[1]) if found else 0


def _cpu_of(pid: int) -> float:
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
    except (OSError, IndexError):
        return 0.0


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


# ── the three ──


@contextlib.contextmanager
def ways(options: Options) -> Iterator[list[Way]]:
    with contextlib.ExitStack() as stack:
        place = stack.enter_context(scratch())
        model = stack.enter_context(fast_model(place))
        url = model.line.strip()
        for name in ("sqlite", "a", "b", "work", "shared"):
            (place / name).mkdir()
        single = stack.enter_context(covey_server(place / "sqlite", url, options.server))
        postgres = PostgresProcess.fresh(fsync="on", full_page_writes="on")
        stack.callback(postgres.remove)
        postgres.sql("CREATE DATABASE bench")
        a, b = (stack.enter_context(_node(place / name, url, options, postgres)) for name in "ab")
        alone = _rig(single, model, place / "work")
        owner = _rig(a, model, place / "shared")
        passed = Rig(b, model, Caller(b.port), owner.workspace_id, place)
        for rig in (alone, owner, passed):
            stack.callback(rig.caller.close)
            rig.warm_up()
        yield [
            Way("SQLite", alone, [single]),
            Way("PostgreSQL", owner, [a], postgres),
            Way("PostgreSQL through another node", passed, [a, b], postgres),
        ]


def _rig(server: Process, model: Process, folder: Path) -> Rig:
    caller = Caller(server.port)
    workspace = caller.call("POST", "/v1/workspaces", {"path": str(folder), "client_id": str(uuid.uuid4())})
    return Rig(server, model, caller, workspace["id"], folder.parent)


@contextlib.contextmanager
def _node(place: Path, model_url: str, options: Options, postgres: PostgresProcess) -> Iterator[Process]:
    port = free_port()
    config = write_config(place / "config.toml", model_url)
    secret = place / "secret"
    secret.write_text(TOKEN)
    command = [*options.server, "--host", f"tcp://127.0.0.1:{port}", "--data-dir", str(place / "data")]
    command += ["--config", str(config), "--store", postgres.url("bench"), "--node", place.name]
    command += ["--advertise", f"http://127.0.0.1:{port}", "--cluster-secret-file", str(secret)]
    with running(command, place / "server.log", {"COVEY_TOKEN": TOKEN}) as process:
        yield process
