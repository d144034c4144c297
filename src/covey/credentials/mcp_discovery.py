"""Where an MCP server wants somebody to log in: its own metadata, and that of its authorization server.

What a server says may lead anywhere. Only https is followed, and never to an address of this machine or of a private
network, unless the configured server itself is there.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import msgspec

from covey.credentials.accounts import CredentialsError
from covey.credentials.mcp_tokens import challenge_words

ANSWER_S = 20.0
MAX_ANSWER = 256 * 1024


class LoginPlace(msgspec.Struct, frozen=True):
    """All that is needed to begin a login."""

    url: str
    resource: str
    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    registration_endpoint: str = ""
    scope: str = ""
    auth_methods: tuple[str, ...] = ()
    sends_issuer: bool = False
    """The issuer promises to say who it is when the browser comes back."""


def checked_url(url: Any, configured: str) -> str:
    """The URL, if it may be followed. Raises CredentialsError."""
    parts = urlsplit(url) if isinstance(url, str) else None
    if parts is None or not parts.hostname or parts.scheme not in ("https", "http"):
        raise CredentialsError(f"the server names an address that is none: {str(url)[:100]!r}")
    own = urlsplit(configured)
    if parts.hostname == own.hostname and (parts.scheme == "https" or own.scheme == "http"):
        return str(url)
    if parts.scheme != "https":
        raise CredentialsError(f"the server leads to {str(url)[:100]}, which is not encrypted")
    if _is_private(parts.hostname):
        raise CredentialsError(f"the server leads to {str(url)[:100]}, an address of this machine or a private network")
    return str(url)


def _is_private(host: str) -> bool:
    if host == "localhost" or host.endswith((".localhost", ".local", ".internal")):
        return True
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return False


class Discovery:
    """Asks for metadata, with one client."""

    def __init__(self, client: Any, url: str) -> None:
        self._client = client
        self._url = url

    async def find(self, said: str | None) -> LoginPlace:
        """By what the server said when it refused a request; None: it refused none. Raises CredentialsError."""
        challenge = said or ""
        resource = await self._resource(challenge)
        if said is None and not resource:
            raise CredentialsError("the server wants no login")
        servers = resource.get("authorization_servers")
        named = resource.get("resource")
        if named is not None and not _covers(str(named), self._url):
            raise CredentialsError(f"the metadata is about {str(named)[:100]}, which is another server")
        origin = urlunsplit((*urlsplit(self._url)[:2], "", "", ""))
        issuer = str(servers[0]) if isinstance(servers, list) and servers else origin
        server = await self._server(checked_url(issuer, self._url))
        scope = challenge_words(challenge).get("scope") or " ".join(map(str, resource.get("scopes_supported") or ()))
        if (
            scope
            and "offline_access" in (server.get("scopes_supported") or ())
            and "offline_access" not in scope.split()
        ):
            scope = f"{scope} offline_access"
        return LoginPlace(
            url=self._url,
            resource=str(named or self._url),
            issuer=issuer,
            authorization_endpoint=checked_url(server.get("authorization_endpoint"), self._url),
            token_endpoint=checked_url(server.get("token_endpoint"), self._url),
            registration_endpoint=_optional(server.get("registration_endpoint"), self._url),
            scope=scope,
            auth_methods=tuple(map(str, server.get("token_endpoint_auth_methods_supported") or ())),
            sends_issuer=server.get("authorization_response_iss_parameter_supported") is True,
        )

    async def _resource(self, challenge: str) -> Mapping[str, Any]:
        """The metadata of the server itself; none, for one of an older kind."""
        named = challenge_words(challenge).get("resource_metadata")
        scheme, host, path, *_ = urlsplit(self._url)
        places = [f"/.well-known/oauth-protected-resource{path.rstrip('/')}", "/.well-known/oauth-protected-resource"]
        urls = [checked_url(named, self._url)] if named else [f"{scheme}://{host}{place}" for place in places]
        for url in urls:
            if found := await self._get(url):
                return found
        return {}

    async def _server(self, issuer: str) -> Mapping[str, Any]:
        for url in _metadata_places(issuer):
            if found := await self._get(url):
                if str(found.get("issuer", "")) != issuer and str(found.get("issuer", "")).rstrip("/") != issuer.rstrip(
                    "/"
                ):
                    raise CredentialsError(f"{issuer} says that it is another: {str(found.get('issuer'))[:100]!r}")
                methods = found.get("code_challenge_methods_supported")
                if isinstance(methods, list) and "S256" not in methods:
                    raise CredentialsError(f"{issuer} does not know PKCE with S256, without which a login is not safe")
                return found
        if urlsplit(issuer).netloc != urlsplit(self._url).netloc:
            raise CredentialsError(f"{issuer} does not say how to log in")
        # The oldest revision: fixed places on the server itself.
        base = issuer.rstrip("/")
        return {
            "issuer": issuer,
            "authorization_endpoint": f"{base}/authorize",
            "token_endpoint": f"{base}/token",
            "registration_endpoint": f"{base}/register",
        }

    async def _get(self, url: str) -> Mapping[str, Any] | None:
        import httpx2

        try:
            answer = await self._client.get(url, headers={"accept": "application/json"})
        except httpx2.HTTPError as error:
            raise CredentialsError(f"{urlsplit(url).netloc} cannot be reached: {type(error).__name__}") from None
        if answer.status_code != 200:
            return None
        try:
            found = msgspec.json.decode(answer.content[:MAX_ANSWER])
        except msgspec.DecodeError:
            return None
        return found if isinstance(found, dict) else None


def _metadata_places(issuer: str) -> Iterator[str]:
    scheme, host, path, *_ = urlsplit(issuer)
    path = path.rstrip("/")
    yield f"{scheme}://{host}/.well-known/oauth-authorization-server{path}"
    yield f"{scheme}://{host}/.well-known/openid-configuration{path}"
    if path:
        yield f"{scheme}://{host}{path}/.well-known/openid-configuration"


def _covers(resource: str, url: str) -> bool:
    """Whether metadata about this resource may speak for the URL: the same place, or one above it."""
    one, other = urlsplit(resource), urlsplit(url)
    same = (one.scheme, one.netloc) == (other.scheme, other.netloc)
    above = one.path.rstrip("/")
    return same and (other.path.rstrip("/") == above or other.path.startswith(f"{above}/"))


def _optional(url: Any, configured: str) -> str:
    return checked_url(url, configured) if url else ""
