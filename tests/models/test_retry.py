"""When a request is repeated, and after how long."""

from __future__ import annotations

import pytest

from covey.models.retry import (
    BASE_DELAY_S,
    JITTER,
    MAX_DELAY_S,
    MAX_RETRY_AFTER_S,
    delay_before_retry,
    parse_retry_after,
    retry_after_of,
)

NOW = 1_700_000_000.0  # Tue, 14 Nov 2023 22:13:20 GMT


def delay(attempt: int = 1, *, retry_after: float | None = None, jitter: float = 0.0) -> float | None:
    return delay_before_retry(attempt, 5, retry_after=retry_after, jitter=jitter)


def test_waits_double_up_to_a_limit() -> None:
    assert [delay(attempt) for attempt in (1, 2, 3, 4)] == [0.5, 1.0, 2.0, 4.0]
    assert delay_before_retry(50, 1000, retry_after=None, jitter=0.0) == MAX_DELAY_S
    assert delay_before_retry(9_999, 10_000, retry_after=None, jitter=0.0) == MAX_DELAY_S


def test_the_last_attempt_is_the_last() -> None:
    assert delay(4) is not None
    assert delay(5) is None
    assert delay_before_retry(1, 1, retry_after=None, jitter=0.0) is None


def test_the_server_says_how_long_but_not_without_limit() -> None:
    assert delay(retry_after=7.0) == 7.0
    assert delay(retry_after=0.0) == 0.0
    assert delay(retry_after=86_400.0) == MAX_RETRY_AFTER_S


def test_jitter_only_ever_waits_longer() -> None:
    assert delay(retry_after=10.0, jitter=1.0) == 10.0 * (1 + JITTER)
    assert delay(jitter=1.0) == BASE_DELAY_S * (1 + JITTER)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("3", 3.0),
        ("1.5", 1.5),
        (" 2 ", 2.0),
        ("-4", 0.0),
        ("Tue, 14 Nov 2023 22:13:50 GMT", 30.0),
        ("Tue, 14 Nov 2023 22:13:00 GMT", 0.0),
        ("", None),
        (None, None),
        ("soon", None),
        ("nan", None),
        ("inf", None),
        ("Tue, 99 Nov 2023", None),
    ],
)
def test_retry_after_is_seconds_or_a_date(value: str | None, seconds: float | None) -> None:
    assert parse_retry_after(value, NOW) == seconds


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "7", "retry-after-ms": "250"}, 0.25),
        ({"retry-after": "7", "retry-after-ms": "soon"}, 7.0),
        ({"retry-after-ms": "-1"}, 0.0),
        ({"retry-after-ms": "nan"}, None),
    ],
)
def test_milliseconds_are_more_exact(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_of(headers, NOW) == seconds
