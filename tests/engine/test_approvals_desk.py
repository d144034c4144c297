"""Approvals: asked on the wire, seen by those who come later, answered once."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from covey.engine.asks.approvals import ApprovalDesk
from covey.protocol.events import decode_event
from covey.protocol.extensions import ApprovalNotification, ApprovalRequest
from covey.protocol.who import Who
from tests.support.engine import Engine, running

pytestmark = pytest.mark.anyio
REQUEST = ApprovalRequest(id="d1", kind="mcp", name="git", source="/p/covey.toml", command="git-server")


def desk_of(engine: Engine) -> ApprovalDesk:
    return engine.workspace.asks._approvals


class Remembered:
    """What was approved; raises while it is told to."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.error: Exception | None = None

    async def __call__(self, request: ApprovalRequest) -> None:
        if self.error:
            raise self.error
        self.ids.append(request.id)


async def test_an_approval_is_asked_once_seen_by_late_comers_and_the_first_answer_wins(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        desk, remembered = desk_of(engine), Remembered()
        desk.ask(REQUEST, remembered)
        desk.ask(REQUEST, remembered)
        assert engine.workspace.extensions.approvals() == [REQUEST]
        reader = engine.workspace.stream.open("some session", deltas=True)
        frames = [line for line in reader.present.decode().split("\n") if line.startswith("data: ")]
        events = [decode_event(line.removeprefix("data: ")) for line in frames]
        assert [event.payload for event in events if event] == [REQUEST]
        answers = await asyncio.gather(
            engine.workspace.extensions.answer("d1", approve=True, who=Who(name="ann")),
            engine.workspace.extensions.answer("d1", approve=False),
        )
        assert list(answers) == [True, False] and remembered.ids == ["d1"]
        assert not engine.workspace.extensions.approvals()


async def test_what_was_refused_is_not_asked_again_and_a_changed_one_is(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        desk, remembered = desk_of(engine), Remembered()
        desk.ask(REQUEST, remembered)
        assert await engine.workspace.extensions.answer("d1", approve=False)
        desk.ask(REQUEST, remembered)
        assert not desk.pending and not remembered.ids
        desk.ask(ApprovalRequest(id="d2", kind="mcp", name="git", source="/p/covey.toml", command="evil"), remembered)
        assert [request.id for request in desk.pending] == ["d2"]


async def test_an_approval_that_cannot_be_remembered_stays_open_and_the_answer_is_an_error(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        desk, remembered = desk_of(engine), Remembered()
        remembered.error = OSError("the disk is full")
        desk.ask(REQUEST, remembered)
        with pytest.raises(OSError, match="full"):
            await engine.workspace.extensions.answer("d1", approve=True)
        assert desk.pending == [REQUEST]


async def test_one_that_is_withdrawn_is_closed_for_everybody(tmp_path: Path) -> None:
    async with running(tmp_path) as engine:
        desk = desk_of(engine)
        desk.ask(REQUEST, Remembered())
        desk.withdraw("d1")
        desk.withdraw("d1")
        await engine.until(lambda: engine.of_type(ApprovalNotification))
        assert engine.of_type(ApprovalNotification) == [ApprovalNotification(approval_id="d1")]
