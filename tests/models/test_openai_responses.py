"""How the Responses API is asked, and what is done about a model that does not take everything."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from covey.lifecycle.reply import Stopped
from covey.models.base import ModelFailed, Retry
from tests.models.asking import answer, request
from tests.models.fixtures import FORMATS, KEY, ROOT
from tests.support.wire_server import WireServer, replay

pytestmark = pytest.mark.anyio

WIRE = FORMATS["responses"]
GOOD = replay(ROOT / "responses" / "text.sse")


@pytest.fixture
def server() -> Iterator[WireServer]:
    with WireServer() as server:
        yield server


def sent(server: WireServer) -> list[dict[str, Any]]:
    return [json.loads(seen.body) for seen in server.requests]


async def test_what_is_sent(server: WireServer) -> None:
    server.on("/responses", GOOD)
    client = WIRE.client(server.url, headers={"OpenAI-Project": "blue"})
    await answer(client, request("hello", system="Be kind."))
    [seen] = server.requests
    assert seen.path == "/v1/responses"
    assert seen.headers["authorization"] == f"Bearer {KEY}" and seen.headers["openai-project"] == "blue"
    assert sent(server)[0]["instructions"] == "Be kind."
    await client.aclose()


@pytest.mark.parametrize(
    ("refusals", "left"),
    [
        (["400_no_summaries"], {"reasoning": {"effort": "low"}, "include": ["reasoning.encrypted_content"]}),
        (["400_no_effort"], {"include": ["reasoning.encrypted_content"]}),
        (["400_no_encrypted_content"], {"reasoning": {"summary": "auto", "effort": "low"}}),
        (["400_no_summaries", "400_no_effort", "400_no_encrypted_content"], {}),
    ],
)
async def test_what_a_model_refuses_is_left_out_from_then_on(
    server: WireServer, refusals: list[str], left: dict[str, Any]
) -> None:
    server.on("/responses", *(replay(ROOT / "responses" / f"{name}.json") for name in refusals), GOOD)
    client, retries = WIRE.client(server.url), list[Retry]()
    for _ in range(2):
        asked = request("hello", effort="low", on_retry=retries.append)
        assert (await answer(client, asked))[-1] == Stopped("end_turn")
    assert len(server.requests) == len(refusals) + 2
    for body in sent(server)[-2:]:
        assert {name: body[name] for name in ("reasoning", "include") if name in body} == left
        assert body["store"] is False
    assert retries == []
    await client.aclose()


async def test_a_refusal_that_does_not_end_is_reported(server: WireServer) -> None:
    server.on("/responses", replay(ROOT / "responses" / "400_no_effort.json"))
    client = WIRE.client(server.url)
    with pytest.raises(ModelFailed, match="answered 400: Unsupported parameter"):
        await answer(client)
    assert len(server.requests) == 2
    await client.aclose()
