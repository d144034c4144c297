"""Versions meet in one database, under load: an upgrade interrupts nothing, and older nodes keep their hands off (N11).

The version of the future is this one with a further step of the tables and another format of values; the one of the
past is the commit before there were nodes, whose store on PostgreSQL has one server and the first step of the tables.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.chaos.cluster import Cluster, Member, cluster
from tests.chaos.judge import Verdict, judge
from tests.chaos.load import Load, until
from tests.support import old_covey
from tests.support.fake_model import FakeModel
from tests.support.nodes import TOKEN
from tests.support.other_covey import BEFORE
from tests.support.postgres import free_port

LEASE_S = 9.0
OPEN_RUNS = 12
END_S = 120.0
NEWER = (sys.executable, "-m", "tests.support.other_covey", "newer")
ROOT = str(old_covey.ROOT)


@contextlib.asynccontextmanager
async def at_work(load: Load, made: Cluster) -> AsyncIterator[None]:
    """People work and watch meanwhile; afterwards everything ends."""
    looking = asyncio.create_task(made.look())
    working = [asyncio.create_task(load.work(place)) for place in load.places]
    watching = [asyncio.create_task(load.watch(place, deltas=True)) for place in load.places]
    try:
        assert await until(lambda: load.open_count >= OPEN_RUNS, END_S), "nobody works"
        yield
        load.is_posting = False
        await asyncio.wait(working, timeout=END_S)
        assert await until(lambda: made.sight.open_runs == 0 and load.open_count == 0, END_S), "some runs do not end"
    finally:
        load.is_watching = False
        for task in (looking, *working, *watching):
            task.cancel()
        await asyncio.gather(looking, *working, *watching, return_exceptions=True)


def good(verdict: Verdict) -> Verdict:
    assert verdict.is_good, "\n".join(verdict.lines())
    assert verdict.accepted > OPEN_RUNS
    return verdict


# ── to the next version ──


async def upgrade(made: Cluster, member: Member) -> None:
    """As Kubernetes does it: SIGTERM, wait, start the new one, wait until it is ready."""
    code = await made.run(member.node.stop)
    assert code == 0, member.node.log()[-3000:]
    member.node.program = NEWER
    member.node.env["PYTHONPATH"] = ROOT
    await made.run(member.node.start)
    await made.run(member.node.wait_ready)


async def roll(directory: Path, model: FakeModel) -> tuple[Verdict, list[str]]:
    async with cluster(directory, model.url, lease_s=LEASE_S) as made:
        load = Load(made.ports, directory, random.Random(1), 3)
        model.on(load.answer)
        await made.start()
        await load.furnish(5, 2)
        async with at_work(load, made):
            for member in made.members:
                before = len(load.accepted)
                await upgrade(made, member)
                assert await until(lambda n=before: len(load.accepted) >= n + 5, END_S)  # type: ignore[misc]
        query = (
            "SELECT w.id FROM workspaces w JOIN logs l ON l.workspace_id = w.id WHERE l.min_version < 2 AND fence > 1"
        )
        left = [row["id"] for row in await asyncio.to_thread(made.postgres.sql_in, made.database, query)]
        return await asyncio.to_thread(judge, made, load, model), left


@pytest.mark.timeout(600)
def test_n10_n11_a_rolling_upgrade_under_load_interrupts_and_loses_nothing(tmp_path: Path) -> None:
    with FakeModel() as model:
        verdict, left = asyncio.run(roll(tmp_path, model))
    assert good(verdict).outcomes["interrupted"] == 0, verdict.outcomes
    assert left == [], "all that changed hands belongs to the new version"


# ── from the version before ──


class OldServer:
    """A server of the commit before, on the same database; it is the only one, and knows of no other."""

    def __init__(self, source: Path, directory: Path, config: Path, url: str) -> None:
        self.port = free_port()
        directory.mkdir()
        env = {**os.environ, "PYTHONPATH": f"{source}:{ROOT}", "HOME": str(directory), "COVEY_TOKEN": TOKEN}
        command = [sys.executable, "-m", "tests.support.other_covey", "old", url, "serve"]
        command += [
            "--host",
            f"tcp://127.0.0.1:{self.port}",
            "--data-dir",
            str(directory / "data"),
            "--config",
            str(config),
        ]
        self.log = directory / "log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=env, cwd=directory)

    def end(self) -> None:
        """It cannot hand over: it is killed, as by a machine that goes down."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(30)


def unpacked(into: Path) -> Path:
    source = old_covey.unpack(into, BEFORE)
    if source is None:
        pytest.skip(f"the history of this clone does not reach back to {BEFORE}: a full clone has it")
    return source


async def succeed(directory: Path, source: Path, model: FakeModel) -> tuple[Verdict, str]:
    async with cluster(directory, model.url, lease_s=LEASE_S) as made:
        config = made.members[0].node.directory / "old.toml"
        text = (made.members[0].node.directory / "covey.toml").read_text()
        config.write_text(text.partition("[cluster]")[0])
        old = OldServer(source, directory / "old", config, made.url)
        ports = [old.port]
        load = Load(ports, directory, random.Random(2), 3)
        model.on(load.answer)
        try:
            await load.furnish(4, 2)
            async with at_work(load, made):
                old.end()
                await made.start()
                ports[:] = made.ports
                before = len(load.accepted)
                assert await until(lambda: len(load.accepted) >= before + 20, END_S)
            again = await asyncio.to_thread(OldServer, source, directory / "again", config, made.url)
            await asyncio.to_thread(again.process.wait, 60)
        finally:
            if old.process.poll() is None:
                old.end()
        return await asyncio.to_thread(judge, made, load, model), again.log.read_text()


@pytest.mark.heavy
@pytest.mark.timeout(600)
def test_n11_three_nodes_succeed_a_server_of_the_version_before_under_load(tmp_path: Path) -> None:
    source = unpacked(tmp_path / "source")
    with FakeModel() as model:
        verdict, refusal = asyncio.run(succeed(tmp_path, source, model))
    good(verdict)
    assert "newer Covey" in refusal, "and a server of that version does not touch what the new ones have made"
