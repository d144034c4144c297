"""A follower against a real server: through gaps, kills and refusals its view is what the server has."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import pytest

from covey.client.client import Client
from covey.client.errors import ConnectionLost
from covey.client.follower import Follower
from covey.client.view.inputs import Disconnected, Received
from covey.client.view.view import View
from covey.protocol.paths import Address
from covey.protocol.requests import PostPrompt
from tests.support.cutting_proxy import cutting_proxy
from tests.support.fake_model import Call, FakeModel, Recorded, Reply
from tests.support.following import caught_up, check_against_server, shown
from tests.support.server import Server, provider_config, running

pytestmark = pytest.mark.anyio

NEVER_S = 600.0
"""Between attempts to connect, where a test says when the next one is made."""
TOUCH = Call(name="bash", input={"command": "touch made"})


def answers(request: Recorded) -> Reply:
    """Each prompt says what it wants to see."""
    if "touch" in request.prompt and request.call_number == 0:
        return Reply(text="漢字 ", tools=(TOUCH,))
    if "wait" in request.prompt:
        return Reply(text="wörd 🧪 {n} ", chunks=40, gates={10: "never" if "ever" in request.prompt else "more"})
    return Reply(text="done 🧪")


@pytest.fixture(scope="module")
def model() -> Iterator[FakeModel]:
    with FakeModel() as fake:
        fake.on(answers)
        yield fake


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, model: FakeModel) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("followed"), provider_config(model.url)) as started:
        started.host = f"tcp://127.0.0.1:{started.port}"  # where it is found again when it has been killed
        yield started


@asynccontextmanager
async def joined(server: Server, name: str) -> AsyncIterator[Client]:
    async with Client(Address(host="127.0.0.1", port=server.port), token=server.token, name=name) as client:
        await client.create_workspace(str(server.project))
        yield client


@pytest.fixture
async def client(server: Server) -> AsyncIterator[Client]:
    async with joined(server, "Ada") as made:
        yield made


@pytest.fixture
async def other(server: Server) -> AsyncIterator[Client]:
    async with joined(server, "Bo") as made:
        yield made


async def place(client: Client) -> tuple[str, str]:
    """The workspace, and a new session in it."""
    (workspace,) = await client.workspaces()
    return workspace.id, (await client.create_session(workspace.id)).id


def ended(run_id: str) -> Callable[[View], object]:
    return lambda view: (record := view.find_run(run_id)) and record.run.ended


def lose(follower: Follower, last_event_id: str = "") -> None:
    """The connection breaks. With an id, it is one that the server does not know."""
    follower._lost("cut")
    follower._stream.last_event_id = last_event_id or follower._stream.last_event_id
    follower._stream.reconnect()


async def test_two_followers_of_a_session_agree_with_each_other_and_with_the_server(
    client: Client, other: Client
) -> None:
    workspace_id, session_id = await place(client)
    async with (
        Follower(client, workspace_id, session_id=session_id) as ada,
        Follower(other, workspace_id) as bo,
    ):
        first = ada.post(PostPrompt(prompt="touch it"))
        bo.open(session_id)
        second = bo.post(PostPrompt(prompt="and then 次"))
        await bo.until(lambda view: view.asks.open)
        (ask_id,) = bo.view.asks.open
        bo.answer_permission(ask_id, "allow")
        for follower in (ada, bo):
            await follower.until(ended(first))
            await follower.until(ended(second))
            assert follower.view.asks.closed[ask_id].outcome == "allowed"
            assert not follower.view.outbox.prompts
        await caught_up(client, session_id, ada, bo)
        assert shown(ada) == shown(bo)
        assert [run["run"]["state"] for run in shown(ada)["runs"]] == ["completed", "completed"]
        await check_against_server(client, ada)


async def test_after_a_gap_in_the_middle_the_view_is_whole_again(
    client: Client, other: Client, model: FakeModel
) -> None:
    workspace_id, session_id = await place(client)
    elsewhere = await other.create_session(workspace_id, "elsewhere")
    async with Follower(client, workspace_id, session_id=session_id, first_delay_s=NEVER_S) as follower:
        run_id = follower.post(PostPrompt(prompt="wait 漢字"))
        await follower.until(lambda view: any(m.role == "assistant" and m.text for m in view.conversation.messages))
        lose(follower, "77.1")
        await other.post_prompt(workspace_id, PostPrompt(session_id=session_id, prompt="later", run_id="later"))
        await other.post_prompt(workspace_id, PostPrompt(session_id=elsewhere.id, prompt="touch it", run_id="asks"))
        async with Follower(other, workspace_id) as bo:
            await bo.until(lambda view: view.asks.open)
        gaps: list[str] = []
        follower._on_step = lambda fed, step: gaps.append(follower.view.link.gap)
        follower.hurry()
        await follower.until(lambda view: view.link.state == "connected" and not any(view.loads) and any(gaps))
        assert follower.view.link.gap == ""
        assert [run.run_id for run in follower.view.sessions.of(session_id).queue] == ["later"]
        assert [ask.session_id for ask in follower.view.asks.open.values()] == [elsewhere.id]
        assert follower.view.sessions.of(elsewhere.id).is_busy
        model.release("more")
        await follower.until(ended(run_id))
        await follower.until(ended("later"))
        await other.cancel_session(workspace_id, elsewhere.id)
        await other.run(workspace_id, "asks", wait=30)
        await caught_up(other, session_id, follower)
        await check_against_server(other, follower)


async def test_a_server_that_is_killed_and_started_again_is_followed_and_gets_each_prompt_once(
    client: Client, server: Server
) -> None:
    workspace_id, session_id = await place(client)
    async with Follower(client, workspace_id, session_id=session_id) as follower:
        active = follower.post(PostPrompt(prompt="wait for ever 漢字"))
        queued = follower.post(PostPrompt(prompt="queued"))
        await follower.until(lambda view: any(m.role == "assistant" and m.text for m in view.conversation.messages))
        await follower.until(lambda view: view.sessions.of(session_id).queue)
        server.kill()
        await follower.until(lambda view: view.link.state == "lost")
        down = follower.post(PostPrompt(prompt="while it is down 次"))
        assert follower.post(PostPrompt(prompt="while it is down 次", run_id=down)) == down
        await asyncio.sleep(0)
        assert [(i, sent.state) for i, sent in follower.view.outbox.prompts.items()] == [(down, "sending")]
        server.start()
        follower.hurry()
        for run_id in (active, queued, down):
            await follower.until(ended(run_id))
        states = {i: record.run.state for i, record in follower.view.sessions.of(session_id).runs.items()}
        assert states == {active: "interrupted", queued: "completed", down: "completed"}
        assert not follower.view.outbox.prompts
        prompts = [message.text for message in follower.view.conversation.messages if message.role == "user"]
        assert prompts == ["wait for ever 漢字", "queued", "while it is down 次"]
        await caught_up(client, session_id, follower)
        await check_against_server(client, follower)


async def test_a_session_that_is_opened_while_the_connection_is_lost_is_loaded_when_it_is_back(
    client: Client, other: Client
) -> None:
    workspace_id, first = await place(client)
    _, second = await place(other)
    await other.post_prompt(workspace_id, PostPrompt(session_id=second, prompt="hello", run_id="hello"))
    await other.run(workspace_id, "hello", wait=30)
    async with Follower(client, workspace_id, session_id=first, first_delay_s=NEVER_S) as follower:
        await follower.until(lambda view: not any(view.loads))
        lose(follower)
        follower.open(second)
        assert not list(follower.view.conversation.messages)
        await other.session(workspace_id, second)
        follower.hurry()
        await follower.until(lambda view: view.link.state == "connected" and not any(view.loads))
        assert [message.text for message in follower.view.conversation.messages] == ["hello", "done 🧪"]
        await caught_up(other, second, follower)
        await check_against_server(other, follower)


async def test_a_cancel_covers_the_prompt_that_was_given_before_it(client: Client) -> None:
    workspace_id, session_id = await place(client)
    async with Follower(client, workspace_id, session_id=session_id) as follower:
        run_id = follower.post(PostPrompt(prompt="wait for ever"))
        follower.cancel()
        await follower.until(ended(run_id))
        record = follower.view.find_run(run_id)
        assert record and record.run.state == "cancelled"
        await follower.until(lambda view: not view.outbox.cancels)
        refused = follower.post(PostPrompt(session_id="nowhere", prompt="hello"))
        await follower.until(lambda view: view.outbox.prompts[refused].state == "refused")
        follower.drop(refused)
        follower.cancel("nowhere")
        await follower.until(lambda view: not view.outbox.cancels)
        assert not follower.view.outbox.prompts


async def test_every_event_is_seen_once_in_order_and_many_changes_are_one(client: Client) -> None:
    workspace_id, session_id = await place(client)
    ids: list[str] = []
    losses: list[str] = []

    def note(fed: object, step: object) -> None:
        if isinstance(fed, Received) and fed.id:
            ids.append(fed.id)
        elif isinstance(fed, Disconnected):
            losses.append(fed.why)

    async with Follower(client, workspace_id, session_id=session_id, on_step=note) as follower:
        await follower.until(lambda view: not any(view.loads))
        for number in range(3):
            run_id = follower.post(PostPrompt(prompt=f"hello {number}"))
            if number == 1:
                lose(follower)
            await follower.until(ended(run_id))
        await caught_up(client, session_id, follower)
        seen = follower.revision
        follower.open("")
        follower.open(session_id)
        assert await follower.changed(seen) == seen + 2
    numbers = [int(event_id.partition(".")[2]) for event_id in ids]
    assert losses and numbers == list(range(numbers[0], numbers[-1] + 1))


async def test_older_messages_come_by_the_page(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("covey.client.view_loads.MESSAGES_PAGE", 2)
    workspace_id, session_id = await place(client)
    async with Follower(client, workspace_id) as follower:
        for number in range(3):
            run_id = f"page-{number}"
            prompt = PostPrompt(session_id=session_id, prompt=f"{number}", run_id=run_id)
            await client.post_prompt(workspace_id, prompt)
            await client.run(workspace_id, run_id, wait=30)
        follower.open(session_id)

        def texts(view: View) -> list[str]:
            return [message.text for message in view.conversation.messages if message.role == "user"]

        await follower.until(lambda view: texts(view) == ["2"])
        follower.load_older()
        follower.load_older()
        await follower.until(lambda view: not any(view.loads))
        assert texts(follower.view) == ["1", "2"] and follower.view.conversation.has_older
        follower.load_older()
        await follower.until(lambda view: texts(view) == ["0", "1", "2"])
        assert not follower.view.conversation.has_older


@pytest.mark.parametrize("seed", [1, 2])
async def test_over_connections_that_break_all_the_time_each_prompt_becomes_one_run(
    seed: int, other: Client, server: Server
) -> None:
    workspace_id, session_id = await place(other)
    elsewhere = await other.create_session(workspace_id)
    target = Address(host="127.0.0.1", port=server.port)
    async with cutting_proxy(target, seed) as bad, Client(bad, token=server.token) as client, AsyncExitStack() as stack:
        follower = Follower(client, workspace_id, session_id=session_id, first_delay_s=0.01)
        while follower.view.link.state != "connected":
            with suppress(ConnectionLost):
                await follower.__aenter__()
        stack.push_async_exit(follower)
        run_ids = []
        for number in range(8):
            run_ids.append(follower.post(PostPrompt(session_id=session_id, prompt=f"hello {number}")))
            if number % 3 == 0:
                follower.cancel(session_id, run_ids[-1])
            follower.open(elsewhere.id if number % 2 else session_id)
            await follower.until(lambda view: run_ids[-1] not in view.outbox.prompts)
        follower.open(session_id)
        for run_id in run_ids:
            await follower.until(ended(run_id))
        await caught_up(other, session_id, follower)
        await follower.until(lambda view: not view.outbox.cancels)
        assert [run.run_id for run in await other.runs(workspace_id, session_id=session_id)] == run_ids[::-1]
        await check_against_server(other, follower)
