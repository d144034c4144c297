"""Pages in browsers: how they are let in, where they find the server, and how they are put out again."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from covey.protocol.errors import Conflict, Unauthorized
from covey.protocol.paths import Address
from covey.protocol.web import PageAccess, WebCode
from covey.server.page_codes import CODE_S, PageCodes
from covey.server.page_sessions import MOST, REVOKED, PageSessions

AT = "~"
"""Between the name of a node and what it has given out."""

Listen = Callable[[], Awaitable[Address]]
"""Sees to it that the server listens where browsers can reach it, and says where."""


class Pages:
    """All that is known of pages. `listen` is None where no browser can come: in the process of a program."""

    def __init__(self, data_dir: Path | None, *, master: str = "", now: Callable[[], float] = time.time) -> None:
        self.sessions = PageSessions(data_dir / "web.json" if data_dir else None, now, master)
        self.codes = PageCodes(now)
        self.node = ""
        """Of a cluster: its name begins codes and tokens, so that other nodes know whom to ask about them."""
        self._elsewhere: dict[str, tuple[str, float]] = {}
        """Pages that other nodes have let in, by their token: which one, and until when that is believed."""
        self._now = now
        self.listen: Listen | None = None
        self.allowed_hosts: tuple[str, ...] = ()

    async def code(self, workspace_id: str) -> WebCode:
        if self.listen is None:
            raise Conflict("no browser can reach this server: it runs inside of a program", "conflict")
        address = await self.listen()
        return WebCode(
            code=self._ours(self.codes.make(workspace_id)),
            url=f"{_reachable(address).url}/",
            other_urls=tuple(f"https://{name}/" for name in self.allowed_hosts),
            expires_in=CODE_S,
        )

    def redeem(self, code: str, name: str) -> PageAccess:
        workspace_id = self.codes.redeem(self._bare(code))
        if workspace_id is None:
            raise Unauthorized(
                "this code was used already, is older than a minute, or was never given: run `covey web` again. "
                "If you have not used it yourself, somebody else has: see `covey web --sessions`",
                "code_refused",
            )
        page, token = self.sessions.add(name, f"{self.node}{AT}" if self.node else "")
        return PageAccess(token=token, id=page.id, expires_at=page.expires_at, workspace_id=workspace_id)

    def check(self, token: str) -> str | None:
        """The page with this token; None: nobody has it. Raises for one that was put out."""
        if self.is_known(token):
            return self._elsewhere[token][0]
        found = self.sessions.find(token)
        if found == REVOKED:
            raise Unauthorized("this page was signed out; run `covey web` to let it in again", "signed_out")
        return found

    # ── in a cluster ──

    def is_known(self, token: str) -> bool:
        """Whether another node has said of this token, not long ago, whose it is."""
        return bool(self._elsewhere) and self._elsewhere.get(token, ("", 0.0))[1] > self._now()

    def learn(self, token: str, page_id: str | None, seconds: float) -> None:
        """What another node says of a token that it has given out; None: it lets nobody in."""
        self._elsewhere.pop(token, None)
        if page_id:
            self._elsewhere[token] = (page_id, self._now() + seconds)
        if len(self._elsewhere) > MOST:
            del self._elsewhere[next(iter(self._elsewhere))]

    def forget(self, page_id: str) -> None:
        """A page was put out."""
        for token in [token for token, (known, _) in self._elsewhere.items() if known == page_id]:
            del self._elsewhere[token]

    def _ours(self, code: str) -> str:
        return f"{self.node}{AT}{code}" if self.node else code

    def _bare(self, code: str) -> str:
        return code.removeprefix(f"{self.node}{AT}") if self.node else code


def _reachable(address: Address) -> Address:
    """A server that listens everywhere is reached here all the same."""
    everywhere = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - it is looked for, not bound
    return Address(host=everywhere.get(address.host, address.host), port=address.port)
