"""`make test-upgrade`: what people do who have an older Covey, with wheels in environments of their own, under load.

Three nodes of the version before, with its tables, become nodes of this one, one after the other; and the store of one
server of the version before there were nodes is copied into PostgreSQL, where three nodes go on with it. Needs the
package index, and a clone whose history reaches back to those versions.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.chaos.cluster import Cluster, Member, cluster
from tests.chaos.judge import Verdict, judge
from tests.chaos.load import Load, until
from tests.chaos.test_rolling_upgrade import END_S, LEASE_S, at_work, good
from tests.support import old_covey
from tests.support.fake_model import FakeModel
from tests.support.nodes import TOKEN, cluster_config
from tests.support.other_covey import BEFORE
from tests.support.postgres import free_port

LAST = "d9f22f4"
"""The version before this one: the first with nodes, and two steps of the tables."""
THIS = "HEAD"
STEP_S = 600


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="covey-upgrade-") as name:
        place = Path(name)
        lock = old_covey.ROOT / "requirements-build.lock"
        builder = _environment(place / "builder", "--require-hashes", "-r", str(lock))
        old, last, this = (_installed(place / f"covey-{commit}", commit, builder) for commit in (BEFORE, LAST, THIS))
        (rolling := place / "rolling").mkdir()
        with FakeModel() as model:
            _told(
                f"three nodes of {LAST} become nodes of this version", asyncio.run(_rolled(rolling, model, last, this))
            )
        (copying := place / "copying").mkdir()
        with FakeModel() as model:
            lines = asyncio.run(_copied(copying, model, old, this))
            _told(f"the store of one server of {BEFORE} is copied", lines)
    return 0


def _told(what: str, lines: Sequence[str]) -> None:
    print(f"{what}:\n  " + "\n  ".join(lines), flush=True)


# ── wheels ──


def _called(*command: str | Path, cwd: Path | None = None) -> str:
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, timeout=STEP_S, check=False)
    if done.returncode:
        sys.exit(f"failed: {' '.join(words)}\n{done.stdout}{done.stderr}")
    return done.stdout


def _environment(place: Path, *wanted: str) -> Path:
    _called(sys.executable, "-m", "venv", place)
    _called(place / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", *wanted)
    return place / "bin" / "python"


def _installed(place: Path, commit: str, builder: Path) -> Path:
    """The python of an environment with Covey as it was at a commit, from a wheel."""
    (source := place / "source").mkdir(parents=True)
    _called("git", "archive", "-o", place / "source.tar", commit, cwd=old_covey.ROOT)
    _called("tar", "-xf", place / "source.tar", "-C", source)
    _called(builder, "-m", "hatchling", "build", "-t", "wheel", "-d", place, cwd=source)
    (wheel,) = place.glob("*.whl")
    return _environment(place / "env", str(wheel), "asyncpg")


def _program(python: Path) -> Sequence[str]:
    return (str(python), "-P", "-m", "covey")


def _runs(member: Member, python: Path) -> None:
    member.node.program = _program(python)
    member.node.env["PYTHONPATH"] = ""


# ── one node after the other ──


async def _rolled(directory: Path, model: FakeModel, last: Path, this: Path) -> list[str]:
    async with cluster(directory, model.url, lease_s=LEASE_S) as made:
        load = Load(made.ports, directory, random.Random(3), 3)
        model.on(load.answer)
        for member in made.members:
            _runs(member, last)
        await made.start()
        steps = [await _last_step(made)]
        await load.furnish(5, 2)
        async with at_work(load, made):
            for member in made.members:
                before = len(load.accepted)
                assert await made.run(member.node.stop) == 0, member.node.log()[-3000:]
                _runs(member, this)
                await made.run(member.node.start)
                await made.run(member.node.wait_ready)
                assert await until(lambda n=before: len(load.accepted) >= n + 20, END_S)  # type: ignore[misc]
        steps.append(await _last_step(made))
        verdict = good(await asyncio.to_thread(judge, made, load, model))
        assert verdict.outcomes["interrupted"] == 0, verdict.outcomes
        assert steps[0] < steps[1], f"the tables are those of the version before: {steps}"
        return [f"tables: step {steps[0]} before, {steps[1]} now", *_said(verdict, load)]


async def _last_step(made: Cluster) -> int:
    query = "SELECT max(step) AS step FROM schema_steps"
    return int((await asyncio.to_thread(made.postgres.sql_in, made.database, query))[0]["step"])


def _said(verdict: Verdict, load: Load) -> Iterator[str]:
    yield from verdict.lines()
    yield f"streams resumed {sum(watcher.resumed for place in load.places for watcher in place.watchers)} times"


# ── from one server to three nodes ──


async def _copied(directory: Path, model: FakeModel, old: Path, this: Path) -> list[str]:
    async with cluster(directory, model.url, lease_s=LEASE_S) as made:
        port, data_dir = free_port(), directory / "old" / "data"
        server = _started(old, directory / "old", data_dir, port, model.url)
        ports = [port]
        load = Load(ports, directory, random.Random(4), 3)
        model.on(load.answer)
        for member in made.members:
            _runs(member, this)
        try:
            await load.furnish(4, 2)
            async with at_work(load, made):
                assert await until(lambda: len(load.accepted) >= 60, END_S)
                server.send_signal(signal.SIGKILL)  # with runs that are active, and others that wait
                server.wait(30)
                told = await asyncio.to_thread(
                    _called, *_program(this), "store", "copy", f"sqlite:{data_dir}", made.url, cwd=directory
                )
                await made.start()
                ports[:] = made.ports
                before = len(load.accepted)
                assert await until(lambda: len(load.accepted) >= before + 40, END_S)
        finally:
            if server.poll() is None:
                server.kill()
        return [told.strip(), *_said(good(await asyncio.to_thread(judge, made, load, model)), load)]


def _started(python: Path, home: Path, data_dir: Path, port: int, model_url: str) -> subprocess.Popen[bytes]:
    """One server on a store of its own. It knows nothing of clusters, nor that they can be configured."""
    home.mkdir()
    (home / "covey.toml").write_text(cluster_config(model_url).partition("[cluster]")[0])
    command = [*_program(python), "serve", "--host", f"tcp://127.0.0.1:{port}", "--data-dir", str(data_dir)]
    env = {**os.environ, "HOME": str(home), "COVEY_TOKEN": TOKEN, "PYTHONPATH": ""}
    with (home / "log").open("wb") as log:
        return subprocess.Popen(
            [*command, "--config", str(home / "covey.toml")], stdout=log, stderr=log, env=env, cwd=home
        )


if __name__ == "__main__":
    sys.exit(main())
