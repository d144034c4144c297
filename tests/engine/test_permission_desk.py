"""Asking and answering: the first answer wins, and nothing waits for somebody who cannot answer any more."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from covey.config.load import config_dir
from covey.protocol.events import ConfigChanged, PermissionNotification, PermissionRequest
from covey.protocol.messages import Session
from covey.tools.base import ToolContext
from tests.support.disk import Disk
from tests.support.engine import Engine, call, config, running, within

pytestmark = pytest.mark.anyio


async def asked(engine: Engine, run_id: str = "a", subject: str = "rm") -> PermissionRequest:
    """A run that waits for permission to do something."""
    engine.tool.harmless = False
    engine.model.answer(*call(call_id=f"c-{run_id}", subject=subject))
    await engine.post(run_id, run_id)
    await engine.until(lambda: [r for r in engine.of_type(PermissionRequest) if r.run_id == run_id])
    return next(r for r in engine.of_type(PermissionRequest) if r.run_id == run_id)


def results(engine: Engine) -> list[tuple[str, bool]]:
    return [(result.content, result.is_error) for m in engine.messages() for result in m.tool_results]


def notifications(engine: Engine) -> list[tuple[str | None, bool, bool]]:
    """The answers. Before each of them comes one that only says that somebody is asked."""
    return [(n.permission_id, n.granted, n.denied) for n in engine.of_type(PermissionNotification) if n.is_answer]


async def test_that_somebody_is_asked_is_published_first_and_names_no_request(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        request = await asked(engine)
        (notice,) = engine.of_type(PermissionNotification)
        assert (notice.tool_call_id, notice.is_answer, notice.permission_id) == (request.tool_call_id, False, None)
        assert (notice.session_id, notice.run_id) == (request.session_id, request.run_id)
        kinds = [event.type for event in engine.events]
        assert kinds.index("permission_notification") < kinds.index("permission_request")


async def test_the_first_answer_wins(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        request = await asked(engine)
        desk = engine.workspace.asks._permissions
        assert list(desk.pending) == [request]
        assert (await engine.workspace.runs.get("a")).waiting_on == "permission"
        assert desk.answer(request.id, "allow") is True
        assert desk.answer(request.id, "deny") is False
        await engine.ended("a")
        assert desk.answer(request.id, "deny") is False
        assert results(engine) == [("worked", False)]
        assert notifications(engine) == [(request.id, True, False)]
        assert list(desk.pending) == []
        assert desk.answer("unknown", "allow") is False


async def test_a_call_that_nobody_could_be_asked_about_says_so(tmp_path: Path) -> None:
    """A model that reads that the user denied it would look for the user's reasons."""
    async with running(tmp_path) as engine:
        request = await asked(engine)
        assert await engine.grant(request.id, "deny", unattended=True)
        assert (await engine.ended("a")).state == "completed"
        assert engine.tool.calls == []
        ((content, is_error),) = results(engine)
        assert is_error and "nobody could be asked" in content and "user denied" not in content


