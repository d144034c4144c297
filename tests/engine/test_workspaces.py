"""Opening, keeping and releasing workspaces (R17), on a virtual clock: minutes pass at once, and in order."""

from __future__ import annotations

import asyncio
import copy
from pathlib import Path

import pytest

from covey.config.schema import Config, ConfigError
from covey.engine.workspace import Workspace
from covey.protocol.errors import BadRequest, Conflict, NotFound, Unavailable
from covey.protocol.requests import PostPrompt
from covey.protocol.who import Who
from tests.engine.house import CONFIG, A, B, House, later, play


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    return House(tmp_path, monkeypatch)


def test_everybody_who_opens_a_directory_gets_the_same_workspace(house: House) -> None:
    async def scenario() -> None:
        await house.start()
        link = house.directory / "link"
        link.symlink_to(house.directory)
        opened = await asyncio.gather(
            house.create(A), house.create(B), house.create(A, link), house.create(B, f"{house.directory}/./link/.")
        )
        assert len({id(workspace) for workspace in opened}) == 1
        assert len(house.store.workspaces()) == 1
        assert [claim.client_id for claim in opened[0].clients._claims.by_client] == [A, B]

    play(scenario)


@pytest.mark.parametrize("path", ["", "relative", "/does/not/exist", "/etc/hostname", "/tmp\0x"])
def test_a_path_that_is_no_directory_is_refused(house: House, path: str) -> None:
    async def scenario() -> None:
        await house.start()
        with pytest.raises(BadRequest):
            await house.all.create(path, Who(client_id=A), yolo=False, env={})
        assert house.store.workspaces() == []

    play(scenario)


def test_a_claim_lasts_30_s_before_attaching_and_10_s_after_a_lost_stream(house: House) -> None:
    async def scenario() -> None:
        everything = await house.start()
        workspace = await house.create()
        await later(29)
        assert everything.all() == [workspace]
        await later(2)
        assert everything.all() == []
        assert workspace.closing
        workspace = await house.create()
        everything.attach(workspace, A)
        await later(1000)
        assert everything.all() == [workspace]
        everything.detach(workspace, A)
        await later(9)
        assert everything.all() == [workspace]
        await later(2)
        assert everything.all() == []

    play(scenario)


def test_a_goodbye_takes_effect_at_once_and_only_for_who_said_it(house: House) -> None:
    async def scenario() -> None:
        everything = await house.start()
        workspace = await house.create(A)
        await house.create(B)
        everything.release(workspace, A)
        await later(1)
        assert everything.all() == [workspace]
        everything.retire(B)
        await later(1)
        assert everything.all() == []
        with pytest.raises(Conflict) as refused:
            await house.create(B)
        assert refused.value.code == "client_retired"

    play(scenario)


def test_an_open_run_keeps_its_workspace_when_everybody_has_left(house: House) -> None:
    async def scenario() -> None:
        everything = await house.start()
        workspace = await house.create(A)
        session = await workspace.sessions.create("")
        posting = asyncio.ensure_future(workspace.runs.post(PostPrompt(session_id=session.id, prompt="hi")))
        await asyncio.sleep(0)
        everything.retire(A)
        receipt = await posting
        run = await workspace.runs.get(receipt.run_id, 60)
        assert run.state == "completed"
        await later(1)
        assert everything.all() == []

    play(scenario)


def test_who_comes_while_a_workspace_is_released_gets_a_fresh_one(house: House) -> None:
    async def scenario() -> None:
        everything = await house.start()
        for steps in range(20):
            old = await house.create(A)
            everything.release(old, A)
            for _ in range(steps):
                await asyncio.sleep(0)
            new = await house.create(B)
            assert not new.closing, f"after {steps} steps: handed a workspace that is going away"
            assert new in everything.all()
            await new.sessions.create("works")
            everything.release(new, B)
            await later(1)

    play(scenario)


def test_the_server_goes_60_s_after_the_last_workspace(house: House) -> None:
    async def scenario() -> None:
        everything = await house.start(idle_exit_s=60)
        await later(50)
        workspace = await house.create()
        everything.attach(workspace, A)
        await later(3600)
        everything.retire(A)
        await later(59)
        assert not house.idle
        await later(2)
        assert house.idle

    play(scenario)


def test_the_server_does_not_go_while_a_workspace_is_being_opened(house: House) -> None:
    async def scenario() -> None:
        everything = await house.start(idle_exit_s=60)

        async def slow(path: str) -> Config:
            await later(5)
            return CONFIG

        house.load = slow
        await later(58)
        creating = asyncio.ensure_future(house.create())
        await later(4)
        assert not house.idle, "it goes away while somebody waits for a workspace"
        assert not everything.is_idle
        workspace = await creating
        assert everything.all() == [workspace]
        assert not house.idle

    play(scenario)


def test_closing_while_a_workspace_is_being_opened_leaves_none_behind(house: House) -> None:
    async def scenario() -> None:
        for steps in range(12):
            everything = await house.start()
            creating = asyncio.ensure_future(house.create())
            for _ in range(steps):
                await asyncio.sleep(0)
            await everything.close()
            (result,) = await asyncio.gather(creating, return_exceptions=True)
            assert isinstance(result, Unavailable) or (isinstance(result, Workspace) and result.closing)
            assert all(workspace.closing for workspace in everything.all())

    play(scenario)


