"""GET /metrics: Prometheus text that a scraper can read, with numbers that are exact."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from covey.engine.recorder import Batch
from tests.server.site import serving
from tests.support.engine import Gate, within

pytestmark = pytest.mark.anyio

SAMPLE = re.compile(r'^(covey_[a-z_]+)(?:\{([a-z]+)="([^"\\\n]*)"\})? (-?[0-9.e+-]+)$')


def read(text: str) -> dict[str, float]:
    """The samples by name and label; fails on anything that is not the text format."""
    kinds: dict[str, str] = {}
    samples: dict[str, float] = {}
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            assert name not in kinds, f"{name} is described twice"
            assert kind in ("counter", "gauge")
            assert kind != "counter" or name.endswith("_total")
            kinds[name] = kind
            continue
        match = SAMPLE.match(line)
        assert match, line
        name, _, label, value = match.groups()
        assert name in kinds, f"{name} has no type before its first sample"
        key = f"{name} {label}" if label else name
        assert key not in samples
        samples[key] = float(value)
    return samples


async def test_what_there_is_can_be_read(tmp_path: Path) -> None:
    async with serving(tmp_path) as site:
        workspace = await site.workspace()
        sid = (await workspace.sessions.create("")).id
        gate = Gate()
        site.model.answer(gate)
        for run_id in "ab":
            prompt = {"session_id": sid, "prompt": "x", "run_id": run_id}
            await site.request("POST", f"/v1/workspaces/{workspace.id}/agent", prompt)
        await gate.reached()
        await within(workspace._parts.recorder.write(Batch()))  # all that was written by now is published
        answer = await site.request("GET", "/metrics")
        assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
        samples = read(answer.body.decode())
        assert samples["covey_workspaces_open"] == 1
        assert samples["covey_event_streams_open"] == 0
        assert samples["covey_runs_open active"] == 1
        assert samples["covey_runs_open queued"] == 1
        assert samples["covey_prompts_accepted_total"] == 2
        assert samples[f"covey_events_total {workspace.id}"] == workspace._parts.feed.last_seq
        gate.open()
        for run_id in "ab":
            await site.request("GET", f"/v1/workspaces/{workspace.id}/runs/{run_id}?wait=10")
        samples = read((await site.request("GET", "/metrics")).body.decode())
        assert samples["covey_runs_ended_completed_total"] == 2
        assert samples["covey_runs_open active"] == 0


async def test_large_numbers_are_exact(tmp_path: Path) -> None:
    """Six digits are not enough: a counter that seems to stand still has no rate."""
    async with serving(tmp_path) as site:
        site.counts["prompts_accepted"] = 123_456_789
        samples = read((await site.request("GET", "/metrics")).body.decode())
        assert samples["covey_prompts_accepted_total"] == 123_456_789
