"""One prompt from post to terminal event, while answers get lost and streams break."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from covey.client import prompt as module
from covey.client.client import Client
from covey.client.errors import ServerUnreachable
from covey.client.prompt import follow_run, new_run_id, run_prompt, terminal_of
from covey.client.transcript import TranscriptChange
from covey.protocol.errors import BadRequest, NotFound
from covey.protocol.events import Event, Gap, created, updated
from covey.protocol.requests import PostPrompt
from covey.protocol.runs import PromptReceipt, Run, RunComplete
from tests.client.values import run_complete, some_run, some_session, some_workspace, text_delta, text_message
from tests.support.stub_server import Connection, Handler, Request, StubServer, answer, cut, in_turn, stall

pytestmark = pytest.mark.anyio

EVENTS = "/v1/workspaces/w1/events"
AGENT = "/v1/workspaces/w1/agent"
RUN = "/v1/workspaces/w1/runs/r1"
PROMPT = PostPrompt(session_id="s1", prompt="hello", run_id="r1")
ACCEPTED = answer(202, PromptReceipt(run_id="r1", session_id="s1", seq=1, state="active"))
TOLD: list[Event] = [
    created(text_message("m1")),
    updated(text_delta("m1", 0, "Hello")),
    updated(text_message("m1", "Hello", finish="end_turn")),
]
DONE = created(run_complete(text="Hello"))


class Stage:
    """A server whose stream tells what the test puts on it, once the prompt has been posted."""

    def __init__(self, server: StubServer) -> None:
        self.server = server
        self.posted = asyncio.Event()
        self.connections: list[Connection] = []
        server.on("GET", EVENTS, self._events)
        server.on("POST", AGENT, self.accepting(ACCEPTED))
        server.on("GET", "/v1/workspaces/w1/sessions", answer(200, [some_session()]))
        server.on("GET", "/v1/workspaces/w1/sessions/s1/messages", answer(200, []))
        server.on("GET", "/v1/workspaces/w1", answer(200, some_workspace()))
        self.script: list[list[Event | None]] = []

    def tells(self, *connections: list[Event | None]) -> None:
        """What each connection sends once the prompt was accepted; None cuts it, without it the stream stays open."""
        self.script = list(connections)

    def accepting(self, then: Handler) -> Handler:
        async def handler(request: Request, connection: Connection) -> None:
            await then(request, connection)
            self.posted.set()

        return handler

    async def _events(self, request: Request, connection: Connection) -> None:
        await connection.begin_events()
        await self.posted.wait()
        for seq, event in enumerate(self.script.pop(0) if self.script else [], start=1):
            if event is None:
                connection.cut()
                return
            await connection.event(event, None if "delta" in event.type else seq)
        await stall(request, connection)


@pytest.fixture
async def stage(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    monkeypatch.setattr(module, "FIRST_DELAY_S", 0.001)
    async with StubServer() as server:
        yield Stage(server)


@pytest.fixture
async def client(stage: Stage) -> AsyncIterator[Client]:
    async with Client(stage.server.address, client_id="c1") as made:
        yield made


async def run(client: Client, prompt: PostPrompt = PROMPT) -> tuple[RunComplete, list[Event]]:
    seen: list[Event] = []
    async with asyncio.timeout(60):
        return await run_prompt(client, "w1", prompt, on_event=lambda event, change: seen.append(event)), seen


async def test_it_listens_before_it_posts_and_returns_the_terminal_event(stage: Stage, client: Client) -> None:
    stage.tells([*TOLD, DONE])
    terminal, seen = await run(client)
    assert terminal == DONE.payload
    assert seen == [*TOLD, DONE]
    assert [request.path for request in stage.server.requests] == [EVENTS, AGENT]
    assert stage.server.requests[1].json() == {"session_id": "s1", "prompt": "hello", "run_id": "r1"}


async def test_the_end_of_another_run_is_not_ours(stage: Stage, client: Client) -> None:
    other = created(run_complete("r0", text="other"))
    stage.tells([other, *TOLD, DONE])
    terminal, seen = await run(client)
    assert terminal.run_id == "r1"
    assert seen[0] == other


async def test_a_lost_answer_is_asked_for_again_with_the_same_id(stage: Stage, client: Client) -> None:
    unavailable = answer(503, {"message": "restarting", "code": "shutting_down"})
    stage.server.on("POST", AGENT, in_turn(cut, unavailable, stage.accepting(ACCEPTED)))
    stage.tells([*TOLD, DONE])
    terminal, _ = await run(client)
    assert terminal == DONE.payload
    bodies = {request.body for request in stage.server.asked("POST", AGENT)}
    assert len(stage.server.asked("POST", AGENT)) == 3
    assert len(bodies) == 1


async def test_offering_a_prompt_has_an_end(stage: Stage, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "POST_S", 0.05)
    stage.server.on("POST", AGENT, cut)
    with pytest.raises(ServerUnreachable):
        await run(client)


async def test_a_refusal_is_final(stage: Stage, client: Client) -> None:
    stage.server.on("POST", AGENT, answer(400, {"message": "no model", "code": "no_model"}))
    with pytest.raises(BadRequest) as caught:
        await run(client)
    assert caught.value.code == "no_model"
    assert len(stage.server.asked("POST", AGENT)) == 1


async def test_a_stream_that_breaks_is_resumed(stage: Stage, client: Client) -> None:
    stage.server.on("GET", RUN, stall)
    stage.tells([*TOLD[:2], None], [TOLD[2], DONE])
    terminal, seen = await run(client)
    assert terminal == DONE.payload
    assert seen == [*TOLD, DONE]
    assert stage.server.asked("GET", EVENTS)[1].headers["last-event-id"] == "1.1"


async def test_a_hole_is_healed_by_connecting_again(stage: Stage, client: Client) -> None:
    stage.server.on("GET", RUN, stall)
    late = updated(text_delta("m1", 3, "lo"))
    stage.tells([TOLD[0], late], [updated(text_message("m1", "Hel")), late, TOLD[2], DONE])
    changes: list[TranscriptChange | None] = []
    async with asyncio.timeout(60):
        await run_prompt(client, "w1", PROMPT, on_event=lambda event, change: changes.append(change))
    assert [change and change.kind for change in changes] == ["whole", "hole", "whole", "grew", "whole", None]


async def test_the_record_is_the_authority_when_the_stream_stays_broken(
    stage: Stage, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TAIL_S", 0.01)
    record = answer(200, some_run(state="completed", text="Hello"))
    stage.server.on("GET", RUN, in_turn(cut, answer(200, some_run(state="active")), record))
    stage.tells([TOLD[0], None])
    terminal, seen = await run(client)
    assert (terminal.run_id, terminal.text, terminal.error) == ("r1", "Hello", None)
    assert seen[0] == TOLD[0]
    assert stage.server.asked("GET", RUN)[0].query == {"wait": "60"}


async def test_a_gap_that_swallowed_the_terminal_event(
    stage: Stage, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TAIL_S", 0.01)
    stage.server.on("GET", RUN, answer(200, some_run(state="interrupted", error="the server was killed")))
    stage.tells([created(Gap(reason="lost", resume_from="2.0"))])
    terminal, _ = await run(client)
    assert terminal.interrupted
    assert terminal.error == "the server was killed"


async def test_the_stream_may_still_tell_the_end_of_a_run_that_is_known_to_have_ended(
    stage: Stage, client: Client
) -> None:
    """What the stream says is richer than the record, and it brings the events before the end."""
    stage.server.on("GET", RUN, answer(200, some_run(state="completed", text="Hello")))
    stage.tells([TOLD[0], None], [*TOLD[1:], DONE])
    terminal, seen = await run(client)
    assert seen[-1] == DONE
    assert terminal == DONE.payload


async def test_a_run_that_nobody_knows_any_more_has_no_end(
    stage: Stage, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TAIL_S", 0.01)
    stage.server.on("GET", RUN, answer(404, {"message": "no such run", "code": "run_not_found"}))
    stage.tells([TOLD[0], None])
    with pytest.raises(NotFound):
        await run(client)


async def test_posting_a_run_that_has_ended_returns_how_it_ended(stage: Stage, client: Client) -> None:
    receipt = PromptReceipt(run_id="r1", session_id="s1", seq=1, state="completed")
    stage.server.on("POST", AGENT, answer(202, receipt))
    stage.server.on("GET", RUN, answer(200, some_run(state="completed", text="Hello")))
    terminal, _ = await run(client)
    assert terminal.text == "Hello"


async def test_a_callback_that_raises_ends_the_waiting(stage: Stage, client: Client) -> None:
    def broken_pipe(event: Event, change: TranscriptChange | None) -> None:
        raise BrokenPipeError

    stage.tells([*TOLD, DONE])
    with pytest.raises(BrokenPipeError):
        await run_prompt(client, "w1", PROMPT, on_event=broken_pipe)


async def test_leaving_leaves_no_task_behind(stage: Stage, client: Client) -> None:
    stage.tells([TOLD[0]])
    waiting = asyncio.create_task(run(client))
    await stage.server.wait_for("POST", AGENT)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    names = {getattr(task.get_coro(), "__name__", "") for task in asyncio.all_tasks()}
    assert not names & {"_follow", "_ask"}
    assert not stage.server.asked("POST", f"{RUN}/cancel")


# ── a run that was accepted before ──


async def follow(client: Client, found: Run) -> tuple[RunComplete, list[Event]]:
    seen: list[Event] = []
    async with asyncio.timeout(60):
        return await follow_run(client, "w1", found, on_event=lambda event, change: seen.append(event)), seen


async def test_a_run_of_somebody_else_is_followed_to_its_end(stage: Stage, client: Client) -> None:
    """It listens to the run's session before it asks whether the run is open still, and posts nothing."""
    stage.posted.set()
    stage.server.on("GET", RUN, answer(200, some_run()))
    other = created(run_complete("r0", text="other"))
    stage.tells([other, *TOLD, DONE])
    terminal, seen = await follow(client, some_run())
    assert terminal == DONE.payload
    assert seen == [other, *TOLD, DONE]
    assert [request.path for request in stage.server.requests] == [EVENTS, RUN]
    assert stage.server.requests[0].query["session_id"] == "s1"


