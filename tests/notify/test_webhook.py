"""A webhook is signed as the configuration page says, tried again where that may help, and given up within bounds."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from covey.notify import webhook
from covey.notify.delivery_queue import QUEUE_MAX, DeliveryQueue
from covey.notify.webhook import SIGNATURE, WebhookDelivery, deliver, signature
from tests.support.receiver import Receiver

PAGE = (Path(__file__).parents[2] / "docs" / "CONFIGURATION.md").read_text("utf-8")


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook, "PAUSES_S", (0.0, 0.0))


def documented() -> Callable[..., bool]:
    (snippet,) = (text for text in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if "hmac" in text)
    names: dict[str, Any] = {}
    exec(snippet, names)  # the page's own words
    found: Callable[..., bool] = names["is_from_covey"]
    return found


def post(url: str, secret: str = "s3cret") -> None:
    asyncio.run(deliver(WebhookDelivery(url, secret, b'{"id":"1"}')))


def test_the_documented_check_takes_a_real_request_and_refuses_all_others() -> None:
    with Receiver() as receiver:
        post(receiver.url)
        (got,) = receiver.wait(1)
    header, is_ours = got.headers[SIGNATURE], documented()
    assert got.path == "/hook?token=t0p" and got.headers["content-type"] == "application/json"
    assert is_ours("s3cret", header, got.body)
    assert not is_ours("other", header, got.body)
    assert not is_ours("s3cret", header, got.body + b" ")
    moved = re.sub(r"t=(\d+)", lambda found: f"t={int(found[1]) + 1}", header)
    assert not is_ours("s3cret", moved, got.body), "the time is signed"
    assert not is_ours("s3cret", signature("s3cret", int(time.time()) - 1000, got.body), got.body), "too old"


def test_without_a_secret_nothing_is_signed() -> None:
    with Receiver() as receiver:
        post(receiver.url, "")
        assert SIGNATURE not in receiver.wait(1)[0].headers


@pytest.mark.parametrize(
    ("answers", "attempts", "said"),
    [
        ([503, 0, 200], 3, ""),
        ([429], 2, ""),
        ([500, 500, 500], 3, "answered with 500"),
        ([404], 1, "answered with 404"),
    ],
)
def test_it_is_tried_again_where_that_may_help_and_three_times_at_most(
    answers: list[int], attempts: int, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    with Receiver(answers) as receiver:
        post(receiver.url)
        assert len(receiver.received) == attempts
        assert len({got.body for got in receiver.received}) == 1
    assert said in caplog.text and bool(said) == bool(caplog.records)
    assert "t0p" not in caplog.text, "an address may be a secret"


def test_a_receiver_that_never_answers_is_given_up(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook, "TIMEOUT_S", 0.1)
    with Receiver([-1, -1, -1]) as receiver:
        post(receiver.url)
    assert "within 0.1 s" in caplog.text or "silent for 0.1 s" in caplog.text


def test_a_redirect_is_not_followed(caplog: pytest.LogCaptureFixture) -> None:
    with Receiver() as elsewhere, Receiver([307], location=elsewhere.url) as receiver:
        post(receiver.url)
        assert (len(receiver.received), elsewhere.received) == (1, [])
    assert "answered with 307" in caplog.text


def test_where_nobody_listens_a_word_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with Receiver() as receiver:
        gone = receiver.url
    post(gone)
    assert "127.0.0.1 refused" in caplog.text or "connection refused" in caplog.text


def test_a_queue_drops_the_oldest_goes_on_after_a_failure_and_ends_at_once(caplog: pytest.LogCaptureFixture) -> None:
    delivered: list[int] = []

    async def scenario() -> None:
        gate, begun = asyncio.Event(), asyncio.Event()

        async def hand_over(number: int) -> None:
            begun.set()
            await gate.wait()
            delivered.append(number)
            if number == QUEUE_MAX:
                raise ValueError(number)

        queue = DeliveryQueue("thing", hand_over)
        queue.put(0)
        await begun.wait()
        for number in range(1, QUEUE_MAX + 3):
            queue.put(number)
        gate.set()
        while len(delivered) < QUEUE_MAX + 1:
            await asyncio.sleep(0)
        gate.clear()
        begun.clear()
        queue.put(-1)
        await begun.wait()
        await queue.aclose()
        queue.put(-2)

    with caplog.at_level(logging.WARNING):
        asyncio.run(scenario())
    assert delivered == [0, *range(3, QUEUE_MAX + 3)]
    assert caplog.text.count("a thing was dropped") == 2
    assert "the server ends with 1 undelivered thing\n" in caplog.text
