"""The verdict: what was acknowledged is in the database once, ended once, in order. By counting, and by the oracle."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from covey.doctor.shared_store import examine_workspace
from tests.chaos.cluster import Cluster
from tests.chaos.load import Load
from tests.support.fake_model import FakeModel


@dataclass
class Verdict:
    accepted: int = 0
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    disordered: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    """Promises that the oracle, or a client, found broken."""
    outcomes: Counter[str] = field(default_factory=Counter)
    interrupted: dict[str, float] = field(default_factory=dict)
    """When each run that was interrupted ended, by the clock on the wall."""
    events: int = 0

    @property
    def is_good(self) -> bool:
        return not (self.lost or self.doubled or self.disordered or self.broken)

    def lines(self) -> Iterator[str]:
        outcomes = ", ".join(f"{count} {name}" for name, count in sorted(self.outcomes.items()))
        yield f"{self.accepted} prompts acknowledged: {outcomes}; {self.events} events"
        counts = f"{len(self.lost)} lost, {len(self.doubled)} doubled, {len(self.disordered)} out of order"
        yield f"{counts}, {len(self.broken)} other findings"
        for name in ("lost", "doubled", "disordered", "broken"):
            for what in getattr(self, name)[:20]:
                yield f"  {name}: {what}"


def judge(cluster: Cluster, load: Load, model: FakeModel) -> Verdict:
    verdict = Verdict(accepted=len(load.accepted))
    rows = cluster.postgres.sql_in(cluster.database, "SELECT workspace_id, run_id, state, ended, value FROM runs")
    runs = {row["run_id"]: row for row in rows}
    ends, last = _ends(cluster, verdict)
    for place in load.places:
        for number, watcher in enumerate(place.watchers):
            if watcher.seq < last.get(place.id, 0):
                verdict.disordered.append(f"stream {number} of {place.id} stopped at {watcher.seq} of {last[place.id]}")
    for run_id in load.accepted:
        if run_id not in runs:
            verdict.lost.append(f"{run_id} was acknowledged, and is not in the database")
        elif not runs[run_id]["ended"]:
            verdict.lost.append(f"{run_id} never ended: {runs[run_id]['state']}")
    for run_id, row in runs.items():
        verdict.outcomes[row["state"]] += 1
        value = json.loads(row["value"])
        if row["state"] == "failed":
            verdict.broken.append(f"{run_id} failed: {value.get('error')}")
        if row["state"] == "interrupted":
            verdict.interrupted[run_id] = value["ended_at"]
        if ends[run_id] > 1:
            verdict.doubled.append(f"{run_id} ended {ends[run_id]} times")
        if row["ended"] and not ends[run_id]:
            verdict.lost.append(f"{run_id} has no terminal event")
        if run_id in load.cancelled and row["state"] != "cancelled":
            verdict.broken.append(f"{run_id} was covered by a cancel, and is {row['state']}")
    _judge_work(load, model, {run_id: row["state"] for run_id, row in runs.items()}, verdict)
    verdict.disordered += load.disordered
    verdict.broken += load.findings
    for workspace_id in {row["workspace_id"] for row in rows}:
        verdict.broken.extend(str(finding) for finding in examine_workspace(cluster.url, workspace_id).findings)
    return verdict


def _ends(cluster: Cluster, verdict: Verdict) -> tuple[Counter[str], dict[str, int]]:
    """By run: its terminal events; by workspace: its last event. Each log has every number once, from the first on."""
    ends: Counter[str] = Counter()
    last: dict[str, int] = {}
    query = "SELECT workspace_id, seq, encoded FROM events ORDER BY workspace_id, seq"
    for row in cluster.postgres.sql_in(cluster.database, query):
        verdict.events += 1
        before = last.get(row["workspace_id"], row["seq"] - 1)
        if row["seq"] != before + 1:
            verdict.disordered.append(f"{row['workspace_id']}: event {row['seq']} follows {before}")
        last[row["workspace_id"]] = row["seq"]
        value = json.loads(row["encoded"])
        if value["type"] == "run_complete":
            ends[value["payload"]["payload"]["run_id"]] += 1
    return ends, last


def _judge_work(load: Load, model: FakeModel, states: dict[str, str], verdict: Verdict) -> None:
    """No prompt was begun twice, no tool ran twice, and one of a run that completed did run."""
    begun = Counter(request.prompt for request in model.requests if request.call_number == 0)
    verdict.doubled += [
        f"the model was asked {count} times for {prompt!r}" for prompt, count in begun.items() if count > 1
    ]
    for run_id, posted in load.accepted.items():
        if posted.kind != "tool":
            continue
        times = load.effects(run_id)
        if times > 1:
            verdict.doubled.append(f"the tool of {run_id} ran {times} times")
        is_alone = begun[f"tool {run_id}"] == 1  # no other prompt was folded into its turn before the model was asked
        if not times and is_alone and states.get(run_id) == "completed":
            verdict.lost.append(f"{run_id} completed without its tool")
