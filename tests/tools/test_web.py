"""Where a URL leads, and that a model cannot be led, or lead us, where nobody has agreed to go."""

from __future__ import annotations

import asyncio
import ipaddress
import shutil
import ssl
import subprocess
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from covey.tools import web
from covey.tools.base import ToolFailed
from tests.tools.web_server import WebServer, answer, redirect, serving

pytestmark = pytest.mark.anyio

PUBLIC = ipaddress.ip_address("127.0.0.2")
"""An address of this machine that the tests declare to be public."""
NAMES = {
    "public.example": ["127.0.0.2"],
    "also-public.example": ["127.0.0.2"],
    "hidden.example": ["127.0.0.1"],
    "half-hidden.example": ["127.0.0.2", "10.0.0.1"],
    "down.example": ["127.0.0.3", "127.0.0.2"],
    "wiki": ["10.1.2.3"],
    "localhost": ["127.0.0.1"],
    "trap": ["169.254.169.254"],
}


@pytest.fixture(autouse=True)
def names(monkeypatch: pytest.MonkeyPatch) -> None:
    """The names of the internet."""
    place_of = web._place_of

    def look_up(host: str) -> list[str]:
        if host in NAMES:
            return NAMES[host]
        raise OSError("no such name")

    monkeypatch.setattr(web, "look_up", look_up)
    monkeypatch.setattr(web, "_place_of", lambda address: "" if address == PUBLIC else place_of(address))


@pytest.fixture
async def server() -> AsyncIterator[WebServer]:
    async with serving() as server:
        yield server


async def get(url: str) -> bytes:
    async with web.opened(web.parse(url)) as got:
        data, _ = await got.read(1000)
        return data


# ── URLs ──


@pytest.mark.parametrize(
    ("text", "url"),
    [
        (" HTTP://Example.COM:80/a b?q=ü#part\n", "http://example.com/a%20b?q=%C3%BC"),
        ("https://münchen.de", "https://xn--mnchen-3ya.de"),
        ("https://[2606:4700::1111]:8443/x", "https://[2606:4700::1111]:8443/x"),
    ],
)
def test_a_person_is_asked_about_the_url_as_it_is_used(text: str, url: str) -> None:
    assert str(web.parse(text)) == url


@pytest.mark.parametrize(
    "text",
    [
        "",
        "example.com",
        "file:///etc/passwd",
        "ftp://example.com/",
        "javascript:alert(1)",
        "http:///x",
        "http://user:secret@example.com/",
        "http://good.example\\@evil.example/",
        "http://a b/",
        "http://exa%6dple.com/",
        "http://example.com:0/",
        "http://example.com:99999/",
        "http://example.com:port/",
        "http://exam\nple.com/",
        "http://[::1/",
        "http://[fe80::1%25eth0]/",
        "https://example.com/" + "x" * 10_000,
    ],
)
def test_what_is_no_plain_url_is_refused(text: str) -> None:
    with pytest.raises(ToolFailed):
        web.parse(text)


@pytest.mark.parametrize(
    ("url", "where"),
    [
        ("https://example.com/", ""),
        ("https://8.8.8.8/", ""),
        ("https://localhost.example.com/", ""),
        ("http://localhost:3000/", web.THIS_MACHINE),
        ("http://LOCALHOST./", web.THIS_MACHINE),
        ("http://app.localhost/", web.THIS_MACHINE),
        ("http://127.8.9.10/", web.THIS_MACHINE),
        ("http://0.0.0.0/", web.THIS_MACHINE),
        ("http://[::1]/", web.THIS_MACHINE),
        ("http://[::ffff:127.0.0.1]/", web.THIS_MACHINE),
        ("http://[64:ff9b::7f00:1]/", web.THIS_MACHINE),
        ("http://[2002:7f00:1::]/", web.THIS_MACHINE),
        ("http://10.0.0.1/", web.LOCAL_NETWORK),
        ("http://192.168.1.1/", web.LOCAL_NETWORK),
        ("http://172.20.0.1/", web.LOCAL_NETWORK),
        ("http://100.64.0.1/", web.LOCAL_NETWORK),
        ("http://169.254.1.1/", web.LOCAL_NETWORK),
        ("http://224.0.0.1/", web.LOCAL_NETWORK),
        ("http://[fd00::1]/", web.LOCAL_NETWORK),
        ("http://[fe80::1]/", web.LOCAL_NETWORK),
        ("http://[::ffff:10.0.0.1]/", web.LOCAL_NETWORK),
        ("http://router/", web.LOCAL_NETWORK),
        ("http://printer.local/", web.LOCAL_NETWORK),
        ("http://host.docker.internal/", web.LOCAL_NETWORK),
        ("http://169.254.169.254/latest/meta-data/", web.METADATA),
        ("http://[::ffff:169.254.169.254]/", web.METADATA),
        ("http://[fd00:ec2::254]/", web.METADATA),
        ("http://metadata.google.internal/", web.METADATA),
    ],
)
def test_an_address_that_is_not_public_is_told(url: str, where: str) -> None:
    parsed = web.parse(url)
    assert web.place(parsed) == where
    assert web.described(parsed) == (f"{parsed} ({where})" if where else str(parsed))


