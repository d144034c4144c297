"""Who answers what: this run's requests, and no others."""

from __future__ import annotations

import asyncio
import io

import pytest

from covey.cli import asking as module
from covey.cli.asking import Asking
from covey.cli.screen import Screen
from covey.client.client import Client
from covey.client.errors import ConnectionLost
from covey.protocol.events import PermissionRequest, created
from covey.protocol.paths import Address
from covey.protocol.requests import PermissionAction

pytestmark = pytest.mark.anyio


class Answers(Client):
    """Writes down what would be sent."""

    def __init__(self) -> None:
        super().__init__(Address(path="/nowhere"))
        self.given: list[tuple[str, str]] = []
        self.fails = False

    async def answer_permission(
        self, workspace_id: str, permission_id: str, action: PermissionAction, reason: str = ""
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


async def settle() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


@pytest.mark.usefixtures("nobody")
async def test_a_lost_no_is_given_again_and_told_once() -> None:
    stream, client = io.StringIO(), Answers()
    asking = Asking(client, "w1", "r1", Screen(stream, quiet=True, shares_terminal=False), how_to_allow="by hand")
    client.fails = True
    asking.event(created(request()))
    await settle()
    client.fails = False
    asking.event(created(request()))
    await settle()
    assert client.given == [("p1", "deny"), ("p1", "deny")]
    assert stream.getvalue().count("denied") == 1
    assert "\n  Allow it by hand" in stream.getvalue()
    assert "rm -rf \\x1b[2Kbuild" in stream.getvalue()


@pytest.mark.usefixtures("nobody")
async def test_requests_of_other_runs_are_left_alone() -> None:
    stream, client = io.StringIO(), Answers()
    screen = Screen(stream, quiet=True, shares_terminal=False)
    asking = Asking(client, "w1", "r1", screen, how_to_allow="by hand")
    asking.event(created(request(run_id="r0")))
    asking.close()
    await settle()
    assert client.given == []
    assert stream.getvalue() == ""