def test_one_that_cannot_be_closed_in_order_does_not_stop_the_rest(house: House) -> None:
    async def scenario() -> None:
        everything = await house.start(idle_exit_s=60)
        first = await house.create()

        async def broken() -> None:
            raise RuntimeError("a bug of ours")

        first._parts.agent.aclose = broken  # type: ignore[method-assign]
        everything.release(first, A)
        await later(1)
        assert everything.all() == []
        second = await house.create()
        second._parts.agent.aclose = broken  # type: ignore[method-assign]
        await everything.close()
        assert second.closing

    play(scenario)


def test_one_that_cannot_be_opened_again_does_not_keep_the_server_from_starting(house: House, tmp_path: Path) -> None:
    async def scenario() -> None:
        paths = [tmp_path / "bad", tmp_path / "good"]
        await house.start()
        prompts = []
        for path in paths:
            path.mkdir()
            workspace = await house.create(A, path)
            session = await workspace.sessions.create("")
            prompts.append(workspace.runs.post(PostPrompt(session_id=session.id, prompt="hi", run_id="r")))
        await asyncio.gather(*prompts)

        async def load(path: str) -> Config:
            if path.endswith("bad"):
                raise PermissionError("not yours any more")
            return CONFIG

        house.load = load
        house.store = copy.deepcopy(house.store)  # killed here, and started again
        again = await house.start()
        (opened,) = again.all()
        assert opened.path == str(paths[1])
        assert (await opened.runs.get("r", 60)).ended

    play(scenario)


def test_a_mistake_in_a_configuration_keeps_nobody_from_ending_old_runs(house: House) -> None:
    async def scenario() -> None:
        await house.start()
        workspace = await house.create()
        session = await workspace.sessions.create("")
        for run_id in ("r", "waits"):
            request = PostPrompt(session_id=session.id, prompt="hi", run_id=run_id, mode="own_turn")
            await workspace.runs.post(request)

        async def load(path: str) -> Config:
            raise ConfigError("covey.toml: line 1 is wrong")

        house.load = load
        house.store = copy.deepcopy(house.store)  # killed here, and started again
        again = await house.start()
        (opened,) = again.all()
        assert (await opened.runs.get("r", 60)).state == "interrupted"
        waited = await opened.runs.get("waits", 60)  # it runs by no other rules than those of the files
        assert (waited.state, waited.error) == ("failed", "covey.toml: line 1 is wrong")
        await later(1)
        joined = await house.create()
        assert [session.id for session in await joined.sessions.page(limit=10)] == [session.id]
        with pytest.raises(ConfigError, match="line 1 is wrong"):
            await joined.runs.post(PostPrompt(session_id=session.id, prompt="hi"))

    play(scenario)


def test_sessions_of_all_workspaces_are_listed_without_opening_one(house: House, tmp_path: Path) -> None:
    async def scenario() -> None:
        everything = await house.start()
        made = []
        for name in ("one", "two", "three"):
            (tmp_path / name).mkdir()
            workspace = await house.create(A, tmp_path / name)
            made.append((await workspace.sessions.create(name), workspace.id))
            await later(2)
            if name != "three":
                everything.release(workspace, A)
        await later(1)
        (still,) = everything.all()
        found = await everything.everywhere.sessions("", 2, children=False, archived=False)
        assert [(each.id, each.title, each.workspace_id) for each in found] == [
            (session.id, session.title, workspace_id) for session, workspace_id in (made[2], made[1])
        ]
        assert [each.path for each in found] == [str(tmp_path / name) for name in ("three", "two")]
        before = f"{found[-1].workspace_id}/{found[-1].id}"
        (last,) = await everything.everywhere.sessions(before, 2, children=False, archived=False)
        assert last.title == "one"
        assert everything.all() == [still]
        for strange in ("nothing", f"{last.workspace_id}/gone"):
            with pytest.raises((BadRequest, NotFound)):
                await everything.everywhere.sessions(strange, 2, children=False, archived=False)

    play(scenario)


def test_a_workspace_that_was_released_is_opened_again_for_who_knows_its_id(house: House, tmp_path: Path) -> None:
    async def scenario() -> None:
        everything = await house.start()
        place = tmp_path / "place"
        place.mkdir()
        workspace = await house.create(A, place)
        everything.release(workspace, A)
        await later(1)
        first, second = await asyncio.gather(everything.get(workspace.id), everything.get(workspace.id))
        assert first is second
        assert first is not workspace
        await later(31)
        assert everything.all() == []
        place.rmdir()
        with pytest.raises(BadRequest):
            await everything.get(workspace.id)
        with pytest.raises(NotFound) as unknown:
            await everything.get("nobody")
        assert unknown.value.code == "workspace_not_found"

    play(scenario)


def test_after_closing_nothing_is_opened(house: House) -> None:
    async def scenario() -> None:
        everything = await house.start()
        workspace = await house.create()
        await everything.close()
        with pytest.raises(Conflict):
            everything.attach(workspace, A)
        with pytest.raises(Unavailable):
            await house.create(B)

    play(scenario)
