"""GET W/events: what was missed, then what is in progress, then what happens; and streams that end."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path
from typing import Any

import pytest

from covey.engine.commands import stream as stream_commands
from covey.engine.recorder import Batch
from covey.engine.workspace import Workspace
from covey.protocol.requests import PostPrompt
from covey.server import event_stream
from covey.store.base import StoredEvent
from tests.server.site import CLIENT, Site, Watcher, serving
from tests.support.engine import Gate, call, within

pytestmark = pytest.mark.anyio


class Place:
    """A workspace with one session."""

    def __init__(self, site: Site, workspace: Workspace, session_id: str) -> None:
        self.site = site
        self.workspace = workspace
        self.session_id = session_id

    def watch(self, query: str = "", last_id: str = "", client_id: str = CLIENT) -> Watcher:
        path = f"/v1/workspaces/{self.workspace.id}/events?client_id={client_id}&deltas=1{query}"
        return Watcher(self.site, path, {"last-event-id": last_id} if last_id else {})

    async def attached(self, query: str = "", last_id: str = "", client_id: str = CLIENT) -> Watcher:
        watcher = self.watch(query, last_id, client_id)
        await watcher.until(lambda: watcher.data)
        return watcher

    async def post(self, run_id: str, session_id: str = "") -> None:
        prompt = PostPrompt(session_id=session_id or self.session_id, prompt=run_id, run_id=run_id)
        await within(self.workspace.runs.post(prompt))

    async def ended(self, run_id: str) -> None:
        assert (await within(self.workspace.runs.get(run_id, 10))).ended

    async def settled(self) -> None:
        """Everything that was handed in has been written and published."""
        await within(self.workspace._parts.recorder.write(Batch()))

    async def caught_up(self, watcher: Watcher) -> None:
        await self.settled()
        newest = f"{self.workspace._parts.feed.epoch}.{self.workspace._parts.feed.last_seq}"
        await watcher.until(lambda: watcher.ids and watcher.ids[-1] == newest)

    async def watch_end(self, watcher: Watcher, run_id: str) -> None:
        await watcher.until(lambda: run_id in [t["run_id"] for t in watcher.of_type("run_complete")])


async def place(site: Site) -> Place:
    workspace = await site.workspace()
    return Place(site, workspace, (await workspace.sessions.create("")).id)


def transcript(*watchers: Watcher) -> dict[str, list[str]]:
    """The texts of the messages' parts, as one client knows them that was first the one, then the other watcher."""
    known: dict[str, list[str]] = {}
    for value in [value for watcher in watchers for _, value in watcher.frames]:
        payload = value["payload"]["payload"]
        if value["type"] == "message":
            known[payload["id"]] = [_text(part) for part in payload["parts"]]
        elif value["type"] == "message_delta":
            parts = known[payload["message_id"]]
            if payload["part"] == len(parts):
                parts.append("")
            assert payload["offset"] == len(parts[payload["part"]])
            parts[payload["part"]] += payload["delta"]
    return known


def _text(part: Any) -> str:
    data = part["data"]
    return str(data.get("text") or data.get("input") or data.get("content") or data.get("reason") or "")


async def stored(site: Site, at: Place) -> dict[str, list[str]]:
    path = f"/v1/workspaces/{at.workspace.id}/sessions/{at.session_id}/messages"
    return {m["id"]: [_text(part) for part in m["parts"]] for m in (await site.request("GET", path)).value}


# ── following ──


async def test_a_stream_tells_everything_in_order(tmp_path: Path) -> None:
    async with serving(tmp_path) as site:
        at = await place(site)
        watcher = await at.attached()
        assert watcher.data == b"retry: 1000\n\n"
        site.model.answer("one ", "two")
        await at.post("a")
        await at.watch_end(watcher, "a")
        assert [int(event_id.split(".")[1]) for event_id in watcher.ids] == list(range(2, 2 + len(watcher.ids)))
        assert transcript(watcher) == await stored(site, at)
        assert len(watcher.of_type("message_delta")) == 2
        watcher.leave()
        await watcher.until_end()


async def test_without_deltas_there_are_whole_messages_only(tmp_path: Path) -> None:
    async with serving(tmp_path) as site:
        at = await place(site)
        path = f"/v1/workspaces/{at.workspace.id}/events?client_id={CLIENT}"
        watcher = Watcher(site, path)
        await watcher.until(lambda: watcher.data)
        gate = Gate()
        site.model.answer("half ", gate, "whole")
        await at.post("a")
        await watcher.until(lambda: [m for m in watcher.of_type("message") if "half " in map(_text, m["parts"])])
        gate.open()
        await at.watch_end(watcher, "a")
        assert "message_delta" not in watcher.types
        assert transcript(watcher) == await stored(site, at)


