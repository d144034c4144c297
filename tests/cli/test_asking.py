"""Who answers what: this run's requests, and no others."""

from __future__ import annotations

import asyncio
import io
import os

import msgspec
import pytest

from covey.cli import asking as module
from covey.cli.asking import Asking, Unattended
from covey.cli.asks import Heard, PermissionAnswer, PermissionAsk, QuestionAsk
from covey.cli.screen import Screen
from covey.client.client import Client
from covey.client.errors import ConnectionLost
from covey.client.view.view import View
from covey.lines.permission import PermissionShown, choices, request_lines
from covey.protocol.events import (
    Event,
    PermissionNotification,
    PermissionRequest,
    Presence,
    QuestionBatchRequest,
    QuestionChoice,
    QuestionItem,
    created,
    updated,
)
from covey.protocol.messages import Session
from covey.protocol.paths import Address
from covey.protocol.requests import PermissionAction
from covey.protocol.runs import RunState
from covey.tui.face.keys import DEFAULT
from tests.client.values import some_run, some_session

pytestmark = pytest.mark.anyio


class Answers(Client):
    """Writes down what would be sent."""

    def __init__(self) -> None:
        super().__init__(Address(path="/nowhere"))
        self.given: list[tuple[str, str]] = []
        self.fails = False

        self.looked_at: list[str] = []
        self.others = 0

    async def session(self, workspace_id: str, session_id: str) -> Session:
        return msgspec.structs.replace(some_session(session_id), attached_clients=self.others)

    async def set_current_session(self, workspace_id: str, session_id: str) -> None:
        self.looked_at.append(session_id)

    async def answer_permission(
        self, workspace_id: str, permission_id: str, action: PermissionAction, reason: str = "", **further: bool
    ) -> bool:
        self.given.append((permission_id, action))
        if self.fails:
            raise ConnectionLost("lost")
        return True


def request(request_id: str = "p1", run_id: str | None = "r1") -> PermissionRequest:
    return PermissionRequest(
        id=request_id,
        session_id="s1",
        tool_call_id="c1",
        tool_name="bash",
        description="rm -rf \x1b[2Kbuild",
        action="execute",
        params={},
        path="/project",
        run_id=run_id,
    )


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_terminal", lambda: None)


def asking_for(client: Client, stream: io.StringIO, unattended: Unattended) -> Asking:
    screen = Screen(stream, quiet=True, shares_terminal=False)
    return Asking(
        client, View("s1", loads=False), "w1", "r1", screen, unattended=unattended, how_to_allow=lambda _: "by hand"
    )


def feed(asking: Asking, event: Event) -> None:
    asking.view.event(event)
    asking.update()


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.mark.usefixtures("nobody")
async def test_a_lost_no_is_given_again_and_reported_once() -> None:
    stream, client = io.StringIO(), Answers()
    asking = asking_for(client, stream, Unattended.DENY)
    client.fails = True
    feed(asking, created(request()))
    await settle()
    client.fails = False
    feed(asking, created(request()))
    await settle()
    assert client.given == [("p1", "deny"), ("p1", "deny")]
    assert stream.getvalue().count("denied") == 1
    assert "\n  Allow it by hand" in stream.getvalue()
    assert "rm -rf \\x1b[2Kbuild" in stream.getvalue()


@pytest.mark.usefixtures("nobody")
async def test_how_to_allow_a_thing_is_said_once_however_often_a_model_tries_it() -> None:
    stream, client = io.StringIO(), Answers()
    asking = asking_for(client, stream, Unattended.DENY)
    for request_id in ("p1", "p2"):
        feed(asking, created(request(request_id)))
    feed(asking, created(msgspec.structs.replace(request("p3"), rules=("bash:rm",))))
    await settle()
    assert [given for given, _ in client.given] == ["p1", "p2", "p3"]
    assert stream.getvalue().count("denied, because nobody is here to be asked") == 3
    assert stream.getvalue().count("Allow it by hand") == 1


@pytest.mark.usefixtures("nobody")
async def test_requests_of_other_runs_are_left_alone() -> None:
    stream, client = io.StringIO(), Answers()
    asking = asking_for(client, stream, Unattended.DENY)
    feed(asking, created(request(run_id="r0")))
    asking.close()
    await settle()
    assert client.given == []
    assert stream.getvalue() == ""