# ── names ──


async def test_a_public_name_is_reached_at_the_address_that_was_judged(server: WebServer) -> None:
    server.pages["/"] = answer("hello")
    assert await get(server.url("/", "public.example")) == b"hello"
    (_, headers) = server.requests[0]
    assert headers["host"] == f"public.example:{server.port}"


async def test_this_machine_is_reached_if_the_url_says_so(server: WebServer) -> None:
    server.pages["/"] = answer("hello")
    assert await get(server.url("/")) == b"hello"
    assert await get(server.url("/", "localhost")) == b"hello"


@pytest.mark.parametrize(
    ("host", "address", "where"),
    [
        ("hidden.example", "127.0.0.1", web.THIS_MACHINE),
        ("half-hidden.example", "10.0.0.1", web.LOCAL_NETWORK),
        ("trap", "169.254.169.254", web.METADATA),
    ],
)
async def test_a_name_that_hides_where_it_leads_is_refused(
    server: WebServer, host: str, address: str, where: str
) -> None:
    with pytest.raises(ToolFailed) as refused:
        await get(server.url("/", host))
    assert str(refused.value).startswith(f"{host} is {address}, {where}, which the URL does not show")
    assert server.requests == []


async def test_an_address_that_is_down_is_followed_by_the_next(
    server: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.pages["/"] = answer("hello")
    monkeypatch.setattr(web, "_place_of", lambda address: "")
    monkeypatch.setitem(NAMES, "down.example", ["::1", "127.0.0.2"])  # the server has no IPv6
    assert await get(server.url("/", "down.example")) == b"hello"
    monkeypatch.setitem(NAMES, "down.example", ["::1"])
    with pytest.raises(ToolFailed, match="could not be read"):
        await get(server.url("/", "down.example"))


async def test_a_name_that_does_not_exist_is_told(server: WebServer) -> None:
    with pytest.raises(ToolFailed, match=r"The host nowhere\.example was not found: no such name"):
        await get("https://nowhere.example/")


async def test_a_lookup_that_hangs_holds_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()
    monkeypatch.setattr(web, "look_up", lambda host: [str(release.wait(60))])
    monkeypatch.setattr(web, "_LOOKUPS", threading.BoundedSemaphore(1))
    looking = asyncio.ensure_future(get("http://slow.example/"))
    await asyncio.sleep(0)
    with pytest.raises(ToolFailed, match="Too many names"):
        await get("http://other.example/")
    looking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await looking
    release.set()


# ── redirects ──


async def test_redirects_are_followed_to_the_end(server: WebServer) -> None:
    server.pages["/a"] = redirect("b?x=1")
    server.pages["/b?x=1"] = redirect(server.url("/c#part", "also-public.example"), "308 Permanent Redirect")
    server.pages["/c"] = answer("there")
    async with web.opened(web.parse(server.url("/a", "public.example"))) as got:
        assert got.url == server.url("/c", "also-public.example")
        assert await got.read(100) == (b"there", False)


async def test_a_loop_of_redirects_ends(server: WebServer) -> None:
    server.pages["/a"] = redirect("/b")
    server.pages["/b"] = redirect("/a")
    with pytest.raises(ToolFailed, match="more than 5 redirects"):
        await get(server.url("/a"))
    assert len(server.requests) == 6


@pytest.mark.parametrize(
    ("target", "where"),
    [
        ("http://127.0.0.1:{port}/secret", web.THIS_MACHINE),
        ("http://localhost:{port}/secret", web.THIS_MACHINE),
        ("http://169.254.169.254/latest/", web.METADATA),
        ("//192.168.0.1/", web.LOCAL_NETWORK),
        ("http://[::ffff:127.0.0.1]:{port}/secret", web.THIS_MACHINE),
    ],
)
async def test_a_redirect_of_a_public_host_to_an_inner_address_is_refused(
    server: WebServer, target: str, where: str
) -> None:
    target = target.format(port=server.port)
    server.pages["/a"] = redirect(target)
    with pytest.raises(ToolFailed) as refused:
        await get(server.url("/a", "public.example"))
    to = web.parse("http:" + target.removeprefix("http:"))
    assert f"{server.url('/a', 'public.example')} redirects to {to}, {where}. " in str(refused.value)
    assert [path for path, _ in server.requests] == ["/a"]


async def test_a_redirect_to_a_name_that_hides_an_inner_address_is_refused(server: WebServer) -> None:
    server.pages["/a"] = redirect(server.url("/secret", "hidden.example"))
    with pytest.raises(ToolFailed, match=r"hidden\.example is 127\.0\.0\.1"):
        await get(server.url("/a", "public.example"))
    assert [path for path, _ in server.requests] == ["/a"]


async def test_an_inner_host_may_redirect_to_itself_and_to_nobody_like_it(server: WebServer) -> None:
    server.pages["/a"] = redirect("/b")
    server.pages["/b"] = answer("there")
    assert await get(server.url("/a")) == b"there"
    server.pages["/a"] = redirect("http://169.254.169.254/")
    with pytest.raises(ToolFailed, match="metadata service"):
        await get(server.url("/a"))


async def test_a_page_of_this_machine_may_not_redirect_to_another_port_of_it(server: WebServer) -> None:
    async with serving() as other:
        other.pages["/secret"] = answer("of another server")
        server.pages["/a"] = redirect(other.url("/secret"))
        with pytest.raises(ToolFailed, match="Redirects are not followed there"):
            await get(server.url("/a"))
        assert other.requests == []


@pytest.mark.parametrize("target", ["file:///etc/passwd", "http://u:p@public.example/", "http://[", "data:,x"])
async def test_a_redirect_to_what_is_no_plain_url_is_refused(server: WebServer, target: str) -> None:
    server.pages["/a"] = redirect(target)
    with pytest.raises(ToolFailed):
        await get(server.url("/a"))


async def test_nothing_of_ours_is_sent_along(
    server: WebServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password secret\n")
    (tmp_path / ".netrc").chmod(0o600)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1/")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1/")
    server.pages["/a"] = answer(status="302 Found", location="/b", set_cookie="id=1; Path=/")
    server.pages["/b"] = answer("there")
    await get(server.url("/a"))
    for _, headers in server.requests:
        assert headers["user-agent"].startswith("covey/")
        assert not {"cookie", "authorization", "referer"} & set(headers)


# ── certificates ──


def certificate(directory: Path, name: str) -> ssl.SSLContext:
    """A server's certificate that it has signed itself."""
    key, file = directory / "key.pem", directory / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}", "-keyout", str(key), "-out", str(file)],
        check=True, capture_output=True,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file, key)
    return context


@pytest.mark.skipif(not shutil.which("openssl"), reason="nothing else here makes certificates")
async def test_a_certificate_must_be_that_of_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(certificate(tmp_path, "public.example")) as server:
        server.pages["/"] = answer("hello")
        with pytest.raises(ToolFailed, match=r"(?i)certificate"):
            await get(server.url("/", "public.example"))
        trusted = ssl.create_default_context(cafile=str(tmp_path / "certificate.pem"))
        monkeypatch.setattr(web, "_tls", lambda: trusted)
        assert await get(server.url("/", "public.example")) == b"hello"
        with pytest.raises(ToolFailed, match=r"(?i)certificate"):
            await get(server.url("/", "also-public.example"))
        with pytest.raises(ToolFailed, match=r"(?i)certificate"):
            await get(server.url("/"))
