"""A notice as an HTTP request to an address of the user's, signed if there is a secret."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass
from urllib.parse import urlsplit

log = logging.getLogger(__name__)

TIMEOUT_S = 10.0
"""For each attempt, from connecting to the head of the answer."""
PAUSES_S = (1.0, 5.0)
"""Before the second attempt and before the third."""
SIGNATURE = "covey-signature"
_MAY_PASS = frozenset({408, 425, 429})
"""Refusals that say: later."""


@dataclass(frozen=True, slots=True, repr=False)
class WebhookDelivery:
    """One request. Both the secret and the address are never shown: many addresses of this kind are secrets too."""

    url: str
    secret: str
    body: bytes


def signature(secret: str, timestamp: int, body: bytes) -> str:
    """The value of the header. The timestamp is signed, too: a receiver can refuse what somebody sends again later."""
    import hmac

    digest = hmac.new(secret.encode(), b"%d." % timestamp + body, "sha256").hexdigest()
    return f"t={timestamp},v1={digest}"


async def deliver(delivery: WebhookDelivery) -> None:
    """Up to three attempts. What becomes of it is logged, and never raised."""
    for pause_s in (*PAUSES_S, None):
        problem, is_final = await _attempt(delivery)
        if not problem:
            return
        if is_final or pause_s is None:
            log.warning("a webhook was not delivered: %s %s", urlsplit(delivery.url).hostname, problem)
            return
        await asyncio.sleep(pause_s)


async def _attempt(delivery: WebhookDelivery) -> tuple[str, bool]:
    """What went wrong ('': nothing), and whether another attempt would be in vain. The body of the answer stays unread.

    A redirect is not followed: it is a refusal like any other.
    """
    from covey.models.http import ProviderEndpoint, ProviderHttpFailed, open_http

    http = open_http(ProviderEndpoint(delivery.url, _headers(delivery), TIMEOUT_S, TIMEOUT_S))
    try:
        async with asyncio.timeout(TIMEOUT_S):
            answer = await http.post(delivery.body)
            await answer.close()
    except TimeoutError:
        return f"did not answer within {TIMEOUT_S:g} s", False
    except ProviderHttpFailed as failure:
        return str(failure), False
    finally:
        await http.aclose()
    if 200 <= answer.status < 300:
        return "", False
    return f"answered with {answer.status}", answer.status < 500 and answer.status not in _MAY_PASS


def _headers(delivery: WebhookDelivery) -> dict[str, str]:
    headers = {"content-type": "application/json", "user-agent": "covey"}
    if delivery.secret:
        headers[SIGNATURE] = signature(delivery.secret, int(time.time()), delivery.body)
    return headers
