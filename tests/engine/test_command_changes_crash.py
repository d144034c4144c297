"""A server that dies around a command: what it changed is recorded with its result, or not at all, and undo is safe."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from covey.context import snapshots
from covey.doctor.oracle import examine
from covey.lifecycle.undo import CHANGED
from covey.store.sqlite import SqliteStore
from tests.support.commanding import Commanding, commanding
from tests.support.disk import Disk
from tests.support.engine import within

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "SECONDS", 60.0)


async def copies_of_a_turn(directory: Path) -> list[Disk]:
    """The disk after each commit of a turn with two commands, the second of which changes what the first has made."""
    async with commanding(directory) as at:
        at.engine.disk.keeps_copies = True
        await at.turn("sed -i s/one/two/ a.txt; echo x > new.txt", "echo y > new.txt")
        return list(at.engine.disk.copies)


def results(at: Commanding) -> int:
    return sum(message.role == "tool" and not message.tool_results[0].is_error for message in at.engine.messages())


async def test_after_a_crash_at_any_commit_undo_restores_what_is_recorded_or_refuses(tmp_path: Path) -> None:
    """The files are as the whole turn left them, whatever of it was written: the worst case for an undo."""
    outcomes = set()
    for number, left in enumerate(await copies_of_a_turn(tmp_path)):
        (tmp_path / "project" / "a.txt").write_text("two\n")
        (tmp_path / "project" / "new.txt").write_text("y\n")
        async with commanding(tmp_path, store=left) as at:
            for run in at.engine.store.runs("w", "", "", 10):
                await at.engine.ended(run.run_id)  # one that had only been accepted is run now
            recorded = [(os.path.basename(step.path), bool(step.before)) for step in at.steps()]
            finished = results(at)
            whole = [("a.txt", True), ("new.txt", False), ("new.txt", True)]
            assert recorded == whole[: {0: 0, 1: 2, 2: 3}[finished]], "with its result, or not at all"
            if not (messages := at.engine.messages()):
                continue
            dry = await at.undo(dry_run=True)
            if dry.conflicts:
                assert {(os.path.basename(c.path), c.reason) for c in dry.conflicts} == {("new.txt", CHANGED)}
                assert (at.text("a.txt"), at.text("new.txt")) == ("two\n", "y\n")
            else:
                await at.undo()
                assert at.text("a.txt") == ("one\n" if recorded else "two\n")
                assert at.text("new.txt") == (None if recorded else "y\n")
            cut_off = any(m.role == "tool" and m.tool_results[0].is_error for m in messages)
            assert dry.untracked == cut_off, f"commit {number}: a call that was cut off may have changed more"
            outcomes.add((len(recorded), bool(dry.conflicts)))
    assert outcomes >= {(0, False), (2, True), (3, False)}


async def test_an_undo_of_commands_that_a_crash_cut_off_is_gone_on_with(tmp_path: Path) -> None:
    async with commanding(tmp_path) as at:
        (at.root / "run").write_text("run")
        await at.turn("sed -i s/one/two/ a.txt; echo x > new.txt; chmod +x run")
        at.engine.disk.keeps_copies = True
        await at.undo()
        (noted,) = [copy for copy in at.engine.disk.copies if copy.undos("w", pending=True)]
        (at.root / "new.txt").write_text("by hand, before the next start")
        (at.root / "run").chmod(0o755)
    async with commanding(tmp_path, store=noted) as at:
        await within(at.workspace._undos.recover())
        assert (at.text("a.txt"), os.access(at.root / "run", os.X_OK)) == ("one\n", False)
        assert at.text("new.txt") == "by hand, before the next start"
        assert at.engine.store.undos("w", pending=True) == []


KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from covey.context.snapshots import Snapshots
from covey.store.sqlite import SqliteStore
from tests.support.commanding import commanding

taken = 0
take = Snapshots.take

async def taking(self, root, known=None):
    global taken
    taken += 1
    found = await take(self, root, known)
    if taken == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
    return found

Snapshots.take = taking

async def main():
    directory = Path(sys.argv[1])
    async with commanding(directory, store=SqliteStore(directory / "covey.db")) as at:
        await at.turn("sed -i s/one/two/ a.txt")

asyncio.run(main())
"""


@pytest.mark.parametrize(("snapshot", "text"), [(1, "one\n"), (2, "two\n")], ids=["before it", "after it"])
async def test_a_server_killed_beside_a_command_leaves_a_sound_store_and_untouched_files(
    tmp_path: Path, snapshot: int, text: str
) -> None:
    command = [sys.executable, "-c", KILLED, str(tmp_path), str(snapshot)]
    assert subprocess.run(command, timeout=50, check=False).returncode == -signal.SIGKILL
    async with commanding(tmp_path, store=SqliteStore(tmp_path / "covey.db")) as at:
        assert [run.state for run in at.engine.store.runs("w", "", "", 10)] == ["interrupted"]
        assert (at.steps(), at.text("a.txt")) == ([], text)
        done = await at.undo()
        assert (done.restored, done.untracked, at.text("a.txt")) == ((), True, text)
        await at.turn("echo later > b.txt")
        assert at.changed() == {"b.txt": "command"}
    assert examine(tmp_path).findings == []
