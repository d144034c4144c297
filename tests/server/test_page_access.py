"""How a page gets in: codes, tokens of its own, what they may do, and how they end. In process; the rules alone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from covey.protocol.paths import Address
from covey.server.access import Access, hosts
from covey.server.app import Gate
from covey.server.page_codes import CODE_S, MOST_ALIVE, WRONG_TRIES, PageCodes
from covey.server.page_files import POLICY, page_files
from covey.server.page_sessions import LIFE_S, REVOKED, PageSessions
from covey.server.pages import Pages
from tests.server.site import CLIENT, Answer, Site, Watcher, serving

MASTER = "the-master-token-of-this-server"
OWN = {"host": "127.0.0.1:4000", "origin": "http://127.0.0.1:4000"}


class Clock:
    def __init__(self) -> None:
        self.now = 1_794_850_000.0

    def __call__(self) -> float:
        return self.now


async def here() -> Address:
    return Address(host="127.0.0.1", port=4000)


@asynccontextmanager
async def letting_in(directory: Path, clock: Clock | None = None) -> AsyncIterator[Site]:
    pages = Pages(directory, master=MASTER, now=clock or Clock())
    pages.listen = here
    async with serving(directory, Access(MASTER, hosts(["box.example"]), pages)) as site:
        yield site


def bearer(token: str, **more: str) -> dict[str, str]:
    return {**OWN, "authorization": f"Bearer {token}", **more}


async def code_of(site: Site) -> str:
    answer = await site.request("POST", "/v1/web/codes", {"workspace_id": "w1"}, headers=bearer(MASTER))
    assert answer.status == 200
    return str(answer.value["code"])


async def redeem(site: Site, code: str, **headers: str) -> Answer:
    return await site.request(
        "POST", "/v1/web/sessions", {"code": code, "name": "Firefox\n on\x1b Linux"}, headers={**OWN, **headers}
    )


async def token_of(site: Site) -> tuple[str, str]:
    """The token of a new page, and its id."""
    value = (await redeem(site, await code_of(site))).value
    return value["token"], value["id"]


@pytest.mark.anyio
async def test_a_code_buys_one_token_once(tmp_path: Path) -> None:
    async with letting_in(tmp_path) as site:
        code = await code_of(site)
        first, second = await redeem(site, code), await redeem(site, code)
        assert (first.status, first.value["workspace_id"]) == (200, "w1")
        assert (second.status, second.code) == (401, "code_refused")
        assert "covey web" in second.value["message"]


@pytest.mark.anyio
async def test_of_a_hundred_that_redeem_one_code_at_once_one_gets_in(tmp_path: Path) -> None:
    async with letting_in(tmp_path) as site:
        code = await code_of(site)
        answers = await asyncio.gather(*(redeem(site, code) for _ in range(9)))
        assert sorted(answer.status for answer in answers) == [200, *[401] * 8]


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"origin": "http://127.0.0.1:5000"}, "forbidden_origin"),
        ({"origin": "http://evil.example"}, "forbidden_origin"),
        ({"origin": "null"}, "forbidden_origin"),
        ({"origin": "https://127.0.0.1:4000"}, "forbidden_origin"),
        ({"host": "evil.example", "origin": "http://evil.example"}, "forbidden_host"),
        ({"host": "box.example", "origin": "https://other.example"}, "forbidden_origin"),
    ],
)
@pytest.mark.anyio
async def test_only_our_own_page_can_redeem_a_code(tmp_path: Path, headers: dict[str, str], code: str) -> None:
    async with letting_in(tmp_path) as site:
        answer = await redeem(site, await code_of(site), **headers)
        assert (answer.status, answer.code) == (403, code)


@pytest.mark.anyio
async def test_a_code_without_an_origin_is_not_redeemed(tmp_path: Path) -> None:
    async with letting_in(tmp_path) as site:
        code = await code_of(site)
        answer = await site.request("POST", "/v1/web/sessions", {"code": code}, headers={"host": "127.0.0.1:4000"})
        assert answer.code == "forbidden_origin"


@pytest.mark.anyio
async def test_behind_a_proxy_https_of_a_configured_name_is_our_own_page(tmp_path: Path) -> None:
    async with letting_in(tmp_path) as site:
        answer = await redeem(site, await code_of(site), host="box.example", origin="https://box.example")
        assert answer.status == 200
        token = answer.value["token"]
        posted = bearer(token, host="box.example", origin="https://box.example")
        assert (await site.request("POST", "/v1/web/sign-out", headers=posted)).status == 200


@pytest.mark.anyio
async def test_a_page_may_do_everything_but_administer(tmp_path: Path) -> None:
    async with letting_in(tmp_path) as site:
        workspace = await site.workspace()
        token, page_id = await token_of(site)
        session = (
            await site.request("POST", f"/v1/workspaces/{workspace.id}/sessions", {}, headers=bearer(token))
        ).value
        skip = f"/v1/workspaces/{workspace.id}/permissions/skip"
        assert (await site.request("POST", skip, {"skip": False}, headers=bearer(token))).status == 200
        for method, path, body in [
            ("POST", "/v1/control", {"command": "shutdown"}),
            ("POST", "/v1/web/codes", {}),
            ("GET", "/v1/web/sessions", None),
            ("DELETE", f"/v1/web/sessions/{page_id}", None),
            ("POST", f"/v1/workspaces/{workspace.id}/agent/sessions/{session['id']}/shell", {"command": "true"}),
        ]:
            answer = await site.request(method, path, body, headers=bearer(token))
            assert (answer.status, answer.code) == (403, "may_not_administer"), path
        assert not site.stopped


@pytest.mark.anyio
async def test_a_page_that_is_put_out_loses_its_streams_and_is_told_why(tmp_path: Path) -> None:
    async with letting_in(tmp_path) as site:
        workspace = await site.workspace()
        token, page_id = await token_of(site)
        events = Watcher(site, f"/v1/workspaces/{workspace.id}/events?client_id={CLIENT}", bearer(token))
        activity = Watcher(site, "/v1/activity", bearer(token))
        await events.until(lambda: events.status)
        await activity.until(lambda: activity.status)
        listed = (await site.request("GET", "/v1/web/sessions", headers=bearer(MASTER))).value
        assert [(page["id"], page["name"], page["is_open"]) for page in listed] == [(page_id, "Firefox on Linux", True)]
        assert token not in json.dumps(listed)
        revoked = await site.request("DELETE", f"/v1/web/sessions/{page_id}", headers=bearer(MASTER))
        assert revoked.status == 200
        await events.until_end()
        await activity.until_end()
        answer = await site.request("GET", "/v1/version", headers=bearer(token))
        assert (answer.status, answer.code) == (401, "signed_out")
        again = await site.request("DELETE", f"/v1/web/sessions/{page_id}", headers=bearer(MASTER))
        assert (again.status, again.code) == (404, "page_not_found")


@pytest.mark.anyio
async def test_the_listener_for_pages_takes_no_other_token(tmp_path: Path) -> None:
    async with letting_in(tmp_path) as site:
        token, _ = await token_of(site)
        gate = Gate(site.app, Access(pages_only=True, pages=site.app.pages))
        plain, site.app = site.app, gate  # type: ignore[assignment]
        try:
            assert (await site.request("GET", "/v1/version", headers=bearer(token))).status == 200
            for other in (MASTER, "", "x" * 43):
                assert (await site.request("GET", "/v1/version", headers=bearer(other))).status == 401
            assert (await site.request("GET", "/v1/version", headers={"host": "evil.example"})).code == "forbidden_host"
        finally:
            site.app = plain


@pytest.mark.anyio
async def test_the_page_needs_no_token_and_can_run_nothing_foreign(tmp_path: Path) -> None:
    async with letting_in(tmp_path) as site:
        index = await site.request("GET", "/", headers={"host": "localhost"})
        assert (index.status, index.headers["cache-control"]) == (200, "no-cache")
        assert index.headers["content-security-policy"] == POLICY
        assert "'unsafe" not in POLICY and "*" not in POLICY and "require-trusted-types-for 'script'" in POLICY
        hashed = page_files().hash
        assert f"web/{hashed}/js/main.js".encode() in index.body
        file = await site.request("GET", f"/web/{hashed}/js/main.js", headers={"host": "localhost"})
        assert (file.status, "immutable" in file.headers["cache-control"]) == (200, True)
        assert file.headers["content-type"].startswith("text/javascript")
        for name in ("js/nothing.js", "../server/app.py", "vendor/markdown-it.LICENSE", "js/../index.html", ""):
            assert (await site.request("GET", f"/web/{hashed}/{name}", headers={"host": "localhost"})).status == 404
        assert (await site.request("GET", "/", headers={"host": "evil.example"})).code == "forbidden_host"


@pytest.mark.anyio
async def test_no_answer_with_data_is_kept_by_a_browser(tmp_path: Path) -> None:
    async with letting_in(tmp_path) as site:
        for path in ("/v1/version", "/v1/workspaces", "/nothing"):
            answer = await site.request("GET", path, headers=bearer(MASTER))
            assert (answer.headers["cache-control"], answer.headers["x-content-type-options"]) == (
                "no-store",
                "nosniff",
            )


def test_codes_die_of_age_of_number_and_of_guesses() -> None:
    clock = Clock()
    codes = PageCodes(clock)
    old = codes.make("")
    clock.now += CODE_S
    assert codes.redeem(old) is None
    many = [codes.make(str(n)) for n in range(MOST_ALIVE + 1)]
    assert codes.redeem(many[0]) is None
    assert codes.redeem(many[1]) == "1"
    for _ in range(WRONG_TRIES):
        codes.redeem("wrong")
    assert codes.redeem(many[2]) is None


def test_pages_outlive_the_server_and_their_tokens_are_not_on_disk(tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path / "web.json"
    page, token = PageSessions(path, clock, MASTER).add("phone")
    again = PageSessions(path, clock, MASTER)
    assert again.find(token) == page.id
    assert token not in path.read_text() and path.stat().st_mode & 0o777 == 0o600
    assert PageSessions(path, clock, "another master token").find(token) is None
    again.revoke(page.id)
    assert PageSessions(path, clock, MASTER).find(token) == REVOKED


def test_a_page_expires_a_month_after_its_last_use(tmp_path: Path) -> None:
    clock = Clock()
    pages = PageSessions(tmp_path / "web.json", clock)
    page, token = pages.add("phone")
    clock.now += LIFE_S - 1
    assert pages.find(token) == page.id
    clock.now += LIFE_S - 1
    assert pages.find(token) == page.id
    clock.now += LIFE_S
    assert pages.find(token) is None and not pages.any


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"pages": 3}', b"\xff" * 10])
def test_a_file_that_cannot_be_read_lets_nobody_in(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "web.json"
    path.write_bytes(content)
    assert not PageSessions(path, Clock()).any
