"""Who may speak to the server. Loopback is not trust: any web page can reach it, and any user of the machine.

On the unix socket the file's mode decides, and there is nothing more to check. On TCP every request is checked in this
order: the name it used for us (a page that was rebound to our address still says its own), the page it comes from,
then the token.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass

from starlette.types import Scope

from covey.protocol.errors import Forbidden, Unauthorized
from covey.protocol.who import EVERYTHING, NOTHING_APPROVED, May
from covey.server.peers import is_from_our_tools

OPEN_PATHS = frozenset({"/v1/health"})
"""What may be asked without a token: only whether the server is there."""


@dataclass(frozen=True, slots=True)
class Access:
    """The rules for one listening address. `token` empty: a unix socket."""

    token: str = ""
    allowed_hosts: frozenset[str] = frozenset()

    def check(self, scope: Scope) -> None:
        """Raise Forbidden or Unauthorized unless the request may pass."""
        if not self.token:
            return
        headers: dict[bytes, bytes] = dict(scope["headers"])
        names = [value for name, value in scope["headers"] if name == b"host"]
        host = names[0].decode("latin-1") if len(names) == 1 else ""  # of two, a proxy may have believed the other
        if not self._is_ours(host):
            raise Forbidden(
                f"this server does not go by {host!r}: use 127.0.0.1 or localhost, "
                "or add the name to server.allowed_hosts",
                "forbidden_host",
            )
        origin = headers.get(b"origin")
        if origin is not None and origin.decode("latin-1").lower() != f"http://{host}".lower():
            raise Forbidden("requests from other web pages are refused", "forbidden_origin")
        if scope["path"] not in OPEN_PATHS and not self._has_token(headers.get(b"authorization", b"")):
            raise Unauthorized("send the token as 'Authorization: Bearer <token>'; it is in <data-dir>/token")

    def require(self, scope: Scope, may: May) -> None:
        """Raise Forbidden unless whoever makes the request may do this."""
        if may not in self._granted(scope, may):
            raise Forbidden(
                "a process that one of Covey's tools started may not do this: answer from another terminal",
                "may_not_approve",
            )

    def _granted(self, scope: Scope, may: May) -> tuple[May, ...]:
        """The socket and the token are the user's own. Who is there is only looked up if it counts."""
        if self.token or may in NOTHING_APPROVED or not is_from_our_tools(scope.get("covey.peer", 0)):
            return EVERYTHING
        return NOTHING_APPROVED

    def _is_ours(self, host: str) -> bool:
        name = _without_port(host).lower()
        if name in self.allowed_hosts:
            return True
        return is_loopback(name)

    def _has_token(self, header: bytes) -> bool:
        scheme, _, token = header.partition(b" ")
        return scheme.lower() == b"bearer" and hmac.compare_digest(token.strip(), self.token.encode())


def is_loopback(name: str) -> bool:
    """Whether only this machine goes by that name or address."""
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def hosts(names: Iterable[str]) -> frozenset[str]:
    return frozenset(name.lower() for name in names)


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]