async def test_a_stream_of_one_session_has_only_that(tmp_path: Path) -> None:
    async with serving(tmp_path) as site:
        at = await place(site)
        other = (await at.workspace.sessions.create("")).id
        everything = await at.attached()
        narrow = await at.attached(f"&session_id={other}")
        await at.post("a")
        await at.watch_end(everything, "a")
        await at.post("b", other)
        await at.watch_end(narrow, "b")
        assert {t["run_id"] for t in narrow.of_type("run_complete")} == {"b"}
        assert {m["session_id"] for m in narrow.of_type("message")} == {other}
        again = await at.attached(f"&session_id={other}", last_id=f"{at.workspace._parts.feed.epoch}.0")
        await at.watch_end(again, "b")
        assert {m["session_id"] for m in again.of_type("message")} == {other}


# ── resuming ──


@pytest.mark.parametrize("cut", range(12))
async def test_whoever_comes_back_at_any_point_misses_and_repeats_nothing(tmp_path: Path, cut: int) -> None:
    async with serving(tmp_path) as site:
        at = await place(site)
        gates = [Gate() for _ in range(3)]
        site.model.answer("one ", gates[0], "two ", *call())
        site.model.answer(gates[1], "three ", gates[2], "four")
        first = await at.attached()
        await at.post("a")
        for number, gate in enumerate(gates):
            await gate.reached()
            if number == cut % 3:
                break
            gate.open()
        await at.caught_up(first)
        last_id = first.ids[min(cut, len(first.ids) - 1)]
        first.leave()
        await first.until_end()
        before = Watcher.__new__(Watcher)
        position = [event_id for event_id, _ in first.frames].index(last_id)
        before.frames = first.frames[: position + 1]
        second = await at.attached(last_id=last_id)
        for gate in gates:
            gate.open()
        await at.watch_end(second, "a")
        assert before.ids + second.ids == sorted({*before.ids, *second.ids}, key=lambda i: int(i.split(".")[1]))
        assert len(before.ids + second.ids) == at.workspace._parts.feed.last_seq - 1
        assert transcript(before, second) == await stored(site, at)


@pytest.mark.parametrize("last_id", ["nonsense", "1.1", "{epoch}.999999", "-1.5", "{epoch}.", "9" * 40 + ".1"])
async def test_an_id_that_leads_nowhere_gives_a_gap_and_then_the_present(tmp_path: Path, last_id: str) -> None:
    async with serving(tmp_path) as site:
        at = await place(site)
        gate = Gate()
        site.model.answer("half ", gate)
        await at.post("a")
        await gate.reached()
        await at.settled()
        feed = at.workspace._parts.feed
        watcher = await at.attached(last_id=last_id.replace("{epoch}", str(feed.epoch)))
        await watcher.until(lambda: len(watcher.frames) == 3)
        assert watcher.types == ["gap", "message", "run"]
        assert watcher.of_type("run")[0]["waiting_on"] == "model"
        assert watcher.of_type("gap")[0]["resume_from"] == f"{feed.epoch}.{feed.last_seq}"
        gate.open()
        await at.watch_end(watcher, "a")


async def test_an_id_from_before_the_log_gives_a_gap(tmp_path: Path) -> None:
    async with serving(tmp_path) as site:
        at = await place(site)
        await at.post("a")
        await at.ended("a")
        site.store.trim_events(at.workspace.id, 2)
        watcher = await at.attached(last_id=f"{at.workspace._parts.feed.epoch}.1")
        await watcher.until(lambda: watcher.frames)
        assert watcher.types == ["gap"]


async def test_a_log_that_is_trimmed_during_a_replay_gives_a_gap_and_never_a_hole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_commands, "REPLAY_PAGE", 2)
    async with serving(tmp_path) as site:
        at = await place(site)
        await at.post("a")
        await at.ended("a")
        read = site.store.events
        pages = 0

        def events(*args: Any) -> list[StoredEvent]:
            nonlocal pages
            pages += 1
            if pages == 2:
                site.store.trim_events(at.workspace.id, 2)
            return read(*args)

        monkeypatch.setattr(site.store, "events", events)
        watcher = await at.attached(last_id=f"{at.workspace._parts.feed.epoch}.1")
        await watcher.until(lambda: len(watcher.frames) >= 3)
        assert [int(event_id.split(".")[1]) for event_id in watcher.ids] == [2, 3]
        assert watcher.types[2] == "gap"


