from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from email.utils import formatdate
from typing import Any

import pytest
from tests.models.asking import answer, request, text
from tests.support.fake_model import Call, FakeModel, Recorded, Reply, delta

from covey.config.schema import ProviderSettings
from covey.lifecycle.reply import ModelFact, ReasoningDelta, Stopped, TextDelta, ToolCallBegun, UsageReported
from covey.models import openai_compatible, retry
from covey.models.base import ModelFailed, Retry
from covey.models.openai_compatible import OpenAICompatible

pytestmark = pytest.mark.anyio

KEY = "sk-very-secret"


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    return "asyncio", {"use_uvloop": request.param}


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "BASE_DELAY_S", 0.001)


@asynccontextmanager
async def client(url: str, **settings: Any) -> AsyncIterator[OpenAICompatible]:
    fields = {"type": "openai-compatible", "base_url": url, "api_key": KEY, "idle_timeout_s": 5.0} | settings
    opened = OpenAICompatible("local", ProviderSettings(**fields))
    try:
        yield opened
    finally:
        await opened.aclose()


def one_after_the_other(*replies: Reply) -> Callable[[Recorded], Reply]:
    """The n-th request gets the n-th reply."""
    left = list(replies)
    return lambda _: left.pop(0)


async def failure(model: FakeModel, **settings: Any) -> ModelFailed:
    async with client(model.url, **settings) as opened:
        with pytest.raises(ModelFailed) as failed:
            await answer(opened)
    assert KEY not in str(failed.value)
    assert failed.value.__cause__ is None and failed.value.__suppress_context__
    return failed.value


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


async def test_without_a_key_none_is_sent(model: FakeModel) -> None:
    async with client(model.url, api_key="") as opened:
        await answer(opened)
    assert "authorization" not in model.requests[0].headers


async def test_openai_itself_wants_another_name_for_the_limit(model: FakeModel) -> None:
    async with client(model.url, type="openai") as opened:
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
    assert model.connections == 1


async def test_the_connection_is_free_before_the_last_fact_is_taken(model: FakeModel) -> None:
    """Whoever stops reading at `Stopped` must not leave a connection behind."""
    async with client(model.url) as opened:
        for _ in range(2):
            async for fact in opened.stream(request("hello")):
                if isinstance(fact, Stopped):
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
        await asyncio.wait_for(connected.wait(), 5)
        assert model.requests[0].sent == 0
        model.release("first")
        await asking


# Trying again.


@pytest.mark.parametrize(
    "trouble",
    [
        Reply(status=429, body='{"error": {"message": "slow down"}}', headers={"retry-after": "0"}),
        Reply(status=500, body=""),
        Reply(status=503, body="<html>busy</html>"),
        Reply(status=0),
    ],
    ids=["429", "500", "503", "closed"],
)
async def test_trouble_of_the_moment_passes(model: FakeModel, trouble: Reply) -> None:
    model.on(one_after_the_other(trouble, trouble, Reply(text="fine")))
    retries: list[Retry] = []
    connected: list[bool] = []
    async with client(model.url) as opened:
        asked = request("hello", on_retry=retries.append, on_connected=lambda: connected.append(True))
        assert text(await answer(opened, asked)) == "fine"
    assert [retry.attempt for retry in retries] == [1, 2]
    assert all(retry.error.startswith("local: the server ") for retry in retries)
    assert connected == [True]
    assert len({json.dumps(recorded.body) for recorded in model.requests}) == 1


async def test_attempts_are_counted_and_end(model: FakeModel) -> None:
    model.on(lambda _: Reply(status=503, body='{"error": "overloaded"}'))
    failed = await failure(model, max_attempts=3)
    assert str(failed) == "local: the server answered 503: overloaded (tried 3 times)"
    assert not failed.auth
    assert len(model.requests) == 3


@pytest.mark.parametrize("form", ["seconds", "date"])
async def test_the_server_says_how_long_to_wait(model: FakeModel, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "MAX_RETRY_AFTER_S", 0.002)
    header = "7" if form == "seconds" else formatdate(time.time() + 100, usegmt=True)
    model.on(one_after_the_other(Reply(status=429, body="", headers={"retry-after": header}), Reply()))
    retries: list[Retry] = []
    async with client(model.url) as opened:
        await answer(opened, request("hello", on_retry=retries.append))
    assert 0.002 <= retries[0].delay_s <= 0.0025


async def test_nobody_listens_and_then_somebody_does(model: FakeModel) -> None:
    port = model.port
    retries: list[Retry] = []
    later = FakeModel(port=port)
    with FakeModel() as other:
        assert other.port != port
    model.__exit__()
    try:

        def start(retry: Retry) -> None:
            retries.append(retry)
            if len(retries) == 2:
                later.__enter__()

        async with client(f"http://127.0.0.1:{port}/v1") as opened:
            facts = await answer(opened, request("hello", on_retry=start))
        assert facts[-1] == Stopped("end_turn")
        assert "refused" in retries[0].error and len(retries) == 2
    finally:
        later.__exit__()
        model.__enter__()


