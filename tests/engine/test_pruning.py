"""What the settings call outdated is thrown away, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from covey.config.schema import RetentionSettings
from covey.engine.recorder import Batch
from covey.protocol.messages import Session
from covey.protocol.requests import UpdateSession
from covey.store.base import PutSession
from tests.support.engine import Engine, Gate, config, running

pytestmark = pytest.mark.anyio


async def three_sessions(engine: Engine) -> list[str]:
    """The oldest first, with a message each."""
    made = [engine.session_id]
    made += [(await engine.workspace.sessions.create(f"s{number}")).id for number in (1, 2)]
    await make_old(engine, made)
    return made


async def make_old(engine: Engine, made: list[str]) -> None:
    """As if they had not changed for a long time."""
    parts = engine.workspace._parts
    for at, session_id in enumerate(made):
        old = structs.replace(parts.book.get(session_id), updated_at=1_000 + at)
        parts.book._by_id[session_id] = old
        await parts.recorder.write(Batch([PutSession(old)]))


def left(engine: Engine) -> set[str]:
    return {session.id for session in engine.sessions()}


async def test_of_the_sessions_so_many_stay_as_the_settings_say(tmp_path: Path) -> None:
    settings = structs.replace(config(), retention=RetentionSettings(sessions_kept=1))
    async with running(tmp_path, settings=settings) as engine:
        await engine.workspace._retention.aclose()
        made = await three_sessions(engine)
        assert not await engine.workspace._retention.prune()
        assert left(engine) == {made[-1]}
        gone = [e.payload.id for e in engine.log() if e.change == "deleted" and isinstance(e.payload, Session)]
        assert gone == made[:2], "everybody hears of it, the oldest first"


async def test_a_session_with_an_open_run_and_an_archived_one_stay(tmp_path: Path) -> None:
    settings = structs.replace(config(), retention=RetentionSettings(sessions_days=1))
    async with running(tmp_path, settings=settings) as engine:
        await engine.workspace._retention.aclose()
        gate = Gate()
        engine.model.answer(gate)
        await engine.post("busy", "a")
        await gate.reached()
        made = await three_sessions(engine)
        await engine.workspace.sessions.update(made[1], UpdateSession(archived=True))
        await make_old(engine, made)
        await engine.workspace._retention.prune()
        assert left(engine) == set(made[:2])
        gate.open()


async def test_by_default_nothing_is_ever_thrown_away_and_nothing_is_started(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        made = await three_sessions(engine)
        assert not await engine.workspace._retention.prune()
        assert left(engine) == set(made)
        assert engine.workspace._retention._task is None


async def test_the_newest_sessions_stay_as_long_as_they_fit_and_no_other_size_is_read(tmp_path: Path) -> None:
    settings = structs.replace(config(), retention=RetentionSettings(sessions_mb=2))
    async with running(tmp_path, settings=settings) as engine:
        await engine.workspace._retention.aclose()
        made = await three_sessions(engine)
        asked: list[str] = []

        def size(workspace_id: str, session_id: str) -> int:
            asked.append(session_id)
            return 3 * 1024 * 1024

        engine.store.session_size = size  # type: ignore[method-assign]
        await engine.workspace._retention.prune()
        assert left(engine) == {made[-1]}, "the newest stays, however large it is"
        assert asked == [made[-1]]
