"""The client against a real server process, directly and through a proxy that cuts every connection after a while."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from covey.client.client import Client
from covey.client.event_stream import EventStream
from covey.client.library import ask_sync, connect
from covey.client.prompt import new_run_id, run_prompt
from covey.client.sync import SyncClient
from covey.client.transcript import Transcript
from covey.protocol.errors import Conflict, NotFound, Unauthorized
from covey.protocol.paths import Address
from covey.protocol.requests import EditPrompt, PostPrompt, UpdateSession
from covey.protocol.runs import RunComplete
from tests.support.cutting_proxy import cutting_proxy
from tests.support.fake_model import FakeModel, Reply
from tests.support.server import Server, provider_config, running


@pytest.fixture(scope="module")
def model() -> Iterator[FakeModel]:
    with FakeModel() as fake:
        yield fake


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, model: FakeModel) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("real"), provider_config(model.url)) as started:
        yield started


def address(server: Server) -> Address:
    return Address(host="127.0.0.1", port=server.port)


@pytest.fixture
async def client(server: Server) -> AsyncIterator[Client]:
    async with Client(address(server), token=server.token) as made:
        yield made


async def place(client: Client, server: Server) -> tuple[str, str]:
    """A workspace and a new session in it."""
    workspace = await client.create_workspace(str(server.project))
    return workspace.id, (await client.create_session(workspace.id)).id


@pytest.mark.anyio
async def test_the_routes_do_what_their_methods_say(client: Client, server: Server) -> None:
    assert (await client.health()).status == "ok"
    assert (await client.version()).version
    workspace = await client.create_workspace(str(server.project))
    assert await client.workspace(workspace.id) == workspace
    assert workspace in await client.workspaces()
    assert await client.rejoin(workspace.id) == workspace.id
    assert (await client.config(workspace.id)).models["large"].model == "fake"
    assert [provider.id for provider in await client.providers(workspace.id)] == ["fake"]
    session = await client.create_session(workspace.id, "a title")
    renamed = await client.update_session(workspace.id, session.id, UpdateSession(title="another"))
    assert renamed.title == "another"
    assert session.id in {found.id for found in await client.sessions(workspace.id)}
    assert (await client.agent_session(workspace.id, session.id)).id == session.id
    assert (await client.agent(workspace.id)).is_ready
    await client.init_agent(workspace.id)
    await client.update_agent(workspace.id)
    assert await client.messages(workspace.id, session.id) == ()
    assert await client.permissions(workspace.id) == ()
    assert not await client.skips_permissions(workspace.id)
    await client.skip_permissions(workspace.id, True)
    assert await client.skips_permissions(workspace.id)
    await client.skip_permissions(workspace.id, False)
    with pytest.raises(Conflict):
        await client.set_current_session(workspace.id, session.id)
    async with EventStream(client, workspace.id):
        await client.set_current_session(workspace.id, session.id)
        assert (await client.session(workspace.id, session.id)).attached_clients == 1
    assert "covey_" in await client.metrics()
    assert (await client.openapi())["openapi"]
    await client.delete_session(workspace.id, session.id)
    with pytest.raises(NotFound):
        await client.session(workspace.id, session.id)
    await client.release_workspace(workspace.id)


@pytest.mark.anyio
async def test_runs_can_be_watched_edited_and_cancelled(client: Client, server: Server, model: FakeModel) -> None:
    model.on(lambda request: Reply(text="word ", ending="silence"))
    workspace, session = await place(client, server)
    first = await client.post_prompt(workspace, PostPrompt(session_id=session, prompt="one", run_id="watched"))
    assert (first.run_id, first.seq > 0) == ("watched", True)
    for name in ("two", "three", "four"):
        await client.post_prompt(workspace, PostPrompt(session_id=session, prompt=name, run_id=f"run-{name}"))
    async with asyncio.timeout(30):
        while await client.queued_count(workspace, session) < 3:
            await asyncio.sleep(0.01)
    assert await client.queued_prompts(workspace, session) == ("two", "three", "four")
    await client.edit_prompt(workspace, session, "run-two", EditPrompt(prompt="two, but better"))
    await client.drop_prompt(workspace, session, "run-three")
    assert await client.queued_prompts(workspace, session) == ("two, but better", "four")
    await client.cancel_run(workspace, "run-four")
    await client.clear_queue(workspace, session)
    assert await client.queued_count(workspace, session) == 0
    assert [run.run_id for run in await client.runs(workspace, session_id=session, state="active")] == ["watched"]
    receipt = await client.cancel_session(workspace, session)
    assert [covered.run_id for covered in receipt.covered] == ["watched"]
    assert (await client.run(workspace, "watched", wait=30)).state == "cancelled"
    with pytest.raises(NotFound):
        await client.run(workspace, "never")


@pytest.mark.anyio
async def test_a_wrong_token(server: Server) -> None:
    async with Client(address(server), token="wrong") as client:
        assert (await client.health()).status == "ok"
        with pytest.raises(Unauthorized):
            await client.version()


@pytest.mark.anyio
@pytest.mark.parametrize("seed", range(4))
async def test_whatever_is_cut_the_transcript_is_what_the_server_has(
    client: Client, server: Server, model: FakeModel, seed: int
) -> None:
    """Scenario 23: the stream is cut every few kilobytes, and nothing is missing, doubled or different."""
    model.on(lambda request: Reply(reasoning="hm 🤔", text="wörd {n} 😀 ", chunks=600, delay_ms=0.2))
    workspace, session = await place(client, server)
    cuts: list[str] = []
    transcript = Transcript()
    async with (
        cutting_proxy(address(server), seed) as proxy,
        Client(proxy, token=server.token) as watcher,
        asyncio.timeout(60),
    ):
        stream = EventStream(
            watcher,
            workspace,
            session_id=session,
            first_delay_s=0.001,
            on_connection=lambda connected, why: cuts.append(why),
        )
        async with stream:
            await client.post_prompt(workspace, PostPrompt(session_id=session, prompt="go", run_id=f"cut-{seed}"))
            async for event in stream:
                change = transcript.apply(event)
                if change and change.kind == "hole":
                    stream.reconnect()
                if isinstance(event.payload, RunComplete):
                    break
    assert len([why for why in cuts if why]) > 3, "the proxy cut nothing"
    stored = await client.messages(workspace, session)
    assert msgspec.json.encode(tuple(transcript)) == msgspec.json.encode(stored)
    assert len(stored[-1].text) > 5000


@pytest.mark.anyio
async def test_a_run_survives_cuts_everywhere(client: Client, server: Server, model: FakeModel) -> None:
    """Also the post, the cancel and the question for the run itself go through the proxy."""
    model.on(lambda request: Reply(text="word {n} ", chunks=600, delay_ms=0.2))
    workspace, session = await place(client, server)
    cuts: list[str] = []
    async with (
        cutting_proxy(address(server), 1) as proxy,
        Client(proxy, token=server.token, client_id=client.client_id) as shaken,
        asyncio.timeout(60),
    ):
        prompt = PostPrompt(session_id=session, prompt="go", run_id=new_run_id())
        terminal = await run_prompt(shaken, workspace, prompt, on_connection=lambda up, why: cuts.append(why))
    stored = await client.messages(workspace, session)
    assert terminal.text == stored[-1].text == "".join(f"word {n} " for n in range(600))
    assert [message.role for message in stored] == ["user", "assistant"]
    assert any(cuts), "the proxy cut nothing"


def test_scripts_can_ask_for_json_that_fits_a_schema(server: Server, model: FakeModel, tmp_path: Path) -> None:
    model.on(lambda request: Reply(text='{"n": 1}' if "cannot be used" in request.prompt else "one"))
    where: dict[str, Any] = {"host": str(address(server)), "token_file": server.data_dir / "token"}
    schema = {"type": "object", "required": ["n"]}
    assert ask_sync("count", str(tmp_path), output_schema=schema, **where).output == {"n": 1}
    failed = ask_sync("count", str(tmp_path), output_schema={"type": "array"}, **where)
    assert (failed.outcome, failed.output) == ("failed", None)


def test_scripts_can_ask(server: Server, model: FakeModel, tmp_path: Path) -> None:
    model.on(lambda request: Reply(text=f"You said: {request.prompt}"))
    where: dict[str, Any] = {"host": str(address(server)), "token_file": server.data_dir / "token"}
    assert ask_sync("hello", tmp_path, **where).text == "You said: hello"
    with SyncClient(connect(tmp_path, **where)) as client:
        one = client.ask("one")
        assert one.text == "You said: one"
        assert client.ask("two", session=one.session_id).text == "You said: two"
        workspace = client.client.workspace_id
        texts = [message.text for message in client.wait(client.client.messages(workspace, one.session_id))]
        assert texts == ["one", "You said: one", "two", "You said: two"]
        assert len(client.wait(client.client.sessions(workspace))) == 2
        *_, last = client.stream("three")
        assert isinstance(last.payload, RunComplete)
        assert last.payload.text == "You said: three"
