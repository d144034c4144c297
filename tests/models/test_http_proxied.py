"""The way through a proxy, which the fake model plays as well."""

from __future__ import annotations

import asyncio

import pytest

from covey.config.schema import ProviderSettings
from covey.lifecycle.reply import Stopped
from covey.models.base import ModelFailed, Retry
from covey.models.openai_compatible import OpenAICompatible
from tests.models.asking import KEY, answer, client, one_after_the_other, request, text
from tests.support.fake_model import FakeModel, Reply

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("short_waits")]


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
            with pytest.raises(ModelFailed, match=r"silent for 0\.05 s") as failed:
                await answer(opened)
            assert failed.value.silent and failed.value.broken


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
