"""Logins to MCP servers: where they may lead, what the browser brings back, and tokens that are renewed silently."""

from __future__ import annotations

import asyncio
import json
import socket
import stat
import time
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest

from covey.credentials import mcp_login as mcp_login_module
from covey.credentials import mcp_tokens
from covey.credentials.accounts import CredentialsError
from covey.credentials.mcp_discovery import LoginPlace, checked_url
from covey.credentials.mcp_login import ClientIdentity, McpLogin, machine_login, mcp_login
from covey.credentials.mcp_tokens import McpGrant, StoredBearer, find_grant, grants_file, keep_grant, united

pytestmark = pytest.mark.anyio
URL = "https://mcp.example/mcp"
PLACE = LoginPlace(
    url=URL,
    resource=URL,
    issuer="https://login.example",
    authorization_endpoint="https://login.example/authorize",
    token_endpoint="https://login.example/token",
    scope="read",
    sends_issuer=True,
)


@pytest.mark.parametrize(
    ("url", "configured", "is_followed"),
    [
        ("https://login.example/x", URL, True),
        ("http://login.example/x", URL, False),
        ("https://127.0.0.1/x", URL, False),
        ("https://localhost/x", URL, False),
        ("https://169.254.169.254/latest", URL, False),
        ("https://10.0.0.5/x", URL, False),
        ("https://[::1]/x", URL, False),
        ("file:///etc/passwd", URL, False),
        ("javascript:alert(1)", URL, False),
        ("http://127.0.0.1:99/x", "http://127.0.0.1:8000/mcp", True),
        ("http://10.0.0.5/x", "http://127.0.0.1:8000/mcp", False),
    ],
)
def test_x10_metadata_leads_nowhere_private_and_nowhere_without_encryption(
    url: str, configured: str, is_followed: bool
) -> None:
    if is_followed:
        assert checked_url(url, configured) == url
    else:
        with pytest.raises(CredentialsError):
            checked_url(url, configured)


async def test_x10_the_callback_takes_one_answer_with_the_right_state() -> None:
    login = McpLogin(PLACE, ClientIdentity("me"), 1)
    state = login.address.partition("state=")[2].partition("&")[0]
    assert login.take("/callback?code=c&state=wrong")[0].startswith("404")
    assert login.take(f"/other?code=c&state={state}")[0].startswith("404")
    assert login.take(f"/callback?code=c&state={state}&iss=https://login.example")[0].startswith("200")
    assert "already" in login.take(f"/callback?code=other&state={state}")[1]
    assert "code_challenge_method=S256" in login.address and "resource=https%3A%2F%2Fmcp.example%2Fmcp" in login.address


@pytest.mark.parametrize("issuer", ["", "&iss=https://evil.example"])
async def test_x10_an_answer_of_another_issuer_is_refused(issuer: str) -> None:
    login = McpLogin(PLACE, ClientIdentity("me"), 1)
    state = login.address.partition("state=")[2].partition("&")[0]
    login.take(f"/callback?code=c&state={state}{issuer}")
    with pytest.raises(CredentialsError, match="issuer"):
        await login.grant()


def grant(**changes: object) -> McpGrant:
    values = {"url": URL, "issuer": "https://login.example", "token_endpoint": "https://login.example/token"}
    return McpGrant(**{**values, "client_id": "me", "access_token": "old", "refresh_token": "r", **changes})  # type: ignore[arg-type]


def test_x10_tokens_are_for_their_user_alone(tmp_path: Path) -> None:
    keep_grant(tmp_path, grant())
    keep_grant(tmp_path, grant(url="https://other.example/mcp", access_token="another"))
    keep_grant(tmp_path, grant(access_token="newer"))
    assert stat.S_IMODE(grants_file(tmp_path).stat().st_mode) == 0o600
    found = find_grant(tmp_path, URL)
    assert found and found.access_token == "newer" and "newer" not in repr(found)
    assert len(mcp_tokens.read_grants(tmp_path)) == 2


async def test_m20_an_expired_token_is_renewed_once_for_all_that_wait(tmp_path: Path) -> None:
    keep_grant(tmp_path, grant(expires_at=time.time() - 10))
    asked: list[str] = []

    async def ask(of: McpGrant, form: dict[str, str]) -> dict[str, object]:
        asked.append(form["refresh_token"])
        await asyncio.sleep(0.01)
        return {"access_token": "new", "expires_in": 3600}

    bearer = StoredBearer(tmp_path, URL)
    with mock.patch.object(mcp_tokens, "ask_token", ask):
        assert await asyncio.gather(*(bearer.token() for _ in range(5))) == ["new"] * 5
        assert await bearer.renewed("old") == "new", "somebody was faster"
    assert asked == ["r"]
    kept = find_grant(tmp_path, URL)
    assert kept and (kept.access_token, kept.refresh_token) == ("new", "r")


