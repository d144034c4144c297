"""How a page in a browser gets in: a code that is used once buys a token of the page's own."""

from __future__ import annotations

from typing import Annotated

import msgspec

from covey.protocol.messages import Wire

PageName = Annotated[str, msgspec.Meta(max_length=200)]


class MakeCode(Wire, frozen=True):
    workspace_id: str = ""
    """Which workspace the page should open first."""


class WebCode(Wire, frozen=True):
    """Whoever redeems it first has it."""

    code: str
    url: str
    """Where the page is, on this machine; the code goes into its fragment: `#code=…`."""
    expires_in: int
    """Seconds."""
    other_urls: tuple[str, ...] = ()
    """The same by the names in `server.allowed_hosts`, behind a proxy that ends TLS."""


class RedeemCode(Wire, frozen=True):
    code: str
    name: PageName = ""
    """What people see in the list of pages, such as a browser and its system."""


class PageAccess(Wire, frozen=True):
    """The only answer that ever holds the token."""

    token: str
    id: str
    expires_at: int
    workspace_id: str = ""
    """What the code was made for."""


class PageSession(Wire, frozen=True):
    """A page that may come in until it is revoked or expires. It holds no secret."""

    id: str
    name: str
    created_at: int
    used_at: int
    expires_at: int
    is_open: bool = False
    """It reads an event stream now."""
