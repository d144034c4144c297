"""The two eras of MCP, as a server speaks them: with a handshake, or with an envelope in each request. Pure.

Up to 2025-11-25 a connection begins with `initialize`. Since 2026-07-28 nothing begins: each request says what
it speaks (`_meta`), `server/discover` tells who we are, and each result says that it is complete.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any

from covey import __version__
from covey.rpc.messages import INVALID_PARAMS, Params, RpcError

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN_VERSIONS = ("2026-07-28",)
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
SERVER_KEY = "io.modelcontextprotocol/serverInfo"
UNSUPPORTED_VERSION = -32022
HEADER_MISMATCH = -32020

CAPABILITIES: Params = {"tools": {}, "resources": {}}
INSTRUCTIONS = (
    "Covey is a coding agent that works on this machine by itself. Give it a task with `prompt`; it answers when the "
    "task is done, or earlier if it needs an answer (`answer`) or takes long (`wait`). Its runs go on when you leave, "
    "and people may watch and steer the same sessions."
)
CACHEABLE = ("tools/list", "resources/list", "resources/templates/list", "resources/read", "server/discover")
_ENCODED = re.compile(r"=\?base64\?(.*)\?=")
_NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


def server_info() -> Params:
    return {"name": "covey", "title": "Covey", "version": __version__}


def initialized(params: Params) -> Params:
    """The answer to `initialize`: the version that was asked for, or our newest of that era."""
    asked = params.get("protocolVersion")
    version = asked if asked in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]
    return {
        "protocolVersion": version,
        "capabilities": CAPABILITIES,
        "serverInfo": server_info(),
        "instructions": INSTRUCTIONS,
    }


def discovered() -> Params:
    return {"supportedVersions": list(MODERN_VERSIONS), "capabilities": CAPABILITIES, "instructions": INSTRUCTIONS}


def is_modern(method: str, params: Params) -> bool:
    return method == "server/discover" or VERSION_KEY in meta_of(params)


def meta_of(params: Params) -> Mapping[str, Any]:
    meta = params.get("_meta")
    return meta if isinstance(meta, dict) else {}


def check_envelope(params: Params) -> None:
    """Raise RpcError unless a request of the modern era says what it has to, and speaks what we do."""
    check_complete(params)
    version = meta_of(params)[VERSION_KEY]
    if not isinstance(version, str):
        raise RpcError(INVALID_PARAMS, f"{VERSION_KEY} is a string")
    check_version(version)


def check_complete(params: Params) -> None:
    """Raise RpcError if something is missing that a request of the modern era says."""
    meta = meta_of(params)
    missing = [key for key in (VERSION_KEY, CAPABILITIES_KEY) if key not in meta]
    if missing:
        raise RpcError(INVALID_PARAMS, f"_meta lacks {', '.join(missing)}")


def check_version(version: str) -> None:
    if version not in MODERN_VERSIONS:
        supported = {"supported": list(MODERN_VERSIONS), "requested": version}
        raise RpcError(UNSUPPORTED_VERSION, "this version is not spoken here", supported)


def check_headers(method: str, params: Params, headers: Mapping[str, str]) -> None:
    """Raise RpcError unless the headers of a modern request repeat what its body says."""
    if headers.get("mcp-protocol-version") != meta_of(params).get(VERSION_KEY):
        raise RpcError(HEADER_MISMATCH, "MCP-Protocol-Version is not what the request says")
    if headers.get("mcp-method") != method:
        raise RpcError(HEADER_MISMATCH, "Mcp-Method is not the method of the request")
    named = params.get(_NAMED_BY.get(method, ""))
    if named is not None and _header_text(headers.get("mcp-name", "")) != named:
        raise RpcError(HEADER_MISMATCH, "Mcp-Name is not what the request names")


def _header_text(value: str) -> str | None:
    """What is no ASCII comes as `=?base64?…?=`. None: it cannot be read."""
    found = _ENCODED.fullmatch(value)
    if found is None:
        return value
    try:
        return base64.b64decode(found[1], validate=True).decode()
    except ValueError:
        return None


def completed(method: str, result: Params) -> Params:
    """A result as the modern era wants it. Nothing of ours may be kept: sessions change at any time."""
    cached = {"ttlMs": 0, "cacheScope": "private"} if method in CACHEABLE else {}
    return {"resultType": "complete", **cached, **result, "_meta": {SERVER_KEY: server_info()}}