async def test_m20_without_a_token_to_renew_with_a_login_is_needed(tmp_path: Path) -> None:
    assert await StoredBearer(tmp_path, URL).token() == ""
    keep_grant(tmp_path, grant(refresh_token=""))
    assert await StoredBearer(tmp_path, URL).renewed("old") == ""


# ── who Covey is there, and more than was agreed to ──


@pytest.mark.parametrize(
    ("offered", "secret", "method"),
    [
        ((), "s", "client_secret_basic"),
        (("client_secret_post", "client_secret_basic"), "s", "client_secret_basic"),
        (("none", "client_secret_post"), "s", "client_secret_post"),
        (("client_secret_basic",), "", "none"),
    ],
)
def test_a_secret_is_shown_in_the_way_that_its_issuer_wants(offered: tuple[str, ...], secret: str, method: str) -> None:
    identity = ClientIdentity("me", secret)
    place = msgspec.structs.replace(PLACE, auth_methods=offered)
    assert identity.shown_to(place).auth_method == method and "s" not in repr(identity).removeprefix("ClientIdentity")


async def test_what_a_token_is_not_enough_for_is_asked_for_by_the_next_login_and_never_by_a_renewal(
    tmp_path: Path,
) -> None:
    keep_grant(tmp_path, grant(scope="read", further="list"))
    challenge = 'Bearer error="insufficient_scope", scope="read write"'
    ask = mock.AsyncMock()
    with mock.patch.object(mcp_tokens, "ask_token", ask):
        assert await StoredBearer(tmp_path, URL).renewed("old", challenge) == ""
    kept = find_grant(tmp_path, URL)
    assert kept and kept.access_token == "old" and kept.further == "list read write" and not ask.called
    assert united(kept.scope, kept.further) == "read list write"


class Issuer:
    """A server that wants a login, and gives tokens itself, on this machine."""

    def __init__(self) -> None:
        self.forms: list[dict[str, str]] = []
        self.authorizations: list[str] = []

    async def __aenter__(self) -> Issuer:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.origin = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        path = lines[0].split(" ")[1]
        status, content = self._answer(path, body.decode(), headers)
        data = json.dumps(content).encode()
        head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n"
        writer.write(f'{head}WWW-Authenticate: Bearer scope="read"\r\nConnection: close\r\n\r\n'.encode() + data)
        await writer.drain()
        writer.close()

    def _answer(self, path: str, body: str, headers: dict[str, str]) -> tuple[str, dict[str, Any]]:
        if path == "/token":
            self.forms.append({name: values[0] for name, values in parse_qs(body).items()})
            self.authorizations.append(headers.get("authorization", ""))
            return "200 OK", {"access_token": f"t{len(self.forms)}", "expires_in": 3600}
        if path == "/.well-known/oauth-authorization-server":
            endpoints = {f"{name}_endpoint": f"{self.origin}/{name}" for name in ("authorization", "token")}
            return "200 OK", {"issuer": self.origin, **endpoints, "code_challenge_methods_supported": ["S256"]}
        return ("401 Unauthorized" if path == "/mcp" else "404 Not Found"), {}


async def test_where_covey_has_an_account_nobody_agrees_and_the_token_is_renewed_by_asking_again(
    tmp_path: Path,
) -> None:
    async with Issuer() as issuer:
        url = f"{issuer.origin}/mcp"
        given = await machine_login(url, {}, ClientIdentity("me", "s3cret"), "write")
        keep_grant(tmp_path, given)
        assert await StoredBearer(tmp_path, url).renewed("t1") == "t2"
        with pytest.raises(CredentialsError, match="client_secret"):
            await machine_login(url, {}, ClientIdentity("me"))
    asked = {"grant_type": "client_credentials", "scope": "read write", "resource": url}
    assert issuer.forms == [asked, asked] and set(issuer.authorizations) == {"Basic bWU6czNjcmV0"}


async def test_x10_the_page_that_waits_is_on_this_machine_alone_asks_as_who_was_named_and_ends(tmp_path: Path) -> None:
    assert mcp_login_module.AGREE_S == 300
    async with Issuer() as issuer:
        identity = ClientIdentity("https://me.example/client.json")
        async with mcp_login(f"{issuer.origin}/mcp", {}, identity, "write") as login:
            query = {name: values[0] for name, values in parse_qs(urlsplit(login.address).query).items()}
            back = urlsplit(query["redirect_uri"])
            assert (query["client_id"], query["scope"], back.hostname) == (identity.id, "read write", "127.0.0.1")
            with mock.patch.object(mcp_login_module, "AGREE_S", 0.0), pytest.raises(CredentialsError, match="nobody"):
                await login.grant()
        with pytest.raises(OSError, match="refused"):
            await asyncio.to_thread(lambda: socket.create_connection((back.hostname or "", back.port or 0)).close())
