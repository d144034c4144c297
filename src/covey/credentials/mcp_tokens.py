"""Tokens of MCP servers that somebody has logged in to: a file for this user alone, and their silent renewal.

The login itself is `mcp_login.py`, in a short-lived process. Here a token is sent, and renewed once for all that wait.
"""

from __future__ import annotations

import asyncio
import base64
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from covey.credentials.accounts import CredentialsError
from covey.machine.locks import locked
from covey.machine.replace import replace_file

LOCK_SECONDS = 5.0
EARLY_S = 30.0
"""A token that ends so soon is renewed before it is sent."""
ANSWER_S = 20.0
MAX_ANSWER = 256 * 1024


class McpGrant(msgspec.Struct, frozen=True):
    """What a login gave. Never shown, logged or sent anywhere but to its issuer and its server."""

    url: str
    """The server that the token is for."""
    issuer: str
    token_endpoint: str
    client_id: str
    access_token: str
    refresh_token: str = ""
    expires_at: float = 0.0
    """Unix seconds; 0: not known."""
    client_secret: str = ""
    auth_method: str = "none"
    resource: str = ""
    scope: str = ""
    further: str = ""
    """Scopes that the server has asked for since: the next login asks for them as well."""
    is_machines: bool = False
    """Nobody has agreed to it in a browser: it is renewed by asking again."""

    def __repr__(self) -> str:
        return f"McpGrant({self.issuer!r})"

    @property
    def renewal(self) -> dict[str, str]:
        """What another token is asked for with; empty: somebody has to log in."""
        if self.is_machines:
            return {"grant_type": "client_credentials", **({"scope": self.scope} if self.scope else {})}
        return {"grant_type": "refresh_token", "refresh_token": self.refresh_token} if self.refresh_token else {}


def grants_file(data_dir: Path) -> Path:
    return data_dir / "mcp" / "logins.json"


def read_grants(data_dir: Path) -> dict[str, McpGrant]:
    """By issuer and server. What cannot be read counts as none: somebody logs in again."""
    try:
        return msgspec.json.decode(grants_file(data_dir).read_bytes(), type=dict[str, McpGrant])
    except (OSError, msgspec.MsgspecError):
        return {}


def find_grant(data_dir: Path, url: str) -> McpGrant | None:
    return next((grant for grant in read_grants(data_dir).values() if grant.url == url), None)


def keep_grant(data_dir: Path, grant: McpGrant) -> None:
    """Blocks. Raises OSError."""
    path = grants_file(data_dir)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with locked(path.parent / ".logins.lock", LOCK_SECONDS):
        others = {key: kept for key, kept in read_grants(data_dir).items() if kept.url != grant.url}
        grants = {**others, f"{grant.issuer} {grant.url}": grant}
        replace_file(path, msgspec.json.encode(grants), mode=0o600, keep_mode=False)


def challenge_words(header: str) -> dict[str, str]:
    """The words of a `WWW-Authenticate` header."""
    return {
        name.lower(): quoted or plain for name, quoted, plain in re.findall(r'(\w+)=(?:"([^"]*)"|([^\s,]+))', header)
    }


def united(*scopes: str) -> str:
    """Lists of scopes as one, each of them once."""
    return " ".join(dict.fromkeys(" ".join(scopes).split()))


class StoredBearer:
    """The token for one server, as the file has it. Renewals are made once for all that wait."""

    def __init__(self, data_dir: Path, url: str) -> None:
        self._data_dir = data_dir
        self._url = url
        self._renewal: asyncio.Task[str] | None = None

    async def token(self) -> str:
        grant = await asyncio.to_thread(find_grant, self._data_dir, self._url)
        if grant is None:
            return ""
        if grant.renewal and 0 < grant.expires_at < time.time() + EARLY_S:
            return await self.renewed(grant.access_token)
        return grant.access_token

    async def renewed(self, refused: str, challenge: str = "") -> str:
        words = challenge_words(challenge)
        if words.get("error") == "insufficient_scope":
            await asyncio.to_thread(self._want, words.get("scope", ""))
            return ""
        if self._renewal is None or self._renewal.done():
            self._renewal = asyncio.create_task(self._renew(refused))
        return await asyncio.shield(self._renewal)

    def _want(self, scopes: str) -> None:
        """The token is good, and not for this: no renewal gives more than somebody has agreed to."""
        if (grant := find_grant(self._data_dir, self._url)) is not None:
            further = united(grant.further, scopes)
            keep_grant(self._data_dir, msgspec.structs.replace(grant, further=further))

    async def _renew(self, refused: str) -> str:
        grant = await asyncio.to_thread(find_grant, self._data_dir, self._url)
        if grant is None:
            return ""
        if grant.access_token != refused:
            return grant.access_token  # somebody was faster, or has logged in again
        if not grant.renewal:
            return ""
        try:
            answer = await ask_token(grant, grant.renewal)
        except CredentialsError:
            return ""
        grant = with_answer(grant, answer)
        await asyncio.to_thread(keep_grant, self._data_dir, grant)
        return grant.access_token


async def ask_token(grant: McpGrant, form: Mapping[str, str]) -> dict[str, Any]:
    """Ask the issuer for a token. Raises CredentialsError, without a word of what was sent."""
    import httpx2  # late: only with such a server

    form = {**form, **({"resource": grant.resource} if grant.resource else {})}
    headers = {"accept": "application/json"}
    if grant.auth_method == "client_secret_basic":
        pair = f"{quote(grant.client_id, safe='')}:{quote(grant.client_secret, safe='')}"
        headers["authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    else:
        form["client_id"] = grant.client_id
        if grant.auth_method == "client_secret_post":
            form["client_secret"] = grant.client_secret
    try:
        async with httpx2.AsyncClient(timeout=ANSWER_S, follow_redirects=False) as client:
            answer = await client.post(grant.token_endpoint, data=form, headers=headers)
    except httpx2.HTTPError as error:
        raise CredentialsError(f"{grant.issuer} cannot be reached: {type(error).__name__}") from None
    try:
        content = msgspec.json.decode(answer.content[:MAX_ANSWER])
    except msgspec.DecodeError:
        content = None
    if answer.status_code != 200 or not isinstance(content, dict) or not isinstance(content.get("access_token"), str):
        said = content.get("error") if isinstance(content, dict) else ""
        raise CredentialsError(f"{grant.issuer} gave no token ({answer.status_code} {str(said)[:100]})")
    return content


def with_answer(grant: McpGrant, answer: Mapping[str, Any]) -> McpGrant:
    """What a token endpoint said, in the place of what was before. The one to renew with stays, if there is no new."""
    lasts, refresh = answer.get("expires_in"), answer.get("refresh_token")
    return msgspec.structs.replace(
        grant,
        access_token=str(answer["access_token"]),
        refresh_token=refresh if isinstance(refresh, str) and refresh else grant.refresh_token,
        expires_at=time.time() + float(lasts) if isinstance(lasts, int | float) else 0.0,
        scope=str(answer.get("scope") or grant.scope),
    )
