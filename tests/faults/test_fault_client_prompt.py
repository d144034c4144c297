"""Between client and server: a prompt whose request or answer is lost, late or garbled runs once, or not at all."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from covey.client.client import Client
from covey.client.errors import ServerUnreachable
from covey.client.prompt import run_prompt
from covey.client.transcript import Transcript
from covey.protocol.errors import ApiError
from covey.protocol.events import Event
from covey.protocol.requests import PostPrompt
from covey.protocol.runs import RunComplete
from tests.faults.watching import is_prompt, is_stream, place, through
from tests.support.fake_model import FakeModel, Recorded, Reply
from tests.support.fault_proxy import Fault, FaultProxy, Link, Plan, Way
from tests.support.server import Server, Workspace, outline, text_of

FAULTS: tuple[Fault, ...] = ("cut", "reset", "half_close")
TEXT_GARBAGE = "\N{SNOWMAN}garbage".encode()[1:]
"""Not valid UTF-8, but nothing that JSON forbids: a careless reader makes a text of it."""
ANSWER_S = 2.5
"""After this a client gives up an answer. Those that are only late, because all ask at once, must not take as long."""
HEAD = 180
"""The head of a stream's answer has so many bytes. A first connection that breaks within it is a failure at once."""
LOST: dict[str, Callable[[int], Plan]] = {
    "answer": lambda n: Plan(down=Way(after=n * 11, fault=FAULTS[n % 3])),
    "request": lambda n: Plan(up=Way(after=n * 17, fault=FAULTS[n % 3])),
    "answer that never comes": lambda n: Plan(down=Way(after=n * 11, fault="stall")),
    "request that never arrives": lambda n: Plan(up=Way(after=n * 17, fault="stall")),
}


def answer(request: Recorded) -> Reply:
    return Reply(text=f"{request.prompt} {{n}} 🐦 ", chunks=3)


@pytest.fixture
def workspace(server: Server, model: FakeModel, tmp_path: Path) -> Iterator[Workspace]:
    model.on(answer)
    opened = place(server, tmp_path / "project")
    yield opened
    opened.close()


class Trial:
    """One prompt through a proxy of its own, and what the client saw."""

    def __init__(self, workspace: Workspace, number: int, decide: Callable[[Link], Plan]) -> None:
        self.workspace = workspace
        self.run_id = f"run-{number}"
        self.prompt = f"prompt {number} of {workspace.id}"
        self.session = workspace.session()
        self.transcript = Transcript()
        self.terminal: RunComplete | None = None
        self.error: Exception | None = None
        self.accepted = 0
        self.links: list[Link] = []
        self._decide = decide

    async def go(self, **options: Any) -> None:
        with FaultProxy(self.workspace.server.port, self._decide) as proxy:
            async with through(proxy, self.workspace.server, **options) as client, asyncio.timeout(90):
                try:
                    self.terminal = await self._run(client)
                except (ServerUnreachable, ApiError) as error:
                    self.error = error
            self.links = proxy.links

    async def _run(self, client: Client) -> RunComplete:
        def on_event(event: Event, _: Any) -> None:
            self.transcript.apply(event)

        def on_accepted(_: Any) -> None:
            self.accepted += 1

        request = PostPrompt(session_id=self.session, prompt=self.prompt, run_id=self.run_id)
        return await run_prompt(client, self.workspace.id, request, on_event=on_event, on_accepted=on_accepted)

    @property
    def struck(self) -> int:
        return sum(link.struck for link in self.links)

    def check_done_once(self, model: FakeModel) -> None:
        """The client has the truth: one run, asked for once, with its whole text."""
        assert self.terminal, self.error
        text = "".join(f"{self.prompt} {n} 🐦 " for n in range(3))
        assert (self.terminal.run_id, self.terminal.text, self.terminal.error) == (self.run_id, text, None)
        assert self.accepted == 1
        stored = self.workspace.messages(self.session)
        assert outline(stored) == [self.prompt, "assistant end_turn"]
        assert text_of(stored[1]) == text
        assert [run["run_id"] for run in self.workspace.get(f"/runs?session_id={self.session}")] == [self.run_id]
        assert [r.prompt for r in model.requests].count(self.prompt) == 1

    def check_saw_all(self) -> None:
        """What the client was shown on the way is what the server has."""
        shown = json.loads(msgspec.json.encode(tuple(self.transcript)))
        assert shown == self.workspace.messages(self.session)


