"""Facts of the moment: who is there, what a run waits on, and how many messages a session has."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from tests.server.site import CLIENT, serving
from tests.server.test_event_stream_route import place
from tests.support.engine import Gate, call

pytestmark = pytest.mark.anyio
OTHER = str(uuid.UUID(int=2))
THIRD = str(uuid.UUID(int=3))


async def test_a_newcomer_learns_who_is_there_and_what_each_of_them_looks_at(tmp_path: Path) -> None:
    async with serving(tmp_path) as site:
        at = await place(site)
        await at.attached()
        await at.attached(client_id=OTHER)
        await at.workspace.clients.look_at(OTHER, at.session_id)
        newcomer = await at.attached(client_id=THIRD)
        await newcomer.until(lambda: len(newcomer.of_type("presence")) == 2)
        there = {seen["client_id"]: seen["session_id"] for seen in newcomer.of_type("presence")}
        assert there == {CLIENT: "", OTHER: at.session_id}, "and nothing about itself"


async def test_who_follows_one_session_hears_when_somebody_looks_at_another(tmp_path: Path) -> None:
    async with serving(tmp_path) as site:
        at = await place(site)
        elsewhere = (await at.workspace.sessions.create("")).id
        watcher = await at.attached(f"&session_id={at.session_id}")
        await at.attached(client_id=OTHER)
        for session_id in (at.session_id, elsewhere):
            await at.workspace.clients.look_at(OTHER, session_id)
        await watcher.until(lambda: len(watcher.of_type("presence")) == 3)
        assert [seen["session_id"] for seen in watcher.of_type("presence")] == ["", at.session_id, elsewhere]


async def test_a_client_with_two_streams_is_there_until_the_last_one_ends(tmp_path: Path) -> None:
    async with serving(tmp_path) as site:
        at = await place(site)
        watcher = await at.attached()
        streams = [await at.attached(client_id=OTHER) for _ in range(2)]
        await at.workspace.clients.look_at(OTHER, at.session_id)
        for stream in streams:
            stream.leave()
            await stream.until_end()
        await watcher.until(lambda: len(watcher.of_type("presence")) == 5)
        last = watcher.of_type("presence")[-2:]
        assert [(seen["attached"], seen["session_id"]) for seen in last] == [(True, at.session_id), (False, "")]


async def test_what_a_run_waits_on_is_sent_when_it_changes_and_not_with_each_word(tmp_path: Path) -> None:
    async with serving(tmp_path) as site:
        at = await place(site)
        site.model.answer("one ", "two ", "three ", *call(subject="x"))
        site.model.answer("four ", "five")
        watcher = await at.attached()
        await at.post("a")
        await at.watch_end(watcher, "a")
        waits = [run.get("waiting_on") for run in watcher.of_type("run") if run.get("waiting_on")]
        assert waits == ["model", "tool:work", "model"]
        frames = [(number, value) for number, value in watcher.frames if value["type"] == "run"]
        moments = [number for number, value in frames if value["payload"]["payload"].get("waiting_on")]
        assert moments == [""] * 3, "they have no place in the log"
        assert "waiting_on" not in watcher.of_type("run")[-1], "it has ended"


async def test_who_comes_back_learns_what_a_run_waits_on(tmp_path: Path) -> None:
    async with serving(tmp_path) as site:
        at = await place(site)
        site.tool.harmless = False
        site.model.answer(*call(subject="x"))
        first = await at.attached()
        await at.post("a")
        await first.until(lambda: first.of_type("permission_request"))
        second = await at.attached(last_id=first.ids[-1], client_id=OTHER)
        await second.until(lambda: second.of_type("run"))
        assert second.of_type("run")[-1]["waiting_on"] == "permission"
        await at.workspace.runs.cancel("a")
        await at.watch_end(second, "a")


async def test_the_end_of_a_turn_says_how_many_messages_the_session_has(tmp_path: Path) -> None:
    async with serving(tmp_path) as site:
        at = await place(site)
        gate = Gate()
        site.model.answer(*call(subject="x"))
        site.model.answer("half ", gate)
        watcher = await at.attached()
        await at.post("a")
        await gate.reached()
        gate.open()
        await at.watch_end(watcher, "a")
        session = await at.workspace.sessions.read(at.session_id)
        last = watcher.of_type("session")[-1]
        assert (last["message_count"], last["updated_at"]) == (session.message_count, session.updated_at)
        assert last["message_count"] == 4