async def test_a_run_that_ended_before_the_stream_was_open_is_not_waited_for(stage: Stage, client: Client) -> None:
    stage.server.on("GET", RUN, answer(200, some_run(state="failed", error="no")))
    terminal, seen = await follow(client, some_run(state="active"))
    assert (terminal.outcome, terminal.error, seen) == ("failed", "no", [])


async def test_a_run_that_is_known_to_have_ended_needs_no_stream(stage: Stage, client: Client) -> None:
    ended = some_run(state="completed", text="Hello")
    stage.server.on("GET", RUN, answer(200, ended))
    terminal, _ = await follow(client, ended)
    assert terminal.text == "Hello"
    assert not stage.server.asked("GET", EVENTS)


async def test_a_followed_run_whose_stream_stays_broken_ends_as_its_record_says(
    stage: Stage, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TAIL_S", 0.01)
    stage.posted.set()
    stage.server.on("GET", RUN, in_turn(answer(200, some_run()), answer(200, some_run(state="cancelled"))))
    stage.tells([TOLD[0], None])
    heard: list[bool] = []
    async with asyncio.timeout(60):
        terminal = await follow_run(client, "w1", some_run(), on_connection=lambda up, why: heard.append(up))
    assert terminal.cancelled
    assert False in heard


def test_run_ids_differ_and_are_short() -> None:
    ids = {new_run_id() for _ in range(1000)}
    assert len(ids) == 1000
    assert max(map(len, ids)) == 12


def test_a_record_tells_how_a_run_ended() -> None:
    assert terminal_of(some_run(state="cancelled")).cancelled
    failed = terminal_of(some_run(state="failed", error="no", text="half an"))
    assert (failed.error, failed.text) == ("no", "half an")
    assert terminal_of(some_run(state="completed", text="yes")).text == "yes"
    with pytest.raises(AssertionError):
        terminal_of(some_run(state="active"))
