"""The verdict: what was acknowledged is in the database once, ended once, in order. By counting, and by the oracle."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from covey.doctor.shared_store import examine_workspace
from tests.chaos.cluster import Cluster
from tests.chaos.load import Load, asked
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
    interrupted: dict[str, tuple[str, float]] = field(default_factory=dict)
    """Of each run that was interrupted its workspace, and when it ended, by the clock on the wall."""
    events: int = 0
    tools: int = 0
    """Calls of tools in turns that completed."""

    @property
    def is_good(self) -> bool:
        return not (self.lost or self.doubled or self.disordered or self.broken)

    def lines(self) -> Iterator[str]:
        outcomes = ", ".join(f"{count} {name}" for name, count in sorted(self.outcomes.items()))
        yield f"{self.accepted} prompts acknowledged: {outcomes}; {self.tools} tools, {self.events} events"
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
            verdict.interrupted[run_id] = (row["workspace_id"], value["ended_at"])
        if ends[run_id] > 1:
            verdict.doubled.append(f"{run_id} ended {ends[run_id]} times")
        if row["ended"] and not ends[run_id]:
            verdict.lost.append(f"{run_id} has no terminal event")
        if run_id in load.cancelled and row["state"] != "cancelled":
            verdict.broken.append(f"{run_id} was covered by a cancel, and is {row['state']}")
    states = {run_id: row["state"] for run_id, row in runs.items()}
    _judge_prompts(model, states, verdict)
    _judge_tools(cluster, load, states, verdict)
    verdict.disordered += load.disordered
    verdict.broken += load.findings
    for workspace_id in {row["workspace_id"] for row in rows}:
        for finding in examine_workspace(cluster.url, workspace_id).findings:
            getattr(verdict, _NAMES.get(finding.kind, "broken")).append(str(finding))
    return verdict


_NAMES = {
    "two_terminals": "doubled",
    "two_turns": "doubled",
    "two_active": "doubled",
    "wrong_order": "disordered",
    "message_order": "disordered",
    "after_terminal": "disordered",
    "lost_history": "lost",
    "row_missing": "lost",
    "missing_terminal": "lost",
}
"""Under which name of the verdict a finding of the oracle counts; the rest is broken."""


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


def _judge_prompts(model: FakeModel, states: dict[str, str], verdict: Verdict) -> None:
    """No prompt was begun twice, alone or folded with others; and none was completed that was never begun."""
    begun = Counter(run_id for request in model.requests for run_id in asked(request))
    twice = [run_id for run_id, count in begun.items() if count > 1]
    verdict.doubled += [f"the model was asked {begun[run_id]} times about {run_id}" for run_id in twice]
    never = [run_id for run_id, state in states.items() if state == "completed" and not begun[run_id]]
    verdict.lost += [f"{run_id} completed, and the model was never asked" for run_id in never]


def _judge_tools(cluster: Cluster, load: Load, states: dict[str, str], verdict: Verdict) -> None:
    """No tool ran twice; and of a turn that completed each ran, and said so."""
    query = "SELECT run_id, value FROM messages WHERE role IN ('assistant', 'tool') ORDER BY workspace_id, position"
    calls: dict[str, str] = {}
    results: dict[str, str] = {}
    for row in cluster.postgres.sql_in(cluster.database, query):
        for part in json.loads(row["value"])["parts"]:
            if part["type"] == "tool_call":
                calls[part["data"]["id"]] = row["run_id"]
            elif part["type"] == "tool_result":
                results[part["data"]["tool_call_id"]] = part["data"]["content"]
    for run_id in load.called:
        call, times = f"call-{run_id}", load.effects(run_id)
        if times > 1:
            verdict.doubled.append(f"the tool of {run_id} ran {times} times")
        if states.get(calls.get(call, run_id)) != "completed":
            continue
        verdict.tools += 1
        if times == 0 or f"ran {run_id}" not in results.get(call, ""):
            said = results.get(call, "there is no result")
            verdict.lost.append(f"the tool of {run_id} ran {times} times, and its turn completed: {said[:300]!r}")
