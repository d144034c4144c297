"""Who may speak to the server. Loopback is not trust: any web page can reach it, and any user of the machine.

On the unix socket the file's mode decides, and there is nothing more to check. On TCP every request is checked in this
order: the name it used for us (a page that was rebound to our address still says its own), the page it comes from,
then the token: the server's own, or that of a page in a browser, which may do everything but administer the server.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass

from starlette.types import Scope

from covey.protocol.errors import Forbidden, Unauthorized
from covey.protocol.who import EVERYTHING, NOTHING_APPROVED, PAGE, May
from covey.server.pages import Pages
from covey.server.peers import is_from_our_tools

OPEN = frozenset(
    {("GET", "/v1/health"), ("GET", "/v1/ready"), ("POST", "/v1/web/sessions"), ("GET", "/"), ("HEAD", "/")}
)
"""What may be asked without a token: whether the server is there and ready, the page, which holds no data, and to be
let in."""
OPEN_BELOW = "/web/"
"""The files of the page."""
REDEEM = ("POST", "/v1/web/sessions")


@dataclass(frozen=True, slots=True)
class Access:
    """The rules for one listening address. Neither `token` nor `pages_only`: a unix socket."""

    token: str = ""
    allowed_hosts: frozenset[str] = frozenset()
    pages: Pages | None = None
    pages_only: bool = False
    """It is there for pages alone: no other token opens it."""

    @property
    def is_socket(self) -> bool:
        return not self.token and not self.pages_only

    def check(self, scope: Scope) -> None:
        """Raise Forbidden or Unauthorized unless the request may pass."""
        headers: dict[bytes, bytes] = dict(scope["headers"])
        asked = scope["method"], scope["path"]
        origin = headers.get(b"origin")
        is_page = origin is not None or asked == REDEEM
        names = [value for name, value in scope["headers"] if name == b"host"]
        host = names[0].decode("latin-1") if len(names) == 1 else ""  # of two, a proxy may have believed the other
        # Programs may call a socket what they like. A browser is only there if somebody forwards a port to it.
        if (is_page or not self.is_socket) and not self._is_ours(host):
            raise Forbidden(
                f"this server does not go by {host!r}: use 127.0.0.1 or localhost, "
                "or add the name to server.allowed_hosts",
                "forbidden_host",
            )
        if is_page and not self._is_own(origin or b"", host):
            raise Forbidden("requests from other web pages are refused", "forbidden_origin")
        if self.is_socket or asked in OPEN or is_page_file(*asked):
            return
        token = bearer(headers.get(b"authorization", b""))
        if self.token and hmac.compare_digest(token, self.token.encode()):
            return
        page = self.pages.check(token.decode("latin-1")) if self.pages and token else None
        if page is None:
            raise Unauthorized("send the token as 'Authorization: Bearer <token>'; it is in <data-dir>/token")
        scope["covey.page"] = page

    def require(self, scope: Scope, may: May) -> None:
        """Raise Forbidden unless whoever makes the request may do this."""
        if scope.get("covey.page") and may not in PAGE:
            raise Forbidden("a page may not do this: use a terminal on the server's machine", "may_not_administer")
        if may not in self._granted(scope, may):
            raise Forbidden(
                "a process that one of Covey's tools started may not do this: answer from another terminal",
                "may_not_approve",
            )

    def _granted(self, scope: Scope, may: May) -> tuple[May, ...]:
        """The socket and the token are the user's own. Who is there is only looked up if it counts."""
        if scope.get("covey.is_tool"):  # another node has looked
            return NOTHING_APPROVED
        if not self.is_socket or may in NOTHING_APPROVED or not is_from_our_tools(scope.get("covey.peer", 0)):
            return EVERYTHING
        return NOTHING_APPROVED

    def _is_ours(self, host: str) -> bool:
        name = _without_port(host).lower()
        if name in self.allowed_hosts:
            return True
        return is_loopback(name)

    def _is_own(self, origin: bytes, host: str) -> bool:
        """Whether the page is one of ours. TLS may end in front of us, for the names that are configured."""
        own = {f"http://{host}".lower()}
        if _without_port(host).lower() in self.allowed_hosts:
            own.add(f"https://{host}".lower())
        return origin.decode("latin-1").lower() in own


def is_page_file(method: str, path: str) -> bool:
    return method in ("GET", "HEAD") and path.startswith(OPEN_BELOW)


def bearer(header: bytes) -> bytes:
    """The token in an `Authorization` header; empty if there is none."""
    scheme, _, token = header.partition(b" ")
    return token.strip() if scheme.lower() == b"bearer" else b""


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
