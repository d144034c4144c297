"""What an OpenAI-compatible server is sent, what its answers mean, and how a stream is stopped."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from covey.lifecycle.reply import ModelFact, ReasoningDelta, Stopped, TextDelta, ToolCallBegun, UsageReported
from covey.models import lessons
from covey.models.base import ModelFailed, ModelRequest, Retry
from covey.models.http_direct import Direct
from covey.models.openai_compatible import OpenAIChat
from covey.models.wire import WireClient
from covey.protocol.messages import (
    Message,
    Reasoning,
    ReasoningPart,
    ToolCall,
    ToolCallPart,
    ToolResult,
    ToolResultPart,
)
from tests.models.asking import KEY, answer, client, message, request
from tests.support.fake_model import Call, FakeModel, Recorded, Reply

pytestmark = pytest.mark.anyio


async def idle(opened: WireClient) -> None:
    """Wait until a connection has taken in the last bytes of its answer and can be used again."""
    http = opened._http
    assert isinstance(http, Direct)
    async with asyncio.timeout(30):
        while not http._idle:
            await asyncio.sleep(0.001)


async def test_a_whole_answer(model: FakeModel) -> None:
    model.on(lambda _: Reply(reasoning="hm", text="word ", chunks=3, usage=(7, 3)))
    async with client(model.url) as opened:
        facts = await answer(opened)
    assert facts == [ReasoningDelta("hm"), TextDelta("word word word "), UsageReported(7, 3), Stopped("end_turn")]


async def test_what_is_sent(model: FakeModel) -> None:
    async with client(model.url + "/", headers={"X-Team": "blue"}) as opened:
        await answer(opened, request("hello", system="Be kind.", max_tokens=9))
    [sent] = model.requests
    assert sent.body == {
        "model": "big",
        "messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "hello"}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 9,
    }
    assert sent.headers["authorization"] == f"Bearer {KEY}"
    assert sent.headers["x-team"] == "blue"
    assert sent.headers["content-type"] == "application/json"


async def test_an_address_with_a_query(model: FakeModel) -> None:
    async with client(model.url + "?api-version=1") as opened:
        await answer(opened)
    assert model.requests[0].path == "/v1/chat/completions?api-version=1"


async def test_azure_has_its_key_in_a_header_of_its_own(model: FakeModel) -> None:
    async with client(model.url + "?api-version=1", api_key="", headers={"api-key": KEY}) as opened:
        await answer(opened)
    [sent] = model.requests
    assert sent.headers["api-key"] == KEY and "authorization" not in sent.headers


@pytest.mark.parametrize("field", ["reasoning_effort", "stream_options", "response_format"])
async def test_what_a_server_does_not_know_is_left_out_from_then_on(model: FakeModel, field: str) -> None:
    error = json.dumps({"error": {"message": f"Unrecognized request argument supplied: {field}"}})
    model.on(lambda sent: Reply(status=400, body=error) if field in sent.body else Reply())
    retries: list[Retry] = []
    async with client(model.url) as opened:
        for _ in range(2):
            asked = request("hello", effort="high", output_schema={"type": "object"}, on_retry=retries.append)
            assert (await answer(opened, asked))[-1] == Stopped("end_turn")
    assert [field in sent.body for sent in model.requests] == [True, False, False]
    assert all("messages" in sent.body for sent in model.requests)
    assert retries == []


@pytest.mark.parametrize(
    "error",
    [
        "The `reasoning_content` in the thinking mode must be passed back to the API.",
        "Missing `reasoning_content` field in the assistant message at message index 1.",
        "thinking is enabled but reasoning_content is missing in assistant tool call message at index 1",
    ],
)
async def test_a_model_that_misses_its_thoughts_gets_them_back(model: FakeModel, error: str) -> None:
    """DeepSeek wants them since 2026, and refused them before; Kimi says it the other way round.

    Also where there are none, as in a step without thoughts or of another model: an empty field counts as missing.
    """
    thought = ReasoningPart(data=Reasoning(thinking="hm", signature=""))
    others = structs.replace(message("assistant", thought, "yes"), model="small")
    asked = request("a", message("assistant", thought, "no"), "b", others, "c")

    def said(sent: Recorded) -> list[Any]:
        return [entry.get("reasoning_content") for entry in sent.body["messages"] if entry["role"] == "assistant"]

    refusal = Reply(status=400, body=json.dumps({"error": {"message": error}}))
    model.on(lambda sent: Reply() if all(said(sent)) else refusal)
    async with client(model.url) as opened:
        for _ in range(2):
            assert (await answer(opened, asked))[-1] == Stopped("end_turn")
    assert [said(sent) for sent in model.requests] == [[None, None], ["hm", " "], ["hm", " "]]


def of_run(run_id: str, answered: Message) -> Message:
    return structs.replace(answered, run_id=run_id)


def thinking_step(run_id: str, thought: str) -> list[Message]:
    """An answer with a thought and a call, and the call's result."""
    call = ToolCallPart(data=ToolCall(id=f"call-{thought}", name="ls", input="{}", finished=True))
    result = ToolResult(tool_call_id=f"call-{thought}", name="ls", content="a", metadata="", is_error=False)
    answered = message("assistant", ReasoningPart(data=Reasoning(thinking=thought, signature="")), call)
    return [of_run(run_id, answered), of_run(run_id, message("tool", ToolResultPart(data=result)))]