async def test_a_denied_call_tells_the_model_and_has_no_effect(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        request = await asked(engine)
        engine.workspace.asks._permissions.answer(request.id, "deny")
        assert (await engine.ended("a")).state == "completed"
        assert engine.tool.calls == []
        ((content, is_error),) = results(engine)
        assert "denied" in content
        assert is_error
        assert notifications(engine) == [(request.id, False, True)]


async def test_whoever_denies_with_words_is_not_contradicted(tmp_path: Path) -> None:
    """Words mostly say what to do instead: that is another way, and the one that is wanted."""
    async with running(tmp_path) as engine:
        request = await asked(engine)
        assert await engine.grant(request.id, "deny", reason="use sum() instead")
        await engine.ended("a")
        ((content, _),) = results(engine)
        assert content == "The user denied this call. The user says: use sum() instead"


async def test_a_cancel_closes_the_request_for_everybody(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        request = await asked(engine)
        await engine.cancel()
        assert (await engine.ended("a")).state == "cancelled"
        assert engine.workspace.asks._permissions.answer(request.id, "allow") is False
        assert notifications(engine) == [(request.id, False, True)]
        assert list(engine.workspace.asks.permissions()) == []
        assert engine.tool.calls == []
        kinds = [event.type for event in engine.events]
        assert "permission_notification" not in kinds[kinds.index("run_complete") :]


async def test_an_answer_and_a_cancel_at_the_same_moment_end_the_run_once(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        request = await asked(engine)
        cancelling = asyncio.create_task(engine.cancel())
        assert engine.workspace.asks._permissions.answer(request.id, "allow") is True
        await cancelling
        assert (await engine.ended("a")).state == "cancelled"
        assert len(notifications(engine)) == 1


async def test_an_answer_for_the_session_covers_the_same_intent_and_no_other(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        first = await asked(engine, "a", "make")
        engine.workspace.asks._permissions.answer(first.id, "allow_session")
        await engine.ended("a")
        engine.model.answer(*call(call_id="c2", subject="make"))
        await engine.post("b", "b")
        await engine.ended("b")
        assert engine.tool.calls == ["make", "make"]
        other = await asked(engine, "c", "make install")
        engine.workspace.asks._permissions.answer(other.id, "deny")
        await engine.ended("c")
        engine.session_id = (await engine.workspace.sessions.create("another")).id
        elsewhere = await asked(engine, "d", "make")
        engine.workspace.asks._permissions.answer(elsewhere.id, "deny")
        await engine.ended("d")
        assert engine.tool.calls == ["make", "make"]


async def test_approving_everything_approves_what_waits_and_is_told(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        request = await asked(engine)
        await within(engine.workspace.asks.set_skip(True))
        await engine.ended("a")
        assert notifications(engine) == [(request.id, True, False)]
        engine.model.answer(*call(call_id="c2", subject="more"))
        await engine.post("b", "b")
        await engine.ended("b")
        assert len(engine.of_type(PermissionRequest)) == 1
        assert [change.skip_permissions for change in engine.of_type(ConfigChanged)] == [True]
        await within(engine.workspace.asks.set_skip(False))
        again = await asked(engine, "c")
        engine.workspace.asks._permissions.answer(again.id, "deny")
        await engine.ended("c")


async def test_a_rule_that_forbids_is_not_overruled_by_approving_everything(tmp_path: Path) -> None:
    async with running(tmp_path, settings=config(deny=("work",))) as engine:
        await within(engine.workspace.asks.set_skip(True))
        engine.model.answer(*call())
        await engine.post("a", "a")
        assert (await engine.ended("a")).state == "completed"
        assert "forbids" in results(engine)[0][0]
        assert engine.tool.calls == []


async def test_closing_does_not_wait_for_an_answer(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        request = await asked(engine)
        await within(engine.workspace.close(5.0))
        assert notifications(engine) == [(request.id, False, True)]
        assert engine.terminals()["a"].cancelled


async def test_a_request_that_cannot_be_told_is_not_left_pending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path) as engine:
        engine.tool.harmless = False

        def preview(params: object, context: ToolContext) -> dict[str, object]:
            return {"path": "\udcff"}

        monkeypatch.setattr(engine.tool, "preview", preview)
        engine.model.answer(*call())
        await engine.post("a", "a")
        assert (await engine.ended("a")).state == "completed"
        assert list(engine.workspace.asks.permissions()) == []
        assert engine.tool.calls == []


async def test_what_was_allowed_for_a_session_is_allowed_after_a_restart(tmp_path: Path) -> None:
    store = Disk()
    async with running(tmp_path, store=store) as engine:
        request = await asked(engine)
        engine.workspace.asks._permissions.answer(request.id, "allow_session")
        await engine.ended("a")
    async with running(tmp_path, store=store.copy()) as engine:
        engine.tool.harmless = False
        engine.model.answer(*call(call_id="again", subject="rm"))
        await engine.post("b", "b")
        await engine.ended("b")
        assert engine.of_type(PermissionRequest) == []
        assert results(engine)[-1] == ("worked", False)


async def test_the_rules_know_where_covey_keeps_its_own_files(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        shared, desk = engine.shared, engine.workspace.asks._permissions
        own = desk.rules.own
        assert str(shared.data_dir.resolve()) in own
        assert str(config_dir(shared.environ).resolve()) in own
        await engine.workspace.settings.reload()
        assert desk.rules.own == own


async def test_what_was_allowed_for_a_session_is_stored_and_never_sent(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        request = await asked(engine)
        engine.workspace.asks._permissions.answer(request.id, "allow_session")
        await engine.ended("a")
        assert [row.session.granted for row in engine.store.sessions("w")] == [(("work", "execute", "rm"),)]
        assert not [session for session in engine.of_type(Session) if session.granted]
        assert engine.workspace.sessions.get(engine.session_id).granted is None
