"""Open a page for a model: its addresses are judged, redirects are followed by hand, and nothing of ours is sent along.

What a model asks for is untrusted, and so is what a server answers. An address of this machine or of its network is
only reached if the URL itself shows that (`place`), because then whoever allowed the call could see it: a name that
turns out to be such an address is refused, and so is a redirect to one. The connection goes to the very address that
was judged. No cookies, no proxies and no credentials from the environment are used.
"""

from __future__ import annotations

import asyncio
import functools
import ipaddress
import re
import socket
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from covey import __version__
from covey.tools.base import ToolFailed
from covey.tools.threads import in_thread

if TYPE_CHECKING:
    import ssl

    import httpx2

    Address = ipaddress.IPv4Address | ipaddress.IPv6Address

REDIRECTS = 5
"""How many are followed. More is a loop, or a game."""
CONNECT_S = 10.0
"""For each address. One that does not answer by then is tried no longer."""
ADDRESSES_TRIED = 4
URL_CHARACTERS = 8_000
"""Longer ones are refused by servers, and nobody who is asked can read them."""

THIS_MACHINE = "an address of this machine"
LOCAL_NETWORK = "an address of the local network"
METADATA = "an address that hands out secrets of this machine (a metadata service)"

_METADATA_NAMES = frozenset({"metadata", "metadata.google.internal", "instance-data", "instance-data.ec2.internal"})
_METADATA_ADDRESSES = frozenset(
    map(ipaddress.ip_address, ("169.254.169.254", "169.254.170.2", "100.100.100.200", "fd00:ec2::254"))
)
_LOCAL_SUFFIXES = (".local", ".internal", ".intranet", ".lan", ".home", ".corp", ".home.arpa")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_HOST = re.compile(r"[a-z0-9._-]+")
_CHARSET = re.compile(r""";\s*charset\s*=\s*["']?([a-zA-Z0-9_:.-]{1,40})""")
_LOOKUPS = threading.BoundedSemaphore(32)
"""A lookup cannot be stopped, and goes on in its thread when nobody waits for it any more."""
_ENCODINGS = frozenset({"", "identity", "gzip", "x-gzip", "deflate"})


@dataclass(frozen=True, slots=True)
class WebAnswer:
    """The beginning of what a server answers, after all redirects. The body is read by `pieces`."""

    url: str
    status: int
    reason: str
    mime_type: str
    charset: str
    length: int | None
    """As the server says, in bytes on the wire; None if it does not."""
    response: httpx2.Response

    async def read(self, limit: int) -> tuple[bytes, bool]:
        """The body, decompressed, and whether it goes on after `limit` bytes."""
        data = bytearray()
        async with aclosing(self.pieces()) as pieces:
            async for piece in pieces:
                data += piece
                if len(data) > limit:
                    return bytes(data[:limit]), True
        return bytes(data), False

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """The body, decompressed, in pieces of at most 1 MiB."""
        encoding = self.response.headers.get("content-encoding", "").strip().lower()
        if encoding not in _ENCODINGS:  # also two at once: what is small twice over can be anything
            raise ToolFailed(f"{self.url} is compressed in a way that is not understood ({encoding[:80]}).")
        async with aclosing(self.response.aiter_bytes()) as pieces:
            async for piece in pieces:
                yield piece


def parse(text: str) -> httpx2.URL:
    """The URL as it will be used; raises ToolFailed unless it is a plain http or https one."""
    import httpx2

    if len(text) > URL_CHARACTERS:
        raise ToolFailed(f"The URL is longer than {URL_CHARACTERS} characters.")
    try:
        url = httpx2.URL(str(httpx2.URL(text.strip()))).copy_with(fragment=None)
        host = url.raw_host.decode("ascii")
    except (httpx2.InvalidURL, ValueError) as error:
        raise ToolFailed(f"The URL {text[:200]!r} cannot be read: {error}") from None
    if url.scheme not in ("http", "https"):
        raise ToolFailed(f"The URL {text[:200]!r} does not start with http:// or https://; nothing else is supported.")
    if url.userinfo:
        raise ToolFailed("A URL with a user name or a password in it is not used. Leave them out.")
    if not (_HOST.fullmatch(host) or _address(host)) or not (url.port is None or 0 < url.port < 65536):
        raise ToolFailed(f"The URL {text[:200]!r} names no host that could be reached.")
    return url


def place(url: httpx2.URL) -> str:
    """What a person should know about where a URL leads, as far as it shows; empty if it looks public."""
    host = _host(url)
    if address := _address(host):
        return _place_of(address)
    if host == "localhost" or host.endswith(".localhost"):
        return THIS_MACHINE
    if host in _METADATA_NAMES:
        return METADATA
    return LOCAL_NETWORK if "." not in host or host.endswith(_LOCAL_SUFFIXES) else ""


def described(url: httpx2.URL) -> str:
    """The URL with a warning, for the person who is asked."""
    where = place(url)
    return f"{url} ({where})" if where else str(url)


@asynccontextmanager
async def opened(url: httpx2.URL, accept: str = "*/*") -> AsyncIterator[WebAnswer]:
    """Ask for a page. Leaving, or cancelling, closes the connection. Raises ToolFailed for whatever goes wrong."""
    import httpx2

    allowed = _server(url)
    try:
        for _ in range(REDIRECTS + 1):
            addresses = await _judged(url, place(url) if _server(url) == allowed else "")
            async with _asked(url, addresses, accept) as response:
                target = response.headers.get("location") if response.is_redirect else None
                if target is None:
                    yield _answer(url, response)
                    return
            url = _redirected(url, target, allowed)
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise ToolFailed(f"{url} could not be read: {str(error) or type(error).__name__}") from None
    raise ToolFailed(f"There were more than {REDIRECTS} redirects; the last one led to {url}.")


