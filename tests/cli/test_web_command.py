"""`covey web` with a real server on its socket: a listener on demand at a steady port, sessions, revoking, QR codes."""

from __future__ import annotations

import hashlib
import http.client
import json
from typing import Any
from urllib.parse import urlsplit

import pytest

from covey.cli.qr import qr_squares, qr_text
from tests.cli.conftest import Home


def ask(url: str, method: str, path: str, body: Any = None, token: str = "") -> tuple[int, Any]:
    """A request as the page makes it."""
    where = urlsplit(url)
    connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=30)
    headers = {"Origin": url.rstrip("/"), "Content-Type": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    connection.request(method, path, json.dumps(body) if body is not None else None, headers)
    response = connection.getresponse()
    raw = response.read()
    connection.close()
    return response.status, json.loads(raw) if raw[:1] in (b"{", b"[") else raw


def test_a_page_is_let_in_listed_survives_a_restart_at_its_port_and_is_put_out(home: Home) -> None:
    made = json.loads(home.covey("web", "--json").stdout)
    assert made["url"].startswith("http://127.0.0.1:")
    assert ask(made["url"], "GET", "/")[0] == 200
    assert ask(made["url"], "GET", "/v1/version")[0] == 401
    status, page = ask(made["url"], "POST", "/v1/web/sessions", {"code": made["code"], "name": "a test"})
    assert status == 200
    assert ask(made["url"], "GET", f"/v1/workspaces/{page['workspace_id']}", token=page["token"])[1]["path"]
    listed = home.covey("web", "--sessions").stdout
    assert page["id"] in listed and "a test" in listed

    assert home.covey("stop").returncode == 0
    assert home.covey("run", "hello").returncode == 0  # a server again: it listens for the page by itself
    assert ask(made["url"], "GET", "/v1/version", token=page["token"])[0] == 200
    assert json.loads(home.covey("web", "--json").stdout)["url"] == made["url"]

    assert home.covey("web", "--revoke", "nothing").returncode == 1
    assert home.covey("web", "--revoke", page["id"][:5]).returncode == 0
    status, refusal = ask(made["url"], "GET", "/v1/version", token=page["token"])
    assert (status, refusal["code"]) == (401, "signed_out")


def test_the_link_is_printed_and_a_phone_needs_a_name(home: Home) -> None:
    printed = home.covey("web", "--no-open")
    assert "/#code=" in printed.stdout and printed.returncode == 0
    phone = home.covey("web", "--phone")
    assert phone.returncode == 1 and "allowed_hosts" in phone.stderr


@pytest.mark.parametrize(
    ("length", "size", "digest"),
    [
        (17, 21, "2ca2ed19f14ac063"),
        (60, 33, "1649ad65438d923d"),
        (154, 45, "cc9f4339d837a71b"),
        (271, 57, "1105f1f05bb9a581"),
    ],
)
def test_qr_codes_are_those_that_a_reader_has_read(length: int, size: int, digest: str) -> None:
    """The digests are of codes that zbar has read back."""
    text = ("https://box.tail1234.ts.net/#code=" + "aB3_x-" * 60)[:length]
    squares = qr_squares(text)
    found = hashlib.sha256("".join("01"[dark] for row in squares for dark in row).encode()).hexdigest()[:16]
    assert (len(squares), found) == (size, digest)


def test_a_qr_code_has_its_quiet_zone_and_a_bound() -> None:
    lines = qr_text("https://box.example/#code=x").splitlines()
    assert set(lines[0] + lines[1]) == {"█"} and len({len(line) for line in lines}) == 1
    with pytest.raises(ValueError, match="too long"):
        qr_squares("x" * 272)
