"""Anthropic's client over HTTP: what it sends, what it tries again, and that thoughts survive a whole turn."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from covey.config.schema import ProviderSettings
from covey.lifecycle.reply import ModelFact, Reply, TextDelta
from covey.models.anthropic import BINDING, Anthropic
from covey.models.base import ModelFailed, Retry
from covey.protocol.messages import ToolResult, ToolResultPart
from tests.models.asking import answer, message, request, text
from tests.models.fixtures import KEY, ROOT
from tests.support.wire_server import WireServer, replay

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("short_waits")]

FIXTURES = ROOT / "anthropic"
MODEL = "claude-sonnet-5-5"


@pytest.fixture
def server() -> Iterator[WireServer]:
    with WireServer() as server:
        yield server


def client(server: WireServer, **fields: Any) -> Anthropic:
    settings = ProviderSettings(type="anthropic", api_key=KEY, base_url=f"{server.url}/v1", **fields)
    return Anthropic("local", settings)


async def test_who_asks_and_where(server: WireServer) -> None:
    server.on("/messages", replay(FIXTURES / "text.sse"))
    asking = client(server)
    await answer(asking)
    await asking.aclose()
    [seen] = server.requests
    assert seen.path == "/v1/messages"
    assert (seen.headers["x-api-key"], seen.headers["anthropic-version"]) == (KEY, "2023-06-01")
    assert "authorization" not in seen.headers


@pytest.mark.parametrize("own", ["", "context-1m-2025-08-07", f"context-1m-2025-08-07,{BINDING}"])
async def test_a_header_of_ones_own_takes_the_place_of_ours(server: WireServer, own: str) -> None:
    server.on("/messages", replay(FIXTURES / "text.sse"))
    asking = client(server, headers={"Anthropic-Beta": own} if own else {})
    await answer(asking, replace(request("hello"), model=MODEL))
    await asking.aclose()
    [seen] = server.requests
    assert seen.headers["anthropic-beta"] == (own or BINDING)
    assert (b"block_binding" in seen.body) == (BINDING in seen.headers["anthropic-beta"])


async def test_overloaded_before_the_first_word_is_tried_again(server: WireServer) -> None:
    busy, good = replay(FIXTURES / "overloaded_before_words.sse"), replay(FIXTURES / "text.sse")
    server.on("/messages", busy, busy, good)
    retries: list[Retry] = []
    asking = client(server)
    facts = await answer(asking, request("hello", on_retry=retries.append))
    await asking.aclose()
    assert text(facts).startswith("Hello") and [retry.attempt for retry in retries] == [1, 2]
    assert retries[0].error == "local: the model server reported an error: Overloaded"


async def test_overloaded_for_good_is_busy_and_midway_is_not(server: WireServer) -> None:
    asking = client(server, max_attempts=2)
    server.on("/messages", replay(FIXTURES / "overloaded_before_words.sse"))
    with pytest.raises(ModelFailed) as failed:
        await answer(asking)
    assert failed.value.busy
    server.on("/messages", replay(FIXTURES / "overloaded_midway.sse"))
    seen: list[ModelFact] = []
    with pytest.raises(ModelFailed) as failed:
        async for fact in asking.stream(request("hello")):
            seen.append(fact)
    await asking.aclose()
    assert not failed.value.busy and TextDelta("Half an ans") in seen
    assert len(server.requests) == 3


@pytest.mark.parametrize("name", ["redacted", "thinking", "parallel_tools"])
async def test_the_next_step_sends_the_thoughts_of_this_one_unchanged(server: WireServer, name: str) -> None:
    server.on("/messages", replay(FIXTURES / f"{name}.sse"))
    asking, first = client(server), replace(request("hello"), model=MODEL)
    reply = Reply(message_id="m2", session_id="s1", run_id="r1", model=MODEL, provider="local", now=0)
    async for fact in asking.stream(first):
        reply.take(fact)
    said = reply.message(0)
    results = [
        ToolResultPart(data=ToolResult(tool_call_id=call.id, name=call.name, content="x", metadata="", is_error=False))
        for call in said.tool_calls
    ]
    after = [message("tool", *results)] if results else [message("user", "go on")]
    await answer(asking, replace(first, messages=[*first.messages, said, *after]))
    await asking.aclose()
    sent = json.loads(server.requests[1].body)["messages"][1]["content"]
    assert [block for block in sent if "thinking" in block["type"]] == thoughts_in(f"{name}.sse")
    assert sent[0]["type"] == "thinking", "what comes first stays first"


def thoughts_in(name: str) -> list[dict[str, Any]]:
    """Put together here once more, in the simplest way."""
    blocks: dict[int, dict[str, Any]] = {}
    for line in (FIXTURES / name).read_text("utf-8").splitlines():
        event = json.loads(line.removeprefix("data: ")) if line.startswith("data: ") else {}
        if event.get("type") == "content_block_start" and "thinking" in event["content_block"]["type"]:
            blocks[event["index"]] = dict(event["content_block"])
        if event.get("type") == "content_block_delta" and event["index"] in blocks:
            for key in ("thinking", "signature"):
                blocks[event["index"]][key] += event["delta"].get(key, "")
    return list(blocks.values())
