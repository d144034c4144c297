"""A follower on both ways in: a server process, and a server in the process of a program."""

from __future__ import annotations

import pytest

import covey
from covey.client.follower import Follower
from covey.protocol.requests import PostPrompt
from tests.support.following import caught_up, check_against_server, shown

pytestmark = pytest.mark.anyio


async def test_two_followers_agree_and_a_hole_is_closed(client: covey.WorkspaceClient) -> None:
    session_id = (await client.create_session(client.workspace_id)).id
    async with (
        client.another("Bo") as other,
        Follower(client, client.workspace_id, session_id=session_id, first_delay_s=0.01) as ada,
        Follower(other, client.workspace_id, session_id=session_id) as bo,
    ):
        run_id = ada.post(PostPrompt(prompt="make it"))
        await bo.until(lambda view: view.asks.open)
        (ask_id,) = bo.view.asks.open
        ada._lost("text is missing")
        ada._stream.reconnect()
        bo.answer_permission(ask_id, "allow")
        for follower in (ada, bo):
            await follower.until(lambda view: (record := view.find_run(run_id)) and record.run.ended)
        await caught_up(client, session_id, ada, bo)
        ours, theirs = shown(ada), shown(bo)
        assert [closed["id"] for closed in theirs["closed_asks"]] == [ask_id]
        for state in (ours, theirs):
            del state["closed_asks"]  # who answered is not sent again to whoever was away
        assert ours == theirs
        await check_against_server(client, ada)
