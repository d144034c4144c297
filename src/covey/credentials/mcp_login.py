"""A login to an MCP server by OAuth with PKCE: the user agrees in a browser, which comes back to a page of ours.

For a short-lived process at a terminal, never for the server. One state, one answer, five minutes. Where Covey itself
has an account, nobody has to agree (`machine_login`).
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import msgspec

from covey.credentials.accounts import CredentialsError
from covey.credentials.browser_answer import MAX_HEAD, answer_browser
from covey.credentials.mcp_discovery import ANSWER_S, Discovery, LoginPlace
from covey.credentials.mcp_tokens import McpGrant, ask_token, united, with_answer

AGREE_S = 300.0
PROBES: tuple[dict[str, Any], ...] = tuple(
    {"jsonrpc": "2.0", "id": 1, "method": method, "params": {}} for method in ("initialize", "tools/list")
)
"""Some servers say who they are to everybody, and want a login for the rest."""
SECRET_METHODS = ("client_secret_basic", "client_secret_post")
"""How a secret is shown, the better way first: it is what holds where an issuer does not say."""


class ClientIdentity(msgspec.Struct, frozen=True):
    """As whom Covey is known to an issuer."""

    id: str = ""
    """Empty: it is not yet. May be a URL that describes it."""
    secret: str = ""
    auth_method: str = "none"

    def __repr__(self) -> str:
        return f"ClientIdentity({self.id!r})"

    def shown_to(self, place: LoginPlace) -> ClientIdentity:
        """With the way in which this issuer wants to see the secret, if there is one."""
        fitting = [method for method in SECRET_METHODS if method in place.auth_methods] or SECRET_METHODS
        return msgspec.structs.replace(self, auth_method=fitting[0] if self.secret else "none")

    def empty_grant(self, place: LoginPlace, *, is_machines: bool = False) -> McpGrant:
        """A grant as it is before its issuer has given a token."""
        return McpGrant(
            url=place.url,
            issuer=place.issuer,
            token_endpoint=place.token_endpoint,
            client_id=self.id,
            client_secret=self.secret,
            auth_method=self.auth_method,
            access_token="",
            resource=place.resource,
            scope=place.scope,
            is_machines=is_machines,
        )


class McpLogin:
    """One login under way: show `address` to the user, then wait for `grant`."""

    def __init__(self, place: LoginPlace, identity: ClientIdentity, port: int) -> None:
        self._place = place
        self._identity = identity
        self._redirect = redirect_to(port)
        self._verifier = secrets.token_urlsafe(32)
        self._state = secrets.token_urlsafe(24)
        self._answer: asyncio.Future[dict[str, str]] = asyncio.get_running_loop().create_future()

    @property
    def address(self) -> str:
        """Where the user agrees."""
        digest = hashlib.sha256(self._verifier.encode()).digest()
        query = {
            "response_type": "code",
            "client_id": self._identity.id,
            "redirect_uri": self._redirect,
            "code_challenge": urlsafe_b64encode(digest).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
            "state": self._state,
            "resource": self._place.resource,
            **({"scope": self._place.scope} if self._place.scope else {}),
        }
        endpoint = self._place.authorization_endpoint
        return f"{endpoint}{'&' if urlsplit(endpoint).query else '?'}{urlencode(query)}"

    async def grant(self) -> McpGrant:
        """What the login gave, once the user has agreed. Raises CredentialsError."""
        try:
            async with asyncio.timeout(AGREE_S):
                answer = await self._answer
        except TimeoutError:
            raise CredentialsError(f"nobody agreed within {AGREE_S / 60:g} minutes") from None
        self._check_issuer(answer.get("iss"))
        if "code" not in answer:
            raise CredentialsError(f"the login was not agreed to: {answer.get('error', 'no reason was given')[:100]}")
        empty = self._identity.empty_grant(self._place)
        form = {
            "grant_type": "authorization_code",
            "code": answer["code"],
            "redirect_uri": self._redirect,
            "code_verifier": self._verifier,
        }
        return with_answer(empty, await ask_token(empty, form))

    def _check_issuer(self, said: str | None) -> None:
        """Whoever answers must be whom we asked: else a code of one issuer would be given to another."""
        if said is None and not self._place.sends_issuer:
            return
        if said != self._place.issuer:
            raise CredentialsError("the answer came from another issuer than the one that was asked")

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request of a browser."""
        await answer_browser(reader, writer, self.take)

    def take(self, target: str) -> tuple[str, str]:
        """What the browser came back with; gives what it shows."""
        parts = urlsplit(target)
        answer = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if parts.path != "/callback" or not secrets.compare_digest(answer.get("state", ""), self._state):
            return "404 Not Found", "There is nothing here."
        if self._answer.done():
            return "200 OK", "This was done already. You can close this page."
        self._answer.set_result(answer)
        return "200 OK", "Covey has what it needs. You can close this page and go back to your terminal."