def thoughts_sent(sent: Recorded) -> list[Any]:
    return [entry.get("reasoning_content") for entry in sent.body["messages"] if entry["role"] == "assistant"]


async def test_thoughts_go_back_within_a_turn_to_a_server_that_sends_them(model: FakeModel) -> None:
    """Kimi refuses the second step of a turn without them. Those of earlier turns, and of other models, stay here."""
    model.on(lambda _: Reply(reasoning="hm"))
    elsewhere = [structs.replace(entry, model="small") for entry in thinking_step("r2", "not mine")]
    asked = request("a", *thinking_step("r1", "old"), "b", *thinking_step("r2", "new"), "folded", *elsewhere)
    async with client(model.url) as opened:
        for _ in range(2):
            await answer(opened, asked)
    assert [thoughts_sent(sent) for sent in model.requests] == [[None, None, None], [None, "new", None]]


async def test_thoughts_that_a_server_refuses_are_not_sent_again(model: FakeModel) -> None:
    refusal = Reply(status=400, body='{"error": "Extra inputs are not permitted: reasoning_content"}')
    model.on(lambda sent: refusal if any(thoughts_sent(sent)) else Reply(reasoning="hm"))
    asked = request("a", *thinking_step("r1", "old"))
    async with client(model.url) as opened:
        for _ in range(3):
            assert (await answer(opened, asked))[-1] == Stopped("end_turn")
    assert [thoughts_sent(sent) for sent in model.requests] == [[None], ["old"], [None], [None]]


async def test_what_a_server_refuses_is_known_to_the_next_client_of_it(model: FakeModel) -> None:
    """A client lives as long as a workspace is open, and each run may have one of its own."""
    refusal = Reply(status=400, body='{"error": "Extra inputs are not permitted: reasoning_content"}')
    model.on(lambda sent: refusal if any(thoughts_sent(sent)) else Reply(reasoning="hm"))
    for _ in range(3):
        async with client(model.url) as opened:
            for _ in range(2):
                await answer(opened, request("a", *thinking_step("r1", "old")))
    assert [thoughts_sent(sent) for sent in model.requests].count(["old"]) == 1


def test_only_so_many_servers_are_remembered() -> None:
    first = lessons.lessons_of("chat", "local", "a")
    assert lessons.lessons_of("chat", "local", "a") is first
    for number in range(lessons.KEPT):
        lessons.lessons_of("chat", "local", str(number))
    assert lessons.lessons_of("chat", "local", "a") is not first


async def test_a_field_that_is_refused_although_it_is_not_there(model: FakeModel) -> None:
    model.on(lambda _: Reply(status=400, body='{"error": "reasoning_effort: no"}'))
    async with client(model.url) as opened:
        with pytest.raises(ModelFailed, match="answered 400: reasoning_effort: no"):
            await answer(opened)
    assert len(model.requests) == 1


async def test_the_name_of_a_model_cannot_end_the_request_line(model: FakeModel) -> None:
    class ByModel(OpenAIChat):
        def _path(self, request: ModelRequest) -> str:
            return f"/{request.model}/chat/completions"

    async with client(model.url, ByModel) as opened:
        with pytest.raises(ModelFailed, match="has characters that cannot be sent"):
            await answer(opened, replace(request("hello"), model="x HTTP/1.1\r\nx: y"))
        await answer(opened, replace(request("hello"), model="a:b"))
    assert [sent.path for sent in model.requests] == ["/v1/a:b/chat/completions"]


