"""While the store refuses to write, whoever watches is told so, and a run that waits for it says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.engine import Gate, running, within

pytestmark = pytest.mark.anyio


async def test_who_watches_a_run_is_told_that_the_store_refuses_and_the_run_goes_on_when_it_can(
    tmp_path: Path,
) -> None:
    async with running(tmp_path) as engine:
        gate = Gate()
        engine.model.answer("one ", gate, "two")
        await engine.post("hello", "a")
        await gate.reached()
        watching = engine.workspace.stream.open(engine.session_id, deltas=True)
        seen = watching.present
        assert b"warning" not in seen
        engine.disk.full = True
        gate.open()
        while b'"warning"' not in seen:
            await within(watching.live.wait())
            seen += watching.live.take()
        assert b'"waiting_on":"store"' in seen and b"The run goes on by itself" in seen
        assert b"the disk is full" in seen
        late = engine.workspace.stream.open(engine.session_id, deltas=True)
        assert b"The run goes on by itself" in late.present and b'"waiting_on":"store"' in late.present
        assert [run.waiting_on for run in await engine.workspace.runs.newest("", "", 10)] == ["store"]
        assert (await engine.workspace.runs.get("a")).waiting_on == "store"
        engine.disk.full = False
        run = await engine.ended("a")
        assert (run.state, run.waiting_on) == ("completed", None)
        after = engine.workspace.stream.open(engine.session_id, deltas=True)
        assert b"warning" not in after.present
        for reader in (watching, late, after):
            reader.live.close()