@pytest.mark.parametrize("ending", ["cut", "end"])
async def test_nothing_is_repeated_once_the_answer_has_begun(model: FakeModel, ending: Any) -> None:
    model.on(lambda _: Reply(text="half", ending=ending))
    seen: list[ModelFact] = []
    async with client(model.url) as opened:
        with pytest.raises(ModelFailed, match="local: .*the answer was cut off"):
            async for fact in opened.stream(request("hello")):
                seen.append(fact)
    assert seen == [TextDelta("half")]
    assert len(model.requests) == 1


async def test_a_cancel_during_the_wait_for_another_attempt(model: FakeModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "BASE_DELAY_S", 30.0)
    model.on(lambda _: Reply(status=500, body=""))
    waiting = asyncio.Event()
    async with client(model.url) as opened:
        asking = asyncio.create_task(answer(opened, request("hello", on_retry=lambda _: waiting.set())))
        await asyncio.wait_for(waiting.wait(), 5)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(asking, 5)
    assert len(model.requests) == 1


# What goes wrong for good.


@pytest.mark.parametrize("status", [401, 403])
async def test_a_refused_key(model: FakeModel, status: int) -> None:
    model.on(lambda _: Reply(status=status, body=json.dumps({"error": {"message": f"bad key {KEY}"}})))
    failed = await failure(model)
    assert failed.auth
    assert f"refused the API key ({status}): bad key ***" in str(failed)
    assert "api_key for the provider 'local'" in str(failed)
    assert len(model.requests) == 1


async def test_a_missing_key(model: FakeModel) -> None:
    model.on(lambda _: Reply(status=401, body=""))
    failed = await failure(model, api_key="")
    assert failed.auth and "refused a request without an API key (401): it gave no reason" in str(failed)


@pytest.mark.parametrize("status", [400, 404, 422])
async def test_a_refused_request(model: FakeModel, status: int) -> None:
    model.on(lambda _: Reply(status=status, body='{"error": {"message": "no model big"}}'))
    failed = await failure(model)
    assert str(failed) == f"local: the server answered {status}: no model big"
    assert not failed.auth
    assert len(model.requests) == 1


async def test_a_server_that_moved(model: FakeModel) -> None:
    model.on(lambda _: Reply(status=301, body="", headers={"location": "https://new.example/v1"}))
    assert "https://new.example/v1, into base_url" in str(await failure(model))


@pytest.mark.parametrize("status", [200, 404])
async def test_a_web_page(model: FakeModel, status: int) -> None:
    page = "<!DOCTYPE html>\n<html><title>Welcome</title></html>"
    model.on(lambda _: Reply(status=status, body=page, headers={"content-type": "text/html"}))
    assert "does not look like an OpenAI-compatible API" in str(await failure(model))
    assert len(model.requests) == 1


async def test_garbage(model: FakeModel) -> None:
    model.on(lambda _: Reply(raw=(delta(content="x"), "data: %&$!\n\n"), ending="end"))
    assert str(await failure(model)) == "local: the server sent garbage: %&$!"


async def test_an_error_within_the_answer(model: FakeModel) -> None:
    error = 'data: {"error": {"message": "out of memory, ' + KEY + '"}}\n\n'
    model.on(lambda _: Reply(raw=(delta(content="x"), error), ending="silence"))
    assert str(await failure(model)) == "local: the server reported an error: out of memory, ***"
    await model.until(lambda: model.requests[0].closed_early_at is not None)


async def test_secrets_in_headers_are_hidden_too(model: FakeModel) -> None:
    model.on(lambda r: Reply(status=400, body=f"you sent {r.headers['x-key']} and {r.headers['x-mode']}"))
    failed = await failure(model, headers={"X-Key": "Token abcdefgh1234", "X-Mode": "fast"})
    assert str(failed) == "local: the server answered 400: you sent Token *** and fast"


@pytest.mark.parametrize("gates", [{-1: "never"}, {1: "never"}], ids=["at the start", "in the middle"])
async def test_silence(model: FakeModel, gates: dict[int, str]) -> None:
    model.on(lambda _: Reply(chunks=2, gates=gates))
    assert str(await failure(model, idle_timeout_s=0.05)) == "local: the server was silent for 0.05 s (idle_timeout_s)"
    assert len(model.requests) == 1


async def test_an_error_whose_text_never_comes(model: FakeModel) -> None:
    model.on(lambda _: Reply(status=400, raw=("{",), ending="silence"))
    assert "answered 400" in str(await failure(model, connect_timeout_s=0.05))


