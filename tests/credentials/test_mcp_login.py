"""Logins to MCP servers: where they may lead, what the browser brings back, and tokens that are renewed silently."""

from __future__ import annotations

import asyncio
import stat
import time
from pathlib import Path
from unittest import mock

import pytest

from covey.credentials import mcp_tokens
from covey.credentials.accounts import CredentialsError
from covey.credentials.mcp_discovery import LoginPlace, checked_url
from covey.credentials.mcp_login import McpLogin
from covey.credentials.mcp_tokens import McpGrant, StoredBearer, find_grant, grants_file, keep_grant

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
    login = McpLogin(PLACE, "me", "", "none", 1)
    state = login.address.partition("state=")[2].partition("&")[0]
    assert login.take("/callback?code=c&state=wrong")[0].startswith("404")
    assert login.take(f"/other?code=c&state={state}")[0].startswith("404")
    assert login.take(f"/callback?code=c&state={state}&iss=https://login.example")[0].startswith("200")
    assert "already" in login.take(f"/callback?code=other&state={state}")[1]
    assert "code_challenge_method=S256" in login.address and "resource=https%3A%2F%2Fmcp.example%2Fmcp" in login.address


@pytest.mark.parametrize("issuer", ["", "&iss=https://evil.example"])
async def test_x10_an_answer_of_another_issuer_is_refused(issuer: str) -> None:
    login = McpLogin(PLACE, "me", "", "none", 1)
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
