"""What happens when an OpenAI-compatible server refuses, breaks, falls silent or lies."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import ExitStack
from email.utils import formatdate
from typing import Any

import pytest

from covey.config.schema import ProviderSettings
from covey.lifecycle.reply import ModelFact, Stopped, TextDelta
from covey.models import retry, wire
from covey.models.base import ModelFailed, Retry
from covey.models.openai_compatible import OpenAICompatible
from tests.models.asking import KEY, answer, client, failure, one_after_the_other, request, text
from tests.support.fake_model import FakeModel, Reply, delta
from tests.support.machine import refusing_port

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("short_waits")]


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
    assert all(retry.error.startswith("local: the model server ") for retry in retries)
    assert connected == [True]
    assert len({json.dumps(recorded.body) for recorded in model.requests}) == 1


async def test_attempts_are_counted_and_end(model: FakeModel) -> None:
    model.on(lambda _: Reply(status=503, body='{"error": "overloaded"}'))
    failed = await failure(model, max_attempts=3)
    assert str(failed) == "local: the model server answered 503: overloaded (tried 3 times)"
    assert failed.busy and not failed.auth
    assert len(model.requests) == 3


async def test_a_quota_that_is_used_up_is_not_waited_for(model: FakeModel) -> None:
    model.on(lambda _: Reply(status=429, body='{"error": {"message": "pay", "code": "insufficient_quota"}}'))
    failed = await failure(model)
    assert failed.busy and len(model.requests) == 1


async def test_a_conversation_that_is_too_long(model: FakeModel) -> None:
    model.on(lambda _: Reply(status=400, body='{"error": {"message": "no", "code": "context_length_exceeded"}}'))
    failed = await failure(model)
    assert failed.overflow and not failed.busy and len(model.requests) == 1


@pytest.mark.parametrize("form", ["seconds", "date"])
async def test_the_server_says_how_long_to_wait(model: FakeModel, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "MAX_RETRY_AFTER_S", 0.002)
    header = "7" if form == "seconds" else formatdate(time.time() + 100, usegmt=True)
    model.on(one_after_the_other(Reply(status=429, body="", headers={"retry-after": header}), Reply()))
    retries: list[Retry] = []
    async with client(model.url) as opened:
        await answer(opened, request("hello", on_retry=retries.append))
    assert 0.002 <= retries[0].delay_s <= 0.0025


async def test_nobody_listens_and_then_somebody_does() -> None:
    retries: list[Retry] = []
    with refusing_port() as port, ExitStack() as stack:

        def start(retry: Retry) -> None:
            retries.append(retry)
            stack.enter_context(FakeModel(port=port))

        async with client(f"http://127.0.0.1:{port}/v1") as opened:
            facts = await answer(opened, request("hello", on_retry=start))
    assert facts[-1] == Stopped("end_turn")
    assert "the model server cannot be reached" in retries[0].error and "refused" in retries[0].error
    assert len(retries) == 1


@pytest.mark.parametrize("host", ["127.0.0.1", "nobody-has-this-name.invalid"])
async def test_where_nobody_is_it_is_tried_only_twice(host: str) -> None:
    retries: list[Retry] = []
    with refusing_port() as port:
        async with client(f"http://{host}:{port}/v1") as opened:
            with pytest.raises(ModelFailed, match=r"cannot be reached at .*\(tried 2 times\)") as failed:
                await answer(opened, request("hello", on_retry=retries.append))
    assert failed.value.busy and len(retries) == 1


@pytest.mark.parametrize("ending", ["cut", "end"])
async def test_nothing_is_repeated_once_the_answer_has_begun(model: FakeModel, ending: Any) -> None:
    model.on(lambda _: Reply(text="half", ending=ending))
    seen: list[ModelFact] = []
    async with client(model.url) as opened:
        with pytest.raises(ModelFailed, match=r"local: .*the answer was cut off") as failed:
            async for fact in opened.stream(request("hello")):
                seen.append(fact)
    assert failed.value.broken and not failed.value.busy, "who can take the words back may ask again"
    assert seen == [TextDelta("half")]
    assert len(model.requests) == 1


async def test_a_cancel_during_the_wait_for_another_attempt(model: FakeModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "BASE_DELAY_S", 30.0)
    model.on(lambda _: Reply(status=500, body=""))
    waiting = asyncio.Event()
    async with client(model.url) as opened:
        asking = asyncio.create_task(answer(opened, request("hello", on_retry=lambda _: waiting.set())))
        await asyncio.wait_for(waiting.wait(), 30)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(asking, 20)
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


async def test_a_refusal_that_is_a_sentence_ends_with_one_full_stop(model: FakeModel) -> None:
    model.on(lambda _: Reply(status=401, body=json.dumps({"error": {"message": "The key was refused."}})))
    assert "The key was refused. Set api_key" in str(await failure(model))


async def test_a_missing_key(model: FakeModel) -> None:
    model.on(lambda _: Reply(status=401, body=""))
    failed = await failure(model, api_key="")
    assert failed.auth and "refused a request without an API key (401): it gave no reason" in str(failed)


@pytest.mark.parametrize("status", [400, 404, 422])
async def test_a_refused_request(model: FakeModel, status: int) -> None:
    model.on(lambda _: Reply(status=status, body='{"error": {"message": "no model big"}}'))
    failed = await failure(model)
    assert str(failed) == f"local: the model server answered {status}: no model big"
    assert not failed.auth
    assert len(model.requests) == 1


async def test_a_server_that_moved(model: FakeModel) -> None:
    model.on(lambda _: Reply(status=301, body="", headers={"location": "https://new.example/v1"}))
    assert "https://new.example/v1, into base_url" in str(await failure(model))


async def test_a_web_page_from_a_gateway_says_nothing_about_the_api(model: FakeModel) -> None:
    model.on(lambda _: Reply(status=502, body="<html><h1>Bad Gateway</h1></html>"))
    failed = await failure(model, max_attempts=2)
    assert str(failed) == "local: the model server answered 502: a web page without a reason (tried 2 times)"


async def test_words_and_an_error_in_one_packet(model: FakeModel) -> None:
    model.on(lambda _: Reply(raw=(delta(content="half") + 'data: {"error": "overloaded"}\n\n',), ending="silence"))
    seen: list[ModelFact] = []
    async with client(model.url) as opened:
        with pytest.raises(ModelFailed, match="reported an error: overloaded"):
            async for fact in opened.stream(request("hello")):
                seen.append(fact)
    assert seen == [TextDelta("half")]


@pytest.mark.parametrize("status", [200, 404])
async def test_a_web_page(model: FakeModel, status: int) -> None:
    page = "<!DOCTYPE html>\n<html><title>Welcome</title></html>"
    model.on(lambda _: Reply(status=status, body=page, headers={"content-type": "text/html"}))
    assert "does not look like the API of a model" in str(await failure(model))
    assert len(model.requests) == 1


async def test_garbage(model: FakeModel) -> None:
    model.on(lambda _: Reply(raw=(delta(content="x"), "data: %&$!\n\n"), ending="end"))
    assert str(await failure(model)) == "local: the model server sent garbage: %&$!"


async def test_an_error_within_the_answer(model: FakeModel) -> None:
    error = 'data: {"error": {"message": "out of memory, ' + KEY + '"}}\n\n'
    model.on(lambda _: Reply(raw=(delta(content="x"), error), ending="silence"))
    assert str(await failure(model)) == "local: the model server reported an error: out of memory, ***"
    await model.until(lambda: model.requests[0].closed_early_at is not None)


@pytest.mark.parametrize(
    ("query", "quoted", "shown"),
    [
        ("q=abc", "no /v1/chat/completions?q=abc here", "no /v1/chat/completions?*** here"),
        ("key=s3cret%2Fword&x=1", "bad key s3cret/word, or s3cret%2Fword; x=1", "bad key ***, or ***; ***"),
        ("justasecret", "what is justasecret", "what is ***"),
        ("api-version=2024-10-21", "no version 2024-10-21", "no version 2024-10-21"),
        ("api-version=2024-10-21&k=1", "/v1?api-version=2024-10-21&k=1", "/v1?***"),
    ],
)
async def test_the_query_of_the_address_is_hidden_when_a_server_quotes_it(
    model: FakeModel, query: str, quoted: str, shown: str
) -> None:
    model.on(lambda request: Reply(status=400, body=quoted))
    failed = await failure(model, base_url=f"{model.url}?{query}")
    assert str(failed) == f"local: the model server answered 400: {shown}"


async def test_secrets_in_headers_are_hidden_too(model: FakeModel) -> None:
    model.on(lambda r: Reply(status=400, body=f"you sent {r.headers['x-key']} and {r.headers['x-mode']}"))
    failed = await failure(model, headers={"X-Key": "Token abcdefgh1234", "X-Mode": "fast"})
    assert str(failed) == "local: the model server answered 400: you sent Token *** and fast"


@pytest.mark.parametrize("gates", [{-1: "never"}, {1: "never"}], ids=["at the start", "in the middle"])
async def test_silence(model: FakeModel, gates: dict[int, str]) -> None:
    model.on(lambda _: Reply(chunks=2, gates=gates))
    failed = await failure(model, idle_timeout_s=0.05)
    assert str(failed) == "local: the model server was silent for 0.05 s (idle_timeout_s)"
    assert failed.silent and failed.broken, "who can take back what was said may ask once more"
    await model.until(lambda: bool(model.requests))  # who gives up so soon may do so before the request was read
    assert len(model.requests) == 1


async def test_an_error_whose_text_never_comes(model: FakeModel) -> None:
    model.on(lambda _: Reply(status=400, raw=("{",), ending="silence"))
    assert "answered 400" in str(await failure(model, connect_timeout_s=1))


@pytest.mark.parametrize("ending", ["silence", "cut"])
async def test_once_the_answer_is_whole_its_rest_does_not_matter(
    model: FakeModel, ending: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "AFTER_FINISH_S", 0.02)
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
        {"base_url": "http://127.0.0.1/a b"},
        {"base_url": "http://user:sk-very-secret@127.0.0.1/v1"},
        {"api_key": "sk-very-secret\r\nx: y"},
        {"headers": {"x-team": "blü"}},
    ],
)
async def test_settings_that_cannot_work(settings: dict[str, Any]) -> None:
    fields = {"type": "openai-compatible", "base_url": "http://127.0.0.1/v1"} | settings
    with pytest.raises(ModelFailed, match=r"^local: ") as failed:
        OpenAICompatible("local", ProviderSettings(**fields))
    assert KEY not in str(failed.value)
