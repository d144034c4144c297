"""Whether and when a request to a model is repeated: values in, a delay out. Does not wait, and knows no HTTP client.

Only attempts whose trouble may pass come here. Once the first word has arrived, nothing is repeated unless whoever asks
can take back what was said.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

BASE_DELAY_S = 0.5
"""The first wait: long enough for a dropped connection or a restarting proxy, too short to annoy."""
MAX_DELAY_S = 30.0
"""Waits double, but nobody should wonder for longer than this whether anything still happens."""
MAX_RETRY_AFTER_S = 60.0
"""What a server may ask for at most. A longer pause is a quota, which waiting does not cure."""
JITTER = 0.25
"""How much longer a wait may become, so that runs refused together do not come back together."""


def delay_before_retry(attempt: int, max_attempts: int, *, retry_after: float | None, jitter: float) -> float | None:
    """Seconds to wait after the `attempt`-th attempt (from 1) failed, or None to give up.

    `jitter` is a random number from 0 to 1.
    """
    if attempt >= max_attempts:
        return None
    if retry_after is None:
        delay = min(BASE_DELAY_S * 2.0 ** min(attempt - 1, 30), MAX_DELAY_S)
    else:
        delay = min(retry_after, MAX_RETRY_AFTER_S)
    return delay * (1 + JITTER * jitter)


def retry_after_of(headers: Mapping[str, str], now: float) -> float | None:
    """The seconds that a server asks for; OpenAI and Azure say it in milliseconds too, which is more exact."""
    try:
        milliseconds = float(headers.get("retry-after-ms", ""))
    except ValueError:
        return parse_retry_after(headers.get("retry-after"), now)
    return max(0.0, milliseconds / 1000) if math.isfinite(milliseconds) else None


def parse_retry_after(value: str | None, now: float) -> float | None:
    """The seconds that a `Retry-After` header asks for: a number, or an HTTP date seen from `now` (unix seconds)."""
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        from email.utils import parsedate_to_datetime

        try:
            seconds = parsedate_to_datetime(value).timestamp() - now
        except ValueError:
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None
