"""Routes by which pages in browsers are let in, listed and put out."""

from __future__ import annotations

from covey.protocol.errors import NotFound
from covey.protocol.web import MakeCode, PageAccess, PageSession, RedeemCode, WebCode
from covey.server.endpoint import Call, Endpoint


async def make_code(call: Call, body: MakeCode | None) -> WebCode:
    return await call.pages.code(body.workspace_id if body else "")


async def redeem_code(call: Call, body: RedeemCode) -> PageAccess:
    return call.pages.redeem(body.code, body.name)


async def list_pages(call: Call, _body: None) -> list[PageSession]:
    here = {stream.page for stream in call.streams}
    return call.pages.sessions.listed(lambda page: page in here)


async def revoke_page(call: Call, _body: None) -> None:
    page_id = call.path["page_id"]
    is_known = call.pages.sessions.revoke(page_id)
    call.pages.forget(page_id)
    for stream in list(call.streams):  # of a cluster: also one that another node has let in
        if stream.page == page_id:
            stream.abort()
    if not is_known:
        raise NotFound(f"there is no page {page_id!r}; `covey web --sessions` lists them", "page_not_found")


async def sign_out(call: Call, _body: None) -> None:
    """The page that asks puts itself out; for the socket and the master token there is nothing to do."""
    if call.page:
        call.path["page_id"] = call.page
        await revoke_page(call, None)


ENDPOINTS = (
    Endpoint(
        "POST", "/v1/web/codes", make_code, "A code that lets one page in, once, within a minute.",
        MakeCode, WebCode, optional_body=True, needs="admin",
    ),
    Endpoint(
        "POST", "/v1/web/sessions", redeem_code,
        "Redeem a code for a token of the page's own. Without a token, but only from the server's own page.",
        RedeemCode, PageAccess,
    ),
    Endpoint(
        "GET", "/v1/web/sessions", list_pages, "The pages that may come in, the last used first.",
        answer=list[PageSession], needs="admin",
    ),
    Endpoint(
        "DELETE", "/v1/web/sessions/{page_id}", revoke_page, "Put a page out: its streams end, its token is void.",
        needs="admin",
    ),
    Endpoint("POST", "/v1/web/sign-out", sign_out, "The page that asks puts itself out."),
)  # fmt: skip
