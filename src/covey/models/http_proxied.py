"""The way through a proxy that the environment names, by httpx2. Each chunk costs more here than in `http_direct`."""

from __future__ import annotations

import httpx2

from covey.models.http import ProviderEndpoint, ProviderHttpFailed, ProviderSilent


class Proxied:
    def __init__(self, endpoint: ProviderEndpoint) -> None:
        self._endpoint = endpoint
        timeout = httpx2.Timeout(endpoint.idle_timeout_s, connect=endpoint.connect_timeout_s, pool=None)
        try:
            self._client = httpx2.AsyncClient(timeout=timeout, limits=httpx2.Limits(max_connections=None))
        except ImportError as error:
            raise ProviderHttpFailed(f"is behind a proxy of a kind that needs more software: {error}") from None

    async def post(self, body: bytes, path: str = "") -> _ProxiedAnswer:
        return await self._ask("POST", body, path)

    async def get(self, path: str) -> _ProxiedAnswer:
        return await self._ask("GET", None, path)

    async def _ask(self, method: str, body: bytes | None, path: str) -> _ProxiedAnswer:
        parts = self._endpoint.parts
        url = f"{parts.scheme}://{parts.netloc}{self._endpoint.target(path)}"
        request = self._client.build_request(method, url, content=body, headers=dict(self._endpoint.headers))
        try:
            return _ProxiedAnswer(await self._client.send(request, stream=True), self._endpoint)
        except (httpx2.ReadTimeout, httpx2.WriteTimeout):
            raise ProviderSilent(self._endpoint.idle_timeout_s) from None
        except httpx2.HTTPError as error:
            raise ProviderHttpFailed(f"cannot be reached through the proxy: {_reason(error)}", retry=True) from None

    async def aclose(self) -> None:
        await self._client.aclose()


class _ProxiedAnswer:
    def __init__(self, response: httpx2.Response, endpoint: ProviderEndpoint) -> None:
        self.status = response.status_code
        self.headers = response.headers
        self._response = response
        self._endpoint = endpoint
        self._chunks = response.aiter_bytes()

    async def read(self) -> bytes:
        try:
            return await anext(self._chunks, b"")
        except httpx2.ReadTimeout:
            raise ProviderSilent(self._endpoint.idle_timeout_s) from None
        except httpx2.HTTPError as error:
            raise ProviderHttpFailed(f"closed the connection ({_reason(error)}): the answer was cut off") from None

    async def finish(self) -> None:
        await self._response.aclose()

    async def close(self) -> None:
        await self._response.aclose()


def _reason(error: httpx2.HTTPError) -> str:
    """Some of these errors have no text of their own."""
    return str(error) or type(error).__name__
