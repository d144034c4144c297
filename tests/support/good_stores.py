"""Stores as the real engine leaves them, for tests that look at stores or damage them."""

from __future__ import annotations

import asyncio
import shutil
from contextlib import closing
from pathlib import Path

import apsw

from covey.models.base import ModelFailed
from covey.store.sqlite import SqliteStore
from tests.support.engine import Engine, Gate, Model, call, running, within
from tests.support.undoing import Undoing


def make_stores(directory: Path) -> None:
    """Two data directories: `open` as after a kill, `ended` as after the next start and an orderly stop."""
    for name in ("open", "ended"):
        (directory / name).mkdir()
    asyncio.run(_until_killed(directory / "open"))
    shutil.copy(directory / "open" / "covey.db", directory / "ended" / "covey.db")
    asyncio.run(take_up(directory / "ended"))
    with closing(apsw.Connection(str(directory / "ended" / "covey.db"))) as connection:
        connection.pragma("journal_mode", "delete")


async def take_up(data_dir: Path, prompt: str = "") -> None:
    """Start on a store, let everything that was open end, perhaps run one more prompt, and stop in order."""
    async with running(data_dir, store=SqliteStore(data_dir / "covey.db")) as engine:
        for row in engine.store.open_runs("w"):
            await engine.ended(row.run.run_id)
        if prompt:
            await engine.ended((await engine.post(prompt)).run_id)


async def _until_killed(directory: Path) -> None:
    """A life with runs of every kind, copied while one is active, with saved text, and another waits."""
    model, gate = Model(), Gate()
    living = directory / "living.db"
    async with running(directory, store=SqliteStore(living), model=model) as engine:
        model.answer("I look.", *call())
        await engine.ended((await engine.post("use the tool", "r-tool")).run_id)
        await _fold(engine)
        await _drop(engine)
        model.answer(ModelFailed("out of order"))
        await engine.ended((await engine.post("fail", "r-fail")).run_id)
        await _cancel(engine)
        await _elsewhere(engine)
        await _undo_and_fork(engine, directory / "project")
        model.answer("I begin.", *call(call_id="c7"))
        model.answer("half an ans", gate)
        await engine.post("go on for long", "r-active")
        await gate.reached()
        await engine.post("wait", "r-queued")
        await _text_saved(living)
        _copy(living, directory / "covey.db")
        gate.open()
        await engine.ended("r-queued")


async def _fold(engine: Engine) -> None:
    gate = Gate()
    engine.model.answer("one moment", gate, *call())
    await engine.post("host", "r-host")
    await gate.reached()
    folded = await engine.post("and this", "r-folded", "fold")
    gate.open()
    await engine.ended(folded.run_id)


async def _drop(engine: Engine) -> None:
    gate = Gate()
    engine.model.answer("busy", gate)
    await engine.post("busy", "r-busy")
    await gate.reached()
    await engine.post("dropped", "r-drop")
    await within(engine.workspace.runs.cancel("r-drop"))
    gate.open()
    await engine.ended("r-busy")


async def _cancel(engine: Engine) -> None:
    gate = Gate()
    engine.model.answer("I wi", gate)
    await engine.post("cancel me", "r-cancel")
    await gate.reached()
    await engine.cancel()
    await engine.ended("r-cancel")


async def _elsewhere(engine: Engine) -> None:
    """A second session that stays, and a third that is deleted."""
    first = engine.session_id
    for run_id in ("r-other", "r-gone"):
        engine.session_id = (await engine.workspace.sessions.create(run_id)).id
        await engine.ended((await engine.post("hello", run_id)).run_id)
    await within(engine.workspace.sessions.delete(engine.session_id))
    engine.session_id = first


async def _undo_and_fork(engine: Engine, root: Path) -> None:
    """A session with a turn that was undone, between one that stays and one that came later; and a fork of it."""
    first = engine.session_id
    engine.session_id = (await engine.workspace.sessions.create("undo")).id
    root.mkdir()
    at = Undoing(engine, root)
    await at.turn("stay", {"a.py": "one"}, "r-stays")
    await at.turn("undo me", {"a.py": "two", "b.py": "two"}, "r-undone")
    await at.undo()
    await at.turn("later", {"a.py": "three"}, "r-later")
    await at.fork(title="fork")
    engine.session_id = first


async def _text_saved(path: Path) -> None:
    async def wait() -> None:
        with closing(apsw.Connection(str(path))) as connection:
            while not connection.execute("SELECT count(*) FROM message_tails").get:
                await asyncio.sleep(0.01)

    await within(wait())


def _copy(source: Path, target: Path) -> None:
    with closing(apsw.Connection(str(source))) as old, closing(apsw.Connection(str(target))) as new:
        with new.backup("main", old, "main") as backup:
            backup.step()
        new.pragma("journal_mode", "delete")
