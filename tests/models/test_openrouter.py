"""What OpenRouter is sent beyond Chat Completions, and what is kept of its answers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from covey.config.schema import ProviderSettings
from covey.lifecycle.budget import Price
from covey.lifecycle.reply import ModelFact, ReasoningDelta, Reply, TextDelta, UsageReported
from covey.models.base import ModelRequest, ToolSpec
from covey.models.connect import open_client
from covey.models.openai_compatible import OpenAICompatible
from covey.models.openrouter import DETAILS_LIMIT, OpenRouter
from covey.protocol.messages import Message, ToolResult, ToolResultPart
from tests.models.asking import answer, client, message, request
from tests.support import fake_model
from tests.support.fake_model import FakeModel, delta, event

pytestmark = pytest.mark.anyio

CLAUDE = "anthropic/claude-sonnet-5.5"
MARK = {"type": "ephemeral"}
TOOLS = [ToolSpec("ls", "List.", {"type": "object"}), ToolSpec("view", "View.", {"type": "object"})]


def result(content: str) -> Message:
    done = ToolResult(tool_call_id="c1", name="ls", content=content, metadata="", is_error=False)
    return message("tool", ToolResultPart(data=done))


def said(facts: list[ModelFact], model: str = CLAUDE) -> Message:
    """The stored answer that these facts become."""
    reply = Reply(message_id="m2", session_id="s1", run_id="r1", model=model, provider="local", now=0)
    for fact in facts:
        reply.take(fact)
    return reply.message(0)


def raw(*events: str) -> fake_model.Reply:
    return fake_model.Reply(raw=(*events, delta("stop"), "data: [DONE]\n\n"), ending="end")


async def sent(model: FakeModel, asked: ModelRequest) -> dict[str, Any]:
    async with client(model.url, OpenRouter) as opened:
        await answer(opened, asked)
    return model.requests[-1].body


def test_it_is_known_by_its_address() -> None:
    def opened(name: str, url: str) -> type[object]:
        return type(open_client(name, ProviderSettings(type="openai-compatible", base_url=url)))

    assert opened("mine", "https://openrouter.ai/api/v1") is OpenRouter
    assert opened("openrouter", "http://127.0.0.1:9/v1") is OpenRouter
    assert opened("mine", "https://openrouter.ai.example.com/v1") is OpenAICompatible


@pytest.mark.parametrize("name", [CLAUDE, "google/gemini-3.8-flash"])
async def test_what_a_cache_should_keep_is_marked(model: FakeModel, name: str) -> None:
    asked = request("old", "more", result("one"), result("two"), system="Be kind.", tools=TOOLS)
    body = await sent(model, replace(asked, model=name))
    assert ["cache_control" in tool for tool in body["tools"]] == [False, True]
    contents = [entry["content"] for entry in body["messages"]]
    assert contents == [
        [{"type": "text", "text": "Be kind.", "cache_control": MARK}],
        "old\n\nmore",
        [{"type": "text", "text": "one", "cache_control": MARK}],
        [{"type": "text", "text": "two", "cache_control": MARK}],
    ]


async def test_models_that_cache_by_themselves_get_no_marks(model: FakeModel) -> None:
    body = await sent(model, replace(request("hello", system="Be kind.", tools=TOOLS), model="openai/gpt-6"))
    assert "cache_control" not in str(body)


async def test_thoughts_go_back_as_they_came(model: FakeModel) -> None:
    """Pieces of one thought are joined; what is signed or encrypted is not touched, wherever it came."""
    text = {"type": "reasoning.text", "format": "anthropic-claude-v1", "index": 0}
    secret = {"type": "reasoning.encrypted", "data": "xyz", "id": "call-1", "index": 1}
    model.on(
        lambda _: raw(
            delta(reasoning="so ", reasoning_details=[text | {"text": "so "}]),
            delta(reasoning="be it", reasoning_details=[text | {"text": "be it", "signature": None}]),
            delta(reasoning_details=[text | {"text": "", "signature": "signed"}]),
            delta(content="Yes."),
            delta(reasoning_details=[secret]),
        )
    )
    async with client(model.url, OpenRouter) as opened:
        facts = await answer(opened, replace(request("a"), model=CLAUDE))
        assert facts[:2] == [ReasoningDelta("so be it"), TextDelta("Yes.")]
        mine, others = said(facts), said(facts, "anthropic/claude-opus-5.5")
        await answer(opened, replace(request("a", mine, "b", others, "c"), model=CLAUDE))
    answers = [entry for entry in model.requests[-1].body["messages"] if entry["role"] == "assistant"]
    whole = text | {"text": "so be it", "signature": "signed"}
    assert [entry.get("reasoning_details") for entry in answers] == [[whole, secret], None]
    assert [entry["content"] for entry in answers] == ["Yes.", "Yes."]


async def test_thoughts_that_come_only_as_details_are_shown(model: FakeModel) -> None:
    model.on(
        lambda _: raw(delta(reasoning_details=[{"type": "reasoning.summary", "summary": "hm"}]), delta(content="a"))
    )
    async with client(model.url, OpenRouter) as opened:
        facts = await answer(opened)
    assert facts[0] == ReasoningDelta("hm")


@pytest.mark.parametrize("strange", ["a text", [3], {"type": "reasoning.text"}, [{"type": 7, "text": [1]}]])
async def test_strange_details_spoil_nothing(model: FakeModel, strange: Any) -> None:
    model.on(lambda _: raw(delta(content="a", reasoning_details=strange)))
    async with client(model.url, OpenRouter) as opened:
        facts = await answer(opened)
    assert TextDelta("a") in facts


async def test_details_without_end_are_dropped_and_not_cut(model: FakeModel) -> None:
    """Half of them would be refused."""
    piece = delta(reasoning_details=[{"type": "reasoning.encrypted", "data": "x" * (DETAILS_LIMIT // 4)}])
    model.on(lambda _: raw(*[piece] * 6, delta(content="a")))
    async with client(model.url, OpenRouter) as opened:
        facts = await answer(opened)
    assert not any(isinstance(fact, ReasoningDelta) for fact in facts)


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        ({"cost": 0.25}, 0.25),
        ({"cost": 0, "is_byok": False, "cost_details": {"upstream_inference_cost": 0.5}}, 0.0),
        ({"cost": 0.01, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.5}}, 0.51),
        ({"cost": {"total": 3}}, None),
        ({}, None),
    ],
)
async def test_what_was_charged_counts(model: FakeModel, usage: dict[str, Any], cost: float | None) -> None:
    counted = {"prompt_tokens": 7, "completion_tokens": 3} | usage
    model.on(lambda _: raw(delta(content="a"), event(choices=[], usage=counted)))
    async with client(model.url, OpenRouter) as opened:
        facts = await answer(opened)
    [report] = [fact for fact in facts if isinstance(fact, UsageReported)]
    assert report == UsageReported(7, 3, cost=cost)
    by_price = Price(1.0, 1.0).usage(structs.replace(report, cost=None)).cost
    assert Price(1.0, 1.0).usage(report).cost == (by_price if cost is None else cost)
    assert model.requests[0].body["usage"] == {"include": True}