async def test_a_request_that_waits_is_sent_to_every_newcomer_until_it_is_answered(tmp_path: Path) -> None:
    async with serving(tmp_path) as site:
        at = await place(site)
        site.tool.harmless = False
        site.model.answer(*call(subject="x"))
        first = await at.attached()
        await at.post("a")
        await first.until(lambda: first.of_type("permission_request"))
        first.leave()
        await first.until_end()
        second = await at.attached(client_id=str(uuid.UUID(int=2)))
        await second.until(lambda: second.of_type("permission_request"))
        request = second.of_type("permission_request")[0]
        path = f"/v1/workspaces/{at.workspace.id}/permissions/grant"
        grant = {"permission": {"id": request["id"]}, "action": "allow"}
        assert (await site.request("POST", path, grant)).value == {"resolved": True}
        assert (await site.request("POST", path, grant)).value == {"resolved": False}
        await at.watch_end(second, "a")
        third = await at.attached()
        assert third.types == ["presence"], "the second one is there"


# ── attaching and leaving ──


async def test_a_client_is_attached_as_long_as_its_stream(tmp_path: Path) -> None:
    async with serving(tmp_path) as site:
        at = await place(site)
        current = f"/v1/workspaces/{at.workspace.id}/current-session?client_id={CLIENT}"
        assert (await site.request("POST", current, {"session_id": at.session_id})).code == "not_attached"
        watcher = await at.attached()
        assert (await site.request("POST", current, {"session_id": at.session_id})).status == 200
        assert at.workspace.sessions.get(at.session_id).attached_clients == 1
        assert len(site.app.streams) == 1
        watcher.leave()
        await watcher.until_end()
        assert at.workspace.sessions.get(at.session_id).attached_clients == 0
        assert site.app.streams == set()
        assert at.workspace._parts.feed.readers == 0


async def test_many_who_come_and_go_leave_nothing_behind(tmp_path: Path) -> None:
    async with serving(tmp_path) as site:
        at = await place(site)
        tasks = len(asyncio.all_tasks())
        for number in range(40):
            watcher = await at.attached(client_id=str(uuid.UUID(int=number % 4 + 1)))
            watcher.leave()
            await watcher.until_end()
        await asyncio.sleep(0)
        assert len(asyncio.all_tasks()) == tasks
        assert (at.workspace._parts.feed.readers, len(site.app.streams)) == (0, 0)
        assert len(at.workspace.clients._claims.by_client) <= 4


async def test_a_client_that_does_not_read_is_ended_and_the_others_see_everything(tmp_path: Path) -> None:
    async with serving(tmp_path) as site:
        at = await place(site)
        stalled, reading = await at.attached(), await at.attached(client_id=str(uuid.UUID(int=2)))
        stalled.hold()
        site.model.answer(*["x "] * 50)
        await at.post("a")
        await at.watch_end(reading, "a")
        now = asyncio.get_running_loop().time()
        for stream in list(site.app.streams):
            stream.beat(now + event_stream.STALLED_S + 1)
        await stalled.until_end()
        assert len(site.app.streams) == 1
        assert transcript(reading) == await stored(site, at)
        assert not reading.ended


@pytest.mark.parametrize("is_busy", [False, True], ids=["quiet", "busy"])
async def test_a_comment_comes_each_15_seconds_whatever_else_does(tmp_path: Path, is_busy: bool) -> None:
    async with serving(tmp_path) as site:
        at = await place(site)
        watcher = await at.attached()
        (stream,) = site.app.streams
        assert isinstance(stream, event_stream.Stream)
        await asyncio.sleep(0)
        stream._beat_at -= event_stream.HEARTBEAT_S + 1
        if not is_busy:
            stream.sent_at = stream._beat_at
        stream.beat(asyncio.get_running_loop().time())
        await watcher.until(lambda: watcher.data.endswith(b": keep-alive\n\n"))
        assert watcher.frames == []
        before = watcher.data
        stream.beat(asyncio.get_running_loop().time())
        await asyncio.sleep(0)
        assert watcher.data == before


async def test_closing_ends_the_streams_after_the_last_words(tmp_path: Path) -> None:
    async with serving(tmp_path) as site:
        at = await place(site)
        watcher = await at.attached()
        gate = Gate()
        site.model.answer("half ", gate)
        await at.post("a")
        await gate.reached()
        await within(site.workspaces.close())
        await watcher.until_end()
        assert watcher.ended
        assert watcher.of_type("run_complete")[0]["cancelled"] is True
        late = at.watch()
        await late.until_end()
        assert late.status == 409


async def test_a_stream_that_is_cancelled_by_the_server_leaves_nothing_behind(tmp_path: Path) -> None:
    async with serving(tmp_path) as site:
        at = await place(site)
        watcher = await at.attached()
        watcher.task.cancel()
        await asyncio.wait({watcher.task})
        assert watcher.task.cancelled()
        assert (at.workspace._parts.feed.readers, site.app.streams) == (0, set())
