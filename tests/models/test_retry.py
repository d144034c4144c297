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
)

NOW = 1_700_000_000.0  # Tue, 14 Nov 2023 22:13:20 GMT


def delay(
    attempt: int = 1, *, status: int | None = 503, retry_after: float | None = None, jitter: float = 0.0
) -> float | None:
    return delay_before_retry(attempt, 5, status=status, retry_after=retry_after, jitter=jitter)


@pytest.mark.parametrize("status", [None, 408, 429, 500, 502, 503, 504, 529])
def test_trouble_of_the_moment_is_tried_again(status: int | None) -> None:
    assert delay(status=status) == BASE_DELAY_S


@pytest.mark.parametrize("status", [301, 400, 401, 403, 404, 413, 422])
def test_what_will_fail_again_is_not_repeated(status: int) -> None:
    assert delay(status=status) is None
    assert delay(status=status, retry_after=1.0) is None


def test_waits_double_up_to_a_limit() -> None:
    assert [delay(attempt) for attempt in (1, 2, 3, 4)] == [0.5, 1.0, 2.0, 4.0]
    assert delay_before_retry(50, 1000, status=None, retry_after=None, jitter=0.0) == MAX_DELAY_S
    assert delay_before_retry(9_999, 10_000, status=None, retry_after=None, jitter=0.0) == MAX_DELAY_S


def test_the_last_attempt_is_the_last() -> None:
    assert delay(4) is not None
    assert delay(5) is None
    assert delay_before_retry(1, 1, status=None, retry_after=None, jitter=0.0) is None


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