@pytest.mark.parametrize("ending", ["silence", "cut"])
async def test_once_the_answer_is_whole_its_rest_does_not_matter(
    model: FakeModel, ending: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openai_compatible, "AFTER_FINISH_S", 0.02)
    model.on(lambda _: Reply(raw=(delta(content="x"), delta("stop")), ending=ending))
    async with client(model.url) as opened:
        assert await answer(opened) == [TextDelta("x"), Stopped("end_turn")]


@pytest.mark.parametrize(
    "settings",
    [
        {"base_url": ""},
        {"base_url": "ftp://127.0.0.1/v1"},
        {"base_url": "http://127.0.0.1:notaport/v1"},
        {"base_url": "http:///v1"},
        {"base_url": "http://user:sk-very-secret@127.0.0.1/v1"},
        {"api_key": "sk-very-secret\r\nx: y"},
        {"headers": {"x-team": "blü"}},
    ],
)
async def test_settings_that_cannot_work(settings: dict[str, Any]) -> None:
    fields = {"type": "openai-compatible", "base_url": "http://127.0.0.1/v1"} | settings
    with pytest.raises(ModelFailed, match="^local: ") as failed:
        OpenAICompatible("local", ProviderSettings(**fields))
    assert KEY not in str(failed.value)


# Stopping.


async def test_cancelling_the_task_closes_the_connection(model: FakeModel) -> None:
    model.on(lambda _: Reply(text="half", ending="silence"))
    async with client(model.url) as opened:
        heard = asyncio.Event()

        async def listen() -> None:
            async for _ in opened.stream(request("hello")):
                heard.set()

        listening = asyncio.create_task(listen())
        await asyncio.wait_for(heard.wait(), 5)
        cancelled_at = time.monotonic()
        listening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await listening
        await model.until(lambda: model.requests[0].closed_early_at is not None)
        assert (model.requests[0].closed_early_at or 0) - cancelled_at < 0.5


async def test_closing_the_iterator_closes_the_connection(model: FakeModel) -> None:
    model.on(lambda _: Reply(text="{n}", chunks=1000, delay_ms=5))
    async with client(model.url) as opened:
        facts = opened.stream(request("hello"))
        await anext(facts)
        await facts.aclose()  # type: ignore[attr-defined]
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


# Through a proxy, which the fake model plays as well.


@pytest.fixture
def proxied(model: FakeModel, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{model.port}")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    return "http://model.invalid/v1"


async def test_a_proxy_from_the_environment_is_used(model: FakeModel, proxied: str) -> None:
    model.on(lambda _: Reply(text="word ", chunks=3))
    async with client(proxied) as opened:
        facts = await answer(opened)
    assert text(facts) == "word word word " and facts[-1] == Stopped("end_turn")
    assert model.requests[0].headers["host"] == "model.invalid"
    assert model.requests[0].headers["authorization"] == f"Bearer {KEY}"


async def test_trouble_behind_a_proxy(model: FakeModel, proxied: str) -> None:
    model.on(one_after_the_other(Reply(status=0), Reply(status=503, body=""), Reply(text="half", ending="cut")))
    retries: list[Retry] = []
    async with client(proxied) as opened:
        with pytest.raises(ModelFailed, match="the answer was cut off"):
            await answer(opened, request("hello", on_retry=retries.append))
    assert len(retries) == 2


async def test_silence_behind_a_proxy(model: FakeModel, proxied: str) -> None:
    model.on(one_after_the_other(Reply(gates={-1: "never"}), Reply(gates={1: "never"})))
    async with client(proxied, idle_timeout_s=0.05) as opened:
        for _ in range(2):
            with pytest.raises(ModelFailed, match=r"silent for 0\.05 s"):
                await answer(opened)


async def test_cancelling_behind_a_proxy(model: FakeModel, proxied: str) -> None:
    model.on(lambda _: Reply(text="half", ending="silence"))
    async with client(proxied) as opened:
        asking = asyncio.create_task(answer(opened))
        await model.until(lambda: bool(model.requests))
        asking.cancel()
        await model.until(lambda: model.requests[0].closed_early_at is not None)
        with pytest.raises(asyncio.CancelledError):
            await asking


async def test_a_server_on_this_machine_needs_no_proxy(model: FakeModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    async with client(model.url) as opened:
        assert (await answer(opened))[-1] == Stopped("end_turn")


async def test_a_proxy_that_cannot_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "socks5://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    with pytest.raises(ModelFailed, match="behind a proxy of a kind that needs more software"):
        OpenAICompatible("local", ProviderSettings(type="openai-compatible", base_url="http://model.invalid/v1"))