@pytest.mark.usefixtures("nobody")
async def test_who_only_watches_answers_nothing_and_says_so_once() -> None:
    stream, client = io.StringIO(), Answers()
    asking = asking_for(client, stream, Unattended.WATCH)
    for _ in range(2):
        feed(asking, created(request()))
    await settle()
    assert (client.given, client.looked_at) == ([], [])
    assert stream.getvalue().count("the run waits for an answer: bash: rm -rf \\x1b[2Kbuild") == 1
    assert "`covey runs wait r1`" in stream.getvalue()


@pytest.mark.usefixtures("nobody")
async def test_a_request_is_denied_as_soon_as_nobody_else_looks() -> None:
    """An event tells that somebody left; what it says is not believed, but looked up."""
    stream, client = io.StringIO(), Answers()
    client.others = 1
    asking = asking_for(client, stream, Unattended.DENY_IF_ALONE)
    feed(asking, created(request()))
    await settle()
    feed(asking, updated(Presence(client_id="c", session_id="", attached=False)))
    await settle()
    assert client.given == []
    client.others = 0
    feed(asking, updated(Presence(client_id="c", session_id="", attached=False)))
    await settle()
    assert client.given == [("p1", "deny")]
    waits, denied = stream.getvalue().index("waits for somebody else"), stream.getvalue().index("denied, because")
    assert waits < denied


@pytest.mark.usefixtures("nobody")
async def test_what_somebody_else_answers_is_not_denied_any_more() -> None:
    stream, client = io.StringIO(), Answers()
    client.others = 1
    asking = asking_for(client, stream, Unattended.DENY_IF_ALONE)
    feed(asking, created(request()))
    await settle()
    feed(asking, created(PermissionNotification(tool_call_id="c1", granted=True, denied=False, permission_id="p1")))
    client.others = 0
    feed(asking, updated(Presence(client_id="c", session_id="", attached=False)))
    await settle()
    assert client.given == []
    asking.close()


async def test_who_can_be_asked_is_present_while_the_run_is_active(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not before: whoever waits for a queued run is not shown what the one before it asks."""
    screen_end, terminal = os.openpty()
    monkeypatch.setattr(module, "find_terminal", lambda: terminal)
    client = Answers()
    asking = asking_for(client, io.StringIO(), Unattended.WATCH)
    asking.connection(True)
    states: tuple[RunState, ...] = ("accepted", "queued")
    for state in states:
        feed(asking, updated(some_run(state=state)))
    await settle()
    assert client.looked_at == []
    for _ in range(2):
        feed(asking, updated(some_run(state="active")))
    await settle()
    assert client.looked_at == ["s1"]
    asking.connection(False)
    asking.connection(True)
    await settle()
    assert client.looked_at == ["s1", "s1"]
    asking.close()
    os.close(screen_end)
    os.close(terminal)


async def test_a_terminal_that_is_gone_has_answered_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading it gives the same nothing as Ctrl-D, which is a no."""
    screen_end, terminal = os.openpty()
    monkeypatch.setattr(module, "find_terminal", lambda: terminal)
    stream, client = io.StringIO(), Answers()
    asking = asking_for(client, stream, Unattended.WATCH)
    asking.connection(True)
    feed(asking, created(request()))
    os.close(screen_end)
    async with asyncio.timeout(10):
        while client.looked_at != ["s1", ""]:
            await asyncio.sleep(0)
    await settle()
    assert client.given == []
    assert "the run waits for an answer" in stream.getvalue()
    os.close(terminal)


CONFINED = msgspec.structs.replace(request(), confined=True, sandbox="It runs in the sandbox.", rules=("bash:x",))


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("y", PermissionAnswer("allow")),
        ("w", PermissionAnswer("allow", network=True)),
        ("yw", PermissionAnswer("allow", network=True)),
        ("s w", PermissionAnswer("allow_session", network=True)),
        ("a", PermissionAnswer("allow")),
        ("d", PermissionAnswer("deny")),
        ("RW", PermissionAnswer("allow_always", network=True)),
        ("u", PermissionAnswer("allow", unsandboxed=True)),
        ("ru", PermissionAnswer("allow_always", unsandboxed=True)),
        ("n", PermissionAnswer("deny")),
        ("no, without network", PermissionAnswer("deny", "without network")),
        ("nw", Heard.AGAIN),
        ("now", Heard.AGAIN),
    ],
)
def test_an_answer_says_whether_a_command_has_the_network(typed: str, answer: object) -> None:
    ask = PermissionAsk(CONFINED)
    assert ask.question.startswith("Allow it? [y]es")
    assert "yes [w]ith network, [u]nsandboxed" in ask.question
    assert ask.hear(typed + "\n") == answer


