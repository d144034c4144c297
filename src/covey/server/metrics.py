"""GET /metrics: counts and gauges as Prometheus text, read off the live objects on request."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterable

from covey.engine.workspaces import Workspaces

_STARTED = time.monotonic()
_DESCRIPTORS = "/proc/self/fd"


REASONS = ("cluster_takeovers_", "runs_interrupted_")
"""Counts of one thing by its reason, which is the rest of their name."""


def render(workspaces: Workspaces, counts: dict[str, int], streams: int, more: Iterable[str] = ()) -> bytes:
    """`more`: lines about what only some servers have."""
    return "".join((*_lines(workspaces, counts, streams), *more)).encode()


def _lines(workspaces: Workspaces, counts: dict[str, int], streams: int) -> Iterable[str]:
    open_workspaces = workspaces.all()
    runs = [run for workspace in open_workspaces for run in workspace.runs.open_runs()]
    usage = resource.getrusage(resource.RUSAGE_SELF)
    yield from _metric("uptime_seconds", "gauge", time.monotonic() - _STARTED)
    yield from _metric("process_cpu_seconds_total", "counter", usage.ru_utime + usage.ru_stime)
    yield from _metric("process_resident_memory_peak_bytes", "gauge", usage.ru_maxrss * 1024)
    if os.path.isdir(_DESCRIPTORS):
        yield from _metric("process_open_descriptors", "gauge", len(os.listdir(_DESCRIPTORS)))
    yield from _metric("workspaces_open", "gauge", len(open_workspaces))
    yield from _metric("event_streams_open", "gauge", streams)
    yield "# TYPE covey_runs_open gauge\n"
    for state in ("accepted", "queued", "active", "folded"):
        yield f'covey_runs_open{{state="{state}"}} {sum(run.state == state for run in runs)}\n'
    yield "# TYPE covey_events_total counter\n"
    for workspace in open_workspaces:
        yield f'covey_events_total{{workspace="{workspace.id}"}} {workspace.stream.last_seq()}\n'
    yield from _counters(counts)


def _counters(counts: dict[str, int]) -> Iterable[str]:
    told = ""
    for name, value in sorted(counts.items()):
        family = next((reason for reason in REASONS if name.startswith(reason)), "")
        if not family:
            yield from _metric(f"{name}_total", "counter", value)
            continue
        whole = f"covey_{family.rstrip('_')}_total"
        if whole != told:
            yield f"# TYPE {whole} counter\n"
            told = whole
        yield f'{whole}{{reason="{name.removeprefix(family)}"}} {value}\n'


def _metric(name: str, kind: str, value: float) -> Iterable[str]:
    yield f"# TYPE covey_{name} {kind}\n"
    yield f"covey_{name} {value}\n"