async def test_without_a_key_none_is_sent(model: FakeModel) -> None:
    async with client(model.url, api_key="") as opened:
        await answer(opened)
    assert "authorization" not in model.requests[0].headers


async def test_openai_itself_wants_another_name_for_the_limit(model: FakeModel) -> None:
    async with client(model.url, OpenAIChat) as opened:
        await answer(opened, request("hello", max_tokens=9))
    assert model.requests[0].body["max_completion_tokens"] == 9
    assert "max_tokens" not in model.requests[0].body


async def test_chunks_that_come_one_by_one(model: FakeModel) -> None:
    model.on(lambda _: Reply(text="{n},", chunks=20, gates={n: str(n) for n in range(20)}))
    seen: list[ModelFact] = []
    async with client(model.url) as opened:
        model.release("0")
        async for fact in opened.stream(request("hello")):
            seen.append(fact)
            model.release(str(len(seen)))
    assert seen[:20] == [TextDelta(f"{n},") for n in range(20)]


async def test_tool_calls(model: FakeModel) -> None:
    tools = (Call(name="bash", input={"command": "ls"}, id="a"), Call(name="view", input={"path": "x"}, id="b"))
    model.on(lambda _: Reply(text="", tools=tools))
    async with client(model.url) as opened:
        facts = await answer(opened)
    assert [fact for fact in facts if isinstance(fact, ToolCallBegun)] == [
        ToolCallBegun(0, "a", "bash"),
        ToolCallBegun(1, "b", "view"),
    ]
    assert facts[-1] == Stopped("tool_use")


async def test_steps_share_a_connection(model: FakeModel) -> None:
    async with client(model.url) as opened:
        for _ in range(3):
            await answer(opened)
            await idle(opened)
    assert model.connections == 1


async def test_the_connection_is_free_before_the_last_fact_is_taken(model: FakeModel) -> None:
    """Whoever stops reading at `Stopped` must not leave a connection behind."""
    async with client(model.url) as opened:
        for _ in range(2):
            async for fact in opened.stream(request("hello")):
                if isinstance(fact, Stopped):
                    await idle(opened)
                    break
    assert model.connections == 1
    assert all(recorded.closed_early_at is None for recorded in model.requests)


async def test_on_connected_comes_with_the_headers(model: FakeModel) -> None:
    model.on(lambda _: Reply(gates={-1: "headers", 0: "first"}))
    connected = asyncio.Event()
    async with client(model.url) as opened:
        asking = asyncio.create_task(answer(opened, request("hello", on_connected=connected.set)))
        await model.until(lambda: bool(model.requests))
        assert not connected.is_set()
        model.release("headers")
        await asyncio.wait_for(connected.wait(), 30)
        assert model.requests[0].sent == 0
        model.release("first")
        await asking


async def test_cancelling_the_task_closes_the_connection(model: FakeModel) -> None:
    model.on(lambda _: Reply(text="half", ending="silence"))
    async with client(model.url) as opened:
        heard = asyncio.Event()

        async def listen() -> None:
            async for _ in opened.stream(request("hello")):
                heard.set()

        listening = asyncio.create_task(listen())
        await asyncio.wait_for(heard.wait(), 30)
        listening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await listening
        await model.until(lambda: model.requests[0].closed_early_at is not None)


async def test_closing_the_iterator_closes_the_connection(model: FakeModel) -> None:
    model.on(lambda _: Reply(text="{n}", chunks=1000, delay_ms=5))
    async with client(model.url) as opened:
        facts = opened.stream(request("hello"))
        await anext(facts)
        await facts.aclose()
        await model.until(lambda: model.requests[0].closed_early_at is not None)
    assert model.requests[0].sent < 1000


async def test_aclose_does_not_disturb_an_answer_under_way(model: FakeModel) -> None:
    model.on(lambda _: Reply(text="{n},", chunks=3, gates={1: "go"}))
    async with client(model.url) as opened:
        facts = opened.stream(request("hello"))
        await anext(facts)
        await opened.aclose()
        model.release("go")
        assert [fact async for fact in facts][-1] == Stopped("end_turn")
