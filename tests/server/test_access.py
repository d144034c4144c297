"""Who may speak to the server: names, pages and tokens."""

from __future__ import annotations

from pathlib import Path

import pytest

from covey.protocol.errors import ApiError
from covey.server.access import Access, hosts
from tests.server.site import serving

TOKEN = "s3cret-token"
ACCESS = Access(TOKEN, hosts(["Build-Box", "covey.example.org"]))
BEARER = f"Bearer {TOKEN}"


def refusal(path: str = "/v1/version", access: Access = ACCESS, **headers: str) -> str:
    """The code of the error; '' if the request may pass."""
    found = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    try:
        access.check({"type": "http", "method": "GET", "path": path, "headers": found})
    except ApiError as error:
        return f"leaked: {error.message}" if TOKEN in error.message else error.code
    return ""


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1", "127.0.0.1:8790", "127.8.8.8:1", "localhost", "LocalHost:43117", "[::1]", "[::1]:8790",
        "build-box", "BUILD-BOX:80", "covey.example.org",
    ],
)  # fmt: skip
def test_our_own_names_pass(host: str) -> None:
    assert refusal(host=host, authorization=BEARER) == ""


@pytest.mark.parametrize(
    "host",
    [
        "", "evil.example", "evil.example:8790", "localhost.evil.example", "127.0.0.1.evil.example", "0.0.0.0",
        "192.168.1.5", "[::]", "[2001:db8::1]:80", "::1", "user@localhost", "localhost ", "127.1", "2130706433",
        "covey.example.org.", "xcovey.example.org",
    ],
)  # fmt: skip
def test_any_other_name_is_refused_before_the_token_is_looked_at(host: str) -> None:
    for path in ("/v1/version", "/v1/health"):
        assert refusal(path, host=host, authorization=BEARER) == "forbidden_host"
        assert refusal(path, host=host) == "forbidden_host"


def test_a_request_without_a_name_or_with_two_is_refused() -> None:
    assert refusal(authorization=BEARER) == "forbidden_host"
    both = [(b"host", b"evil.example"), (b"host", b"localhost"), (b"authorization", BEARER.encode())]
    with pytest.raises(ApiError) as refused:
        ACCESS.check({"method": "GET", "path": "/v1/version", "headers": both})
    assert refused.value.code == "forbidden_host"


@pytest.mark.parametrize(
    ("origin", "code"),
    [
        ("http://localhost:8790", ""),
        ("HTTP://LOCALHOST:8790", ""),
        ("http://localhost", "forbidden_origin"),
        ("http://localhost:1", "forbidden_origin"),
        ("https://localhost:8790", "forbidden_origin"),
        ("http://127.0.0.1:8790", "forbidden_origin"),
        ("http://evil.example", "forbidden_origin"),
        ("null", "forbidden_origin"),
        ("", "forbidden_origin"),
    ],
)
def test_only_our_own_pages_may_ask(origin: str, code: str) -> None:
    assert refusal(host="localhost:8790", origin=origin, authorization=BEARER) == code
    assert refusal("/v1/health", host="localhost:8790", origin=origin) == code


@pytest.mark.parametrize(
    ("authorization", "code"),
    [
        (BEARER, ""),
        (f"bearer {TOKEN}", ""),
        (f"BEARER   {TOKEN} ", ""),
        ("", "unauthorized"),
        (TOKEN, "unauthorized"),
        (f"Basic {TOKEN}", "unauthorized"),
        ("Bearer ", "unauthorized"),
        (f"Bearer {TOKEN}x", "unauthorized"),
        (f"Bearer {TOKEN[:-1]}", "unauthorized"),
        ("Bearer \xff\xfe", "unauthorized"),
    ],
)
def test_the_token(authorization: str, code: str) -> None:
    assert refusal(host="localhost", authorization=authorization) == code


def test_only_health_and_the_files_of_the_page_need_no_token() -> None:
    for path in ("/v1/health", "/", "/web/abc/js/main.js"):
        assert refusal(path, host="localhost") == ""
    for path in ("/v1/health/", "/v1/version", "/metrics", "/openapi.json", "//", "/v1/healthx", "/V1/health", "/web"):
        assert refusal(path, host="localhost") == "unauthorized"


def test_a_unix_socket_needs_neither_name_nor_token() -> None:
    assert refusal(access=Access()) == ""
    assert refusal(access=Access(), host="api.some-client.localhost") == ""


def test_other_web_pages_are_refused_also_where_a_port_is_forwarded_to_the_socket() -> None:
    assert refusal(access=Access(), host="localhost:8080", origin="http://localhost:8080") == ""
    assert refusal(access=Access(), host="localhost:8080", origin="http://evil.example") == "forbidden_origin"
    assert refusal(access=Access(), host="evil.example", origin="http://evil.example") == "forbidden_host"


@pytest.mark.anyio
async def test_a_refusal_is_an_answer_like_any_other_and_comes_before_anything_else(tmp_path: Path) -> None:
    async with serving(tmp_path, ACCESS) as site:
        answer = await site.request("GET", "/v1/version", headers={"host": "localhost"})
        assert (answer.status, answer.code) == (401, "unauthorized")
        assert answer.headers["www-authenticate"] == "Bearer"
        answer = await site.request("POST", "/no/such/path", {}, headers={"host": "evil.example"})
        assert (answer.status, answer.code) == (403, "forbidden_host")
        answer = await site.request("GET", "/v1/health", headers={"host": "localhost"})
        assert (answer.status, answer.value) == (200, {"status": "ok"})
        answer = await site.request("GET", "/v1/version", headers={"host": "localhost", "authorization": BEARER})
        assert answer.status == 200
