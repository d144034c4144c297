"""Ask a model provider and read the answer while it comes: the seam between a wire format and the network.

There are two ways: `http_direct` for almost everything, `http_proxied` where the environment asks for a proxy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import SplitResult, urlsplit


class ProviderHttpFailed(Exception):
    """No answer, or only a part of one. The text goes on where "the server" ends.

    `retry`: nothing of an answer was seen, and the next attempt may go better.
    `nobody`: nobody listens there, or nobody knows the name: waiting hardly helps.
    """

    def __init__(self, text: str, *, retry: bool = False, nobody: bool = False) -> None:
        super().__init__(text)
        self.retry = retry
        self.nobody = nobody


class ProviderSilent(ProviderHttpFailed):
    """Nothing came for `idle_timeout_s`, before an answer or within it."""

    def __init__(self, idle_timeout_s: float) -> None:
        super().__init__(f"was silent for {idle_timeout_s:g} s (idle_timeout_s)")


@dataclass(frozen=True, slots=True)
class ProviderEndpoint:
    """Where to send a request, and how long to wait. `headers` hold secrets, so the repr leaves them out.

    `url` is what all requests have in common: each adds its own path, and perhaps a query.
    """

    url: str
    headers: Mapping[str, str]
    connect_timeout_s: float
    idle_timeout_s: float

    def __repr__(self) -> str:
        return f"ProviderEndpoint({self.url.partition('?')[0]!r})"

    @property
    def parts(self) -> SplitResult:
        return urlsplit(self.url)

    def target(self, path: str) -> str:
        """Path and query of the request for `path`. Both may have a query: then both count."""
        parts = self.parts
        path, _, query = path.partition("?")
        queries = "&".join(part for part in (parts.query, query) if part)
        return (parts.path + path or "/") + (f"?{queries}" if queries else "")


class ProviderResponse(Protocol):
    """An answer whose headers have arrived. Header names are in lower case."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    async def read(self) -> bytes:
        """The bytes since the last read; b"" at the end. Raises ProviderHttpFailed if it was cut off or timed out."""
        ...

    async def finish(self) -> None:
        """Nothing more is wanted, and hardly anything more will come: the connection may be used again."""
        ...

    async def close(self) -> None:
        """Close the connection at once, so that the provider stops too. After `finish` this does nothing."""
        ...


class ProviderHttp(Protocol):
    async def post(self, body: bytes, path: str = "") -> ProviderResponse:
        """Send `body` to the endpoint's URL with `path` appended; returns when the headers of the answer are here.

        Raises ProviderHttpFailed.
        """
        ...

    async def get(self, path: str) -> ProviderResponse:
        """The same without a body, for a small question beside the models."""
        ...

    async def aclose(self) -> None:
        """Close connections that are not in use."""
        ...


def open_http(endpoint: ProviderEndpoint) -> ProviderHttp:
    if _needs_proxy(endpoint):
        from covey.models.http_proxied import Proxied

        return Proxied(endpoint)
    from covey.models.http_direct import Direct

    return Direct(endpoint)


def _needs_proxy(endpoint: ProviderEndpoint) -> bool:
    """Whether HTTP_PROXY, HTTPS_PROXY or ALL_PROXY apply. A server on this machine is never behind a proxy."""
    from urllib.request import getproxies, proxy_bypass

    proxies = getproxies()
    host = endpoint.parts.hostname or ""
    if not (proxies.get(endpoint.parts.scheme) or proxies.get("all")):
        return False
    return host not in ("localhost", "127.0.0.1", "::1") and not proxy_bypass(host)