def first(wanted: Callable[[Link], bool], plan: Plan) -> Callable[[Link], Plan]:
    """The plan for the first connection of a kind; nothing happens to others."""
    waiting = [plan]
    return lambda link: waiting.pop() if waiting and wanted(link) else Plan()


@pytest.mark.anyio
@pytest.mark.parametrize("lost", LOST)
async def test_r14_a_post_that_was_lost_is_repeated_and_runs_once(
    workspace: Workspace, model: FakeModel, lost: str
) -> None:
    """At every place: before the server has read it, after it was accepted, in the middle of the answer."""
    trials = [Trial(workspace, n, first(is_prompt, LOST[lost](n))) for n in range(16)]
    await asyncio.gather(*(trial.go(answer_s=ANSWER_S) for trial in trials))
    for trial in trials:
        trial.check_done_once(model)
        assert trial.struck == 1


@pytest.mark.anyio
async def test_r14_both_ways_are_bad_for_a_while(workspace: Workspace, model: FakeModel) -> None:
    """The first six connections break, each at another place: streams, posts, and whatever is asked in between."""

    def decide(link: Link) -> Plan:
        after = HEAD + 10 if is_stream(link) else 20 + 13 * link.number
        return Plan(down=Way(after=after, fault=FAULTS[link.number % 3])) if link.number < 6 else Plan()

    trials = [Trial(workspace, n, decide) for n in range(4)]
    await asyncio.gather(*(trial.go(answer_s=ANSWER_S) for trial in trials))
    for trial in trials:
        assert trial.struck >= 3
        trial.check_done_once(model)


@pytest.mark.anyio
@pytest.mark.parametrize("garbage", [Way().garbage, TEXT_GARBAGE], ids=["every byte", "broken text"])
@pytest.mark.parametrize("where", [is_prompt, is_stream], ids=["the 202", "the stream"])
async def test_garbage_from_the_server_is_never_taken_for_an_answer(
    workspace: Workspace, model: FakeModel, where: Callable[[Link], bool], garbage: bytes
) -> None:
    """The client finds out and asks again; if it cannot, it says so. What it gives is always what the server has."""
    positions = range(1, 260, 10) if where is is_prompt else range(HEAD, 16_000, 480)
    trials = [
        Trial(workspace, n, first(where, Plan(down=Way(after=n, fault="garbage", garbage=garbage)))) for n in positions
    ]
    await asyncio.gather(*(trial.go(answer_s=ANSWER_S) for trial in trials))
    for trial in trials:
        if where is is_stream and not trial.links[0].struck:
            continue  # the stream was shorter than that
        if trial.terminal:
            trial.check_done_once(model)
            if where is is_stream:
                trial.check_saw_all()
    assert sum(trial.terminal is not None for trial in trials) > len(trials) // 4, "hardly anybody found a way"


@pytest.mark.anyio
async def test_garbage_in_every_answer_is_a_failure(workspace: Workspace) -> None:
    trial = Trial(workspace, 1, lambda link: Plan(down=Way(after=9, fault="garbage")))
    await trial.go(answer_s=ANSWER_S)
    assert trial.terminal is None
    assert isinstance(trial.error, ServerUnreachable)
    assert trial.accepted == 0


@pytest.mark.anyio
async def test_a_prompt_garbled_on_its_way_is_never_run_as_it_arrived(workspace: Workspace, model: FakeModel) -> None:
    trials = [
        Trial(workspace, n, first(is_prompt, Plan(up=Way(after=n * 19, fault="garbage", garbage=g))))
        for n, g in enumerate([b"###", TEXT_GARBAGE, Way().garbage] * 8)
    ]
    await asyncio.gather(*(trial.go(answer_s=ANSWER_S) for trial in trials))
    for trial in trials:
        runs = workspace.get(f"/runs?session_id={trial.session}")
        assert [run["prompt"] for run in runs] in ([], [trial.prompt])
        assert bool(runs) == bool(trial.terminal), trial.error
    assert any(trial.error for trial in trials)


@pytest.mark.anyio
async def test_r14_what_the_client_saw_is_what_is_stored(workspace: Workspace, model: FakeModel) -> None:
    """The stream breaks before its first event id: there is no place to resume from, so everything is read again."""
    plans = {n: first(is_stream, Plan(down=Way(after=n, fault="cut"))) for n in range(HEAD, 700, 40)}
    trials = [Trial(workspace, n, plan) for n, plan in plans.items()]
    await asyncio.gather(*(trial.go() for trial in trials))
    for trial in trials:
        trial.check_done_once(model)
        trial.check_saw_all()
