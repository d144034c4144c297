"""Ask a local model server for its models. One bounded request to this machine, never to another."""

from __future__ import annotations

import asyncio
from ipaddress import ip_address
from urllib.parse import urlsplit

import msgspec

PROBE_SECONDS = 0.3  # a server on this machine answers within a few; people wait for this at every start
MAX_ANSWER_BYTES = 1024 * 1024  # thousands of models; a stranger on that port must not fill the memory


class _Model(msgspec.Struct):
    id: str


class _Models(msgspec.Struct):
    data: list[_Model] | None
    """Some servers without any model answer null."""


async def probe(base_url: str) -> list[str] | None:
    """The model ids at `GET {base_url}/models`, or None when no model server answers there in time."""
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            body = await _get(f"{base_url}/models")
        return [model.id for model in msgspec.json.decode(body, type=_Models).data or ()]
    except (OSError, msgspec.MsgspecError, RecursionError):  # a timeout is an OSError too
        return None


async def _get(url: str) -> bytes:
    """The body of a 200 answer; empty for any other."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme != "http" or not ip_address(host).is_loopback:
        raise ValueError("only addresses of this machine are probed")
    reader, writer = await asyncio.open_connection(host, parts.port or 80)
    try:
        # With HTTP/1.0 the answer is not chunked and ends with the connection: nothing more to parse.
        writer.write(f"GET {parts.path} HTTP/1.0\r\nHost: {parts.netloc}\r\nAccept: application/json\r\n\r\n".encode())
        answer = b""
        while chunk := await reader.read(65536):
            answer += chunk
            if len(answer) > MAX_ANSWER_BYTES:
                return b""
    finally:
        writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    return body if head.split(maxsplit=2)[1:2] == [b"200"] else b""