def _redirected(url: httpx2.URL, target: str, allowed: tuple[str, int | None]) -> httpx2.URL:
    import httpx2

    try:
        joined = str(url.join(target))
    except (httpx2.InvalidURL, ValueError) as error:
        raise ToolFailed(f"{url} redirects to something that is no URL: {error}") from None
    following = parse(joined)
    if _server(following) != allowed and (where := place(following)):
        raise ToolFailed(
            f"{url} redirects to {following}, {where}. Redirects are not followed there. If you need it, ask for that "
            "URL itself."
        )
    return following


@asynccontextmanager
async def _asked(url: httpx2.URL, addresses: Sequence[Address], accept: str) -> AsyncIterator[httpx2.Response]:
    """The answer of the first address that can be reached. A client for each request: it keeps nothing for the next."""
    import httpx2

    host = url.raw_host.decode("ascii")
    headers = {
        "host": url.netloc.decode("ascii"),
        "user-agent": f"covey/{__version__}",
        "accept": accept,
        "accept-encoding": "gzip, deflate",
    }
    timeout = httpx2.Timeout(None, connect=CONNECT_S)
    context = await in_thread(_tls)
    async with httpx2.AsyncClient(verify=context, trust_env=False, timeout=timeout) as client:
        for number, address in enumerate(addresses, 1):
            request = client.build_request(
                "GET", url.copy_with(host=str(address)), headers=headers, extensions={"sni_hostname": host}
            )
            try:
                response = await client.send(request, stream=True)
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                if number == len(addresses):
                    raise
                continue
            try:
                yield response
            finally:
                await response.aclose()
            return


async def _judged(url: httpx2.URL, said: str) -> list[Address]:
    """The addresses of the host, if they are public or what the URL says they are; raises ToolFailed otherwise."""
    host = _host(url)
    literal = _address(host)
    addresses = [literal] if literal else await _looked_up(host)
    for address in addresses:
        where = _place_of(address)
        if where and where != said:
            raise ToolFailed(
                f"{host} is {address}, {where}, which the URL does not show: whoever allows it could not know. If you "
                f"need it, use the address in the URL."
            )
    return addresses[:ADDRESSES_TRIED]


async def _looked_up(host: str) -> list[Address]:
    lookups = _LOOKUPS
    if not lookups.acquire(blocking=False):
        raise ToolFailed("Too many names are being looked up at the moment. Try again in a minute.")
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[list[str]] = loop.create_future()

    def settle(found: list[str] | OSError | UnicodeError) -> None:
        if answer.done():
            return
        if isinstance(found, list):
            answer.set_result(found)
        else:
            answer.set_exception(found)

    def look() -> None:
        found: list[str] | OSError | UnicodeError
        try:
            found = look_up(host)
        except (OSError, UnicodeError) as error:
            found = error
        finally:
            lookups.release()
        try:
            loop.call_soon_threadsafe(settle, found)
        except RuntimeError:  # the loop is closed
            return

    # A thread that does not keep the server from ending, as one of an executor would.
    threading.Thread(target=look, name="covey-dns", daemon=True).start()
    try:
        return [ipaddress.ip_address(text.partition("%")[0]) for text in await answer]
    except (OSError, UnicodeError) as error:
        raise ToolFailed(f"The host {host} was not found: {error}") from None


def look_up(host: str) -> list[str]:
    """The addresses that a name has, without repetitions. Blocks."""
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def _place_of(address: Address) -> str:
    address = _inner(address)
    if address in _METADATA_ADDRESSES:
        return METADATA
    if address.is_loopback or address.is_unspecified:
        return THIS_MACHINE
    return "" if address.is_global and not address.is_multicast else LOCAL_NETWORK


def _inner(address: Address) -> Address:
    """The IPv4 address that an IPv6 one stands for, if it does."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address


def _host(url: httpx2.URL) -> str:
    return url.raw_host.decode("ascii").lower().rstrip(".")


def _server(url: httpx2.URL) -> tuple[str, int | None]:
    """Which server is meant: each port of a host is another one, but the usual ones of http and https are one."""
    return _host(url), url.port


def _address(host: str) -> Address | None:
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return None
    return None if "%" in host else address  # a network card has no place in a URL


def _answer(url: httpx2.URL, response: httpx2.Response) -> WebAnswer:
    length = response.headers.get("content-length", "")
    content_type = response.headers.get("content-type", "")
    charset = _CHARSET.search(content_type)
    return WebAnswer(
        url=str(url),
        status=response.status_code,
        reason=response.reason_phrase,
        mime_type=content_type.partition(";")[0].strip().lower(),
        charset=charset.group(1) if charset else "",
        length=int(length) if re.fullmatch(r"[0-9]{1,18}", length) else None,
        response=response,
    )


@functools.cache
def _tls() -> ssl.SSLContext:
    """What is needed to check certificates: reading the system's takes some 50 ms, so only once. Blocks."""
    import httpx2

    return httpx2.create_ssl_context(trust_env=False)