def redirect_to(port: int) -> str:
    return f"http://127.0.0.1:{port}/callback"


async def machine_login(url: str, headers: Mapping[str, str], identity: ClientIdentity, further: str = "") -> McpGrant:
    """Log in as Covey itself, with its secret and without anybody who agrees. Raises CredentialsError."""
    import httpx2

    if not identity.secret:
        raise CredentialsError("this login needs `client_id` and `client_secret` in the server's entry")
    async with httpx2.AsyncClient(timeout=ANSWER_S, follow_redirects=False) as client:
        place = await _find_place(client, url, headers, further)
    empty = identity.shown_to(place).empty_grant(place, is_machines=True)
    return with_answer(empty, await ask_token(empty, empty.renewal))


@asynccontextmanager
async def mcp_login(
    url: str, headers: Mapping[str, str], identity: ClientIdentity, further: str = ""
) -> AsyncIterator[McpLogin]:
    """Find out where to log in, register if need be, and wait for the browser. Raises CredentialsError.

    `further`: scopes to ask for beside those that the server names.
    """
    import httpx2

    login: McpLogin | None = None

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if login:
            await login.serve(reader, writer)
        else:
            writer.close()

    async with httpx2.AsyncClient(timeout=ANSWER_S, follow_redirects=False) as client:
        server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=MAX_HEAD)
        async with server:
            port = server.sockets[0].getsockname()[1]
            place = await _find_place(client, url, headers, further)
            known = identity.shown_to(place) if identity.id else await _registered(client, place, port)
            login = McpLogin(place, known, port)
            yield login


async def _find_place(client: Any, url: str, headers: Mapping[str, str], further: str) -> LoginPlace:
    place = await Discovery(client, url).find(await _challenge_of(client, url, headers))
    return msgspec.structs.replace(place, scope=united(place.scope, further))


async def _challenge_of(client: Any, url: str, headers: Mapping[str, str]) -> str | None:
    """What the server says when nobody has logged in; None: it has not asked for that so far."""
    import httpx2

    head = {**headers, "accept": "application/json, text/event-stream", "content-type": "application/json"}
    try:
        for probe in PROBES:
            async with client.stream("POST", url, headers=head, content=msgspec.json.encode(probe)) as answer:
                if answer.status_code == 401:
                    return str(answer.headers.get("www-authenticate", ""))
    except httpx2.HTTPError as error:
        raise CredentialsError(f"the server cannot be reached: {type(error).__name__}") from None
    return None


async def _registered(client: Any, place: LoginPlace, port: int) -> ClientIdentity:
    """Have Covey registered: with a secret, if it gets one."""
    if not place.registration_endpoint:
        raise CredentialsError(
            f"{place.issuer} registers nobody by itself: register Covey there, and set client_id in the server's entry"
        )
    methods = [method for method in ("none", *SECRET_METHODS) if method in place.auth_methods]
    wanted = {
        "client_name": "Covey",
        "application_type": "native",
        "redirect_uris": [redirect_to(port)],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": methods[0] if methods else "none",
        **({"scope": place.scope} if place.scope else {}),
    }
    import httpx2

    try:
        answer = await client.post(place.registration_endpoint, json=wanted)
        found = msgspec.json.decode(answer.content)
    except (httpx2.HTTPError, msgspec.DecodeError) as error:
        raise CredentialsError(f"{place.issuer} did not register Covey: {type(error).__name__}") from None
    if answer.status_code not in (200, 201) or not isinstance(found, dict) or not found.get("client_id"):
        raise CredentialsError(f"{place.issuer} did not register Covey ({answer.status_code})")
    secret = str(found.get("client_secret") or "")
    method = str(found.get("token_endpoint_auth_method") or wanted["token_endpoint_auth_method"])
    if not secret:
        method = "none"
    elif method == "none":
        method = SECRET_METHODS[0]
    return ClientIdentity(str(found["client_id"]), secret, method)
