"""Who answers when several look at one run: a person does, and who cannot ask one never answers in their place."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

import pytest

from covey.cli import exits
from covey.client.client import Client
from covey.client.event_stream import EventStream
from covey.protocol.events import PermissionRequest, QuestionBatchRequest
from covey.protocol.paths import Address
from covey.protocol.requests import QuestionResponse
from tests.cli.conftest import Home, finish, until
from tests.cli.terminal import Terminal
from tests.cli.test_runs_command import detach_until_it_asks, listed
from tests.support.fake_model import Call, FakeModel, Reply
from tests.support.server import provider_config

NOBODY_HERE = b"nobody can be asked here, and the run waits for an answer: "
SOMEBODY_ELSE = b"waits for somebody else who looks at this session to answer: "
DENIED = "denied, because nobody is here to be asked"

StartTerminal = Callable[..., Terminal]


@pytest.fixture
def terminal() -> Iterator[StartTerminal]:
    made: list[Terminal] = []

    def start(home: Home, *args: str) -> Terminal:
        made.append(Terminal(home, *home.command(*args)))
        return made[-1]

    yield start
    for one in made:
        one.close()


def said(process: subprocess.Popen[bytes], text: bytes) -> bytes:
    """What the process wrote to stderr, up to and with this text."""
    assert process.stderr
    seen = b""
    while text not in seen:
        chunk = os.read(process.stderr.fileno(), 65536)
        assert chunk, f"stderr ended after {seen!r}"
        seen += chunk
    return seen


@asynccontextmanager
async def attached(home: Home, *, looks: bool) -> AsyncIterator[tuple[Client, str, str, EventStream]]:
    """A client with an open stream on a new session, which it says that it shows to somebody, or does not."""
    async with Client(Address(path=str(home.socket))) as client:
        workspace = await client.create_workspace(str(home.project))
        session = await client.create_session(workspace.id)
        async with EventStream(client, workspace.id) as stream:
            if looks:
                await client.set_current_session(workspace.id, session.id)
            yield client, workspace.id, session.id, stream


# ── who only watches ──


def test_a_watcher_without_a_terminal_leaves_a_request_to_the_person_who_looks_at_it(
    home: Home, terminal: StartTerminal
) -> None:
    person = terminal(home, "run", "use the tool")
    person.wait_for("Allow it? ")
    watcher = home.spawn("runs", "wait", listed(home)[0]["run_id"])
    assert b"bash: touch made\n" in said(watcher, NOBODY_HERE + b"bash: touch made\n")
    assert "allowed" not in person.shown.replace("rule allowed", "")
    person.type("y\n")
    assert person.finish() == 0
    assert (home.project / "made").exists()
    code, out, err = finish(watcher)
    assert (code, out) == (0, "Done.\n")
    assert "allowed by you" in err


def test_when_the_server_was_killed_nobody_is_said_to_have_answered(own_home: Home, terminal: StartTerminal) -> None:
    person = terminal(own_home, "run", "use the tool")
    person.wait_for("Allow it? ")
    os.kill(own_home.pid(), signal.SIGKILL)
    assert person.finish() == exits.INTERRUPTED
    assert "no answer is needed any more" in person.shown
    assert "allowed" not in person.shown


def test_a_watcher_without_a_terminal_leaves_a_question_to_the_person_who_looks_at_it(
    home: Home, terminal: StartTerminal
) -> None:
    person = terminal(home, "run", "ask me")
    person.wait_for("Shall I?")
    watcher = home.spawn("runs", "wait", listed(home)[0]["run_id"])
    said(watcher, NOBODY_HERE + b"Shall I?")
    assert listed(home)[0]["asks"] == "question"
    person.type("y\n")
    assert person.finish() == 0
    assert finish(watcher)[0] == 0
    (session,) = home.sessions()
    assert "1. Shall I?\n   yes" in str(home.messages(session["id"])).replace("\\n", "\n")


def test_a_watcher_waits_until_somebody_answers_also_if_nobody_is_there_yet(
    home: Home, terminal: StartTerminal
) -> None:
    run_id = detach_until_it_asks(home)
    watcher = home.spawn("runs", "wait", "--json", run_id)
    said(watcher, NOBODY_HERE)
    assert listed(home)[0]["asks"] == "permission"
    person = terminal(home, "runs", "wait", run_id)
    person.wait_for("Allow it? ")
    person.type("n\n")
    assert person.finish() == 0
    code, out, _ = finish(watcher)
    assert code == 0 and '"text":"Done."' in out
    assert not (home.project / "made").exists()


# ── who posted the prompt ──


@pytest.mark.parametrize("prompt", ["use the tool", "ask me"])
def test_who_posted_it_leaves_it_to_somebody_who_looks_at_the_session(home: Home, prompt: str) -> None:
    home.covey("run", "hello")

    async def answer() -> None:
        async with attached(home, looks=True) as (client, workspace_id, session_id, stream):
            poster = home.spawn("run", "-s", session_id, prompt)
            async for event in stream:
                match event.payload:
                    case PermissionRequest(id=request_id):
                        await asyncio.to_thread(said, poster, SOMEBODY_ELSE + b"bash: touch made\n")
                        assert await client.answer_permission(workspace_id, request_id, "allow")
                        break
                    case QuestionBatchRequest(id=batch_id, questions=(question,)):
                        await asyncio.to_thread(said, poster, SOMEBODY_ELSE + b"Shall I?\n")
                        responses = [QuestionResponse(request_id=question.id, yes=True)]
                        assert await client.answer_questions(workspace_id, batch_id, responses)
                        break
            code, out, err = await asyncio.to_thread(finish, poster)
            assert code == 0 and out.endswith("Done.\n") and DENIED not in err
            assert "allowed" in err or "answered" in err

    asyncio.run(answer())
    assert (home.project / "made").exists() == (prompt == "use the tool")


def test_who_posted_it_denies_as_soon_as_nobody_looks_any_more(home: Home) -> None:
    home.covey("run", "hello")

    async def leave() -> subprocess.Popen[bytes]:
        async with attached(home, looks=True) as (_, _, session_id, _):
            poster = home.spawn("run", "-s", session_id, "use the tool")
            await asyncio.to_thread(said, poster, SOMEBODY_ELSE)
            return poster

    code, _, err = finish(asyncio.run(leave()))
    assert code == 0 and DENIED in err
    assert not (home.project / "made").exists()


def test_who_posted_it_denies_if_others_are_attached_who_cannot_answer(home: Home) -> None:
    """It never hangs: somebody who only watches is nobody to wait for."""
    home.covey("run", "hello")

    async def watch() -> tuple[int, str, str]:
        async with attached(home, looks=False) as (_, _, session_id, _):
            return await asyncio.to_thread(finish, home.spawn("run", "-s", session_id, "use the tool"))

    code, _, err = asyncio.run(watch())
    assert code == 0 and DENIED in err and SOMEBODY_ELSE.decode() not in err


@pytest.fixture
def gated(own_home: Home) -> Iterator[FakeModel]:
    """A model that calls a tool when the gate is opened."""
    call = Call(name="bash", input={"command": "touch made"})
    with FakeModel(
        lambda request: Reply(gates={0: "go"}, tools=(call,)) if request.call_number == 0 else Reply(text="Done.")
    ) as model:
        own_home.config.write_text(provider_config(model.url))
        yield model


def test_a_person_who_waits_at_a_terminal_is_somebody_who_looks(
    own_home: Home, gated: FakeModel, terminal: StartTerminal
) -> None:
    poster = own_home.spawn("run", "-q", "go")
    gated.wait_for(lambda: len(gated.requests) == 1)
    person = terminal(own_home, "runs", "wait", listed(own_home)[0]["run_id"])
    until(lambda: own_home.sessions()[0]["attached_clients"] == 1, "the person is present")
    gated.release("go")
    said(poster, SOMEBODY_ELSE)
    person.wait_for("Allow it? ")
    person.type("y\n")
    assert person.finish() == 0
    code, _, err = finish(poster)
    assert code == 0 and DENIED not in err
    assert (own_home.project / "made").exists()


def test_who_waits_for_a_queued_run_is_nobody_to_wait_for(
    own_home: Home, gated: FakeModel, terminal: StartTerminal
) -> None:
    """They are not shown what the run before theirs asks, and each would wait for the other."""
    poster = own_home.spawn("run", "go")
    gated.wait_for(lambda: len(gated.requests) == 1)
    (session,) = own_home.sessions()
    queued = terminal(own_home, "run", "-s", session["id"], "then this")
    until(lambda: len(listed(own_home)) == 2, "the second prompt is queued")
    gated.release("go")
    code, _, err = finish(poster)
    assert code == 0 and DENIED in err
    queued.wait_for("Allow it? ")
    queued.type("y\n")
    assert queued.finish() == 0
    assert (own_home.project / "made").exists()