WANTS_NETWORK = msgspec.structs.replace(CONFINED, network=True, asks_for="network", reason="It asks for the network.")


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("y", PermissionAnswer("allow", network=True)),
        ("s", PermissionAnswer("allow_session", network=True)),
        ("r", PermissionAnswer("allow_always", network=True)),
        ("w", PermissionAnswer("allow", network=True)),
        ("o", PermissionAnswer("allow")),
        ("so", PermissionAnswer("allow_session")),
        ("ru", PermissionAnswer("allow_always", unsandboxed=True)),
        ("A", PermissionAnswer("allow_always", network=True)),
        ("AU", PermissionAnswer("allow_always", unsandboxed=True)),
        ("a", PermissionAnswer("allow", network=True)),
        ("ao", PermissionAnswer("allow")),
        ("Y", PermissionAnswer("allow", network=True)),
        ("n", PermissionAnswer("deny")),
        ("no", PermissionAnswer("deny")),
    ],
)
def test_a_plain_yes_to_a_call_that_asks_for_the_network_gives_it(typed: str, answer: object) -> None:
    ask = PermissionAsk(WANTS_NETWORK)
    assert "[y]es, with network, [n]o" in ask.question and "yes with[o]ut network" in ask.question
    said = [each.text for each in request_lines(PermissionShown(["bash:"], WANTS_NETWORK, is_cut=False), 80)]
    assert said == ["bash:", "It asks for the network.", "It runs in the sandbox."]
    assert ask.hear(typed + "\n") == answer


def test_the_choices_say_what_a_plain_yes_gives() -> None:
    def texts(asked: PermissionRequest) -> dict[str, str]:
        return dict(choices(PermissionShown(["bash:"], asked, is_cut=False)))

    assert texts(WANTS_NETWORK)["y"] == "yes, once, with network"
    assert texts(WANTS_NETWORK)["A"] == "yes, always here, with network: bash:x"
    assert texts(WANTS_NETWORK)["o"] == "yes, once, without network"
    guessed = texts(msgspec.structs.replace(CONFINED, network=True))
    assert (guessed["y"], guessed["w"]) == ("yes, once, without network", "yes, once, with network")
    leaves = texts(msgspec.structs.replace(CONFINED, network=True, asks_for="everything"))
    assert (leaves["y"], leaves["u"]) == ("yes, once, inside the sandbox", "yes, once, outside the sandbox")
    assert texts(CONFINED)["y"] == "yes, once"


def test_where_nothing_is_confined_no_such_answer_is_offered() -> None:
    ask = PermissionAsk(request())
    assert "network" not in ask.question
    assert ask.hear("w\n") is Heard.AGAIN


def test_letters_mean_what_they_mean_in_the_terminal_ui() -> None:
    there = {"deny": "deny", "allow_once": "allow", "allow_session": "allow_session"}
    letters = {key: there[each.intent] for each in DEFAULT for key in each.keys if each.intent in there}
    ask = PermissionAsk(msgspec.structs.replace(CONFINED, prefix_rules=("bash:x *",)))
    for key in filter(str.isalpha, letters):
        answer = ask.press(key)
        assert isinstance(answer, PermissionAnswer) and answer.action == letters[key], key
    assert {"a", "s", "d"} <= set(letters)


async def test_of_several_questions_each_says_which_it_is_and_what_was_no_answer() -> None:
    way = QuestionItem(
        id="q1", type="single_choice", question="Which way?", choices=(QuestionChoice(id="1", label="left"),)
    )
    sure = QuestionItem(id="q2", type="yes_no", question="Sure?")
    ask = QuestionAsk(QuestionBatchRequest(id="b", session_id="s1", tool_call_id="c", questions=(way, sure)))
    assert ask.text.startswith("1 of 2: Which way?\n")
    assert ask.hear("7") is Heard.AGAIN and ask.again.startswith("There is no such choice. ")
    assert ask.hear("1") is Heard.MORE and ask.text.startswith("2 of 2: Sure?\n")
    assert ask.hear("hm") is Heard.AGAIN and ask.again.startswith("That is no answer. ")
