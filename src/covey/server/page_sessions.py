"""Pages that may come in: their tokens, hashed, in a file for this user alone. They outlive the server."""

from __future__ import annotations

import hashlib
import logging
import secrets
from collections.abc import Callable
from pathlib import Path

import msgspec

from covey.machine.regular import NotRegular, open_regular
from covey.machine.replace import replace_file
from covey.protocol.web import PageSession
from covey.protocol.who import bounded_name

log = logging.getLogger(__name__)

TOKEN_BYTES = 32
LIFE_S = 30 * 24 * 3600
"""From its last use on: a page that nobody opens for a month has to be let in again."""
NOTED_S = 600
"""How exactly the last use is kept on disk: not each request is worth a write."""
MOST = 100
"""Pages at once; of more, the one that was used longest ago goes."""
GONE_KEPT = 100
"""Revoked ones that are remembered, so that such a page can be told why it is out."""
MAX_BYTES = 1024 * 1024
REVOKED = "revoked"


class _Page(msgspec.Struct):
    id: str
    name: str
    hash: str
    created_at: int
    used_at: int
    bound_to: str = ""
    """Of a server with a master token: its hash, since the page dies with it."""
    is_revoked: bool = False


class _File(msgspec.Struct):
    port: int = 0
    pages: list[_Page] = []


class PageSessions:
    """All pages of one data directory, and the port at which the server was last open to them."""

    def __init__(self, path: Path | None, now: Callable[[], float], master: str = "") -> None:
        self._path = path
        self._now = now
        self._bound_to = _hash(master) if master else ""
        self._file = _read(path) if path else _File()
        self._noted_at = now()

    @property
    def port(self) -> int:
        return self._file.port

    def keep_port(self, port: int) -> None:
        """A page at another port is another origin: it would be signed out, with its drafts gone."""
        if port != self._file.port:
            self._file.port = port
            self._write()

    @property
    def any(self) -> bool:
        """Whether some page may come in."""
        return bool(self._living())

    def listed(self, is_open: Callable[[str], bool]) -> list[PageSession]:
        """The last used first."""
        pages = sorted(self._living(), key=lambda page: page.used_at, reverse=True)
        return [_shown(page, is_open=is_open(page.id)) for page in pages]

    def add(self, name: str, prefix: str = "") -> tuple[PageSession, str]:
        """A new page and its token, which is not kept."""
        token, now = prefix + secrets.token_urlsafe(TOKEN_BYTES), int(self._now())
        page = _Page(secrets.token_hex(4), bounded_name(name) or "a page", _hash(token), now, now, self._bound_to)
        kept = sorted(self._living(), key=lambda each: each.used_at)[-(MOST - 1) :]
        self._keep([*kept, page])
        return _shown(page, is_open=False), token

    def find(self, token: str) -> str | None:
        """The id of the page with this token; `REVOKED`; None: there is none."""
        return self.find_hash(_hash(token))

    def find_hash(self, given: str) -> str | None:
        """The same by the SHA-256 of a token, which is all that a node tells another one."""
        page = next((page for page in self._file.pages if secrets.compare_digest(page.hash, given)), None)
        if page is None or (not page.is_revoked and not self._is_alive(page)):
            return None
        if page.is_revoked:
            return REVOKED
        page.used_at = int(self._now())
        if page.used_at - self._noted_at > NOTED_S:
            self._write()
        return page.id

    def revoke(self, page_id: str) -> bool:
        """Whether there was such a page."""
        for page in self._living():
            if page.id == page_id:
                page.is_revoked = True
                self._keep(self._living())
                return True
        return False

    def _living(self) -> list[_Page]:
        return [page for page in self._file.pages if not page.is_revoked and self._is_alive(page)]

    def _is_alive(self, page: _Page) -> bool:
        return page.bound_to == self._bound_to and page.used_at + LIFE_S > self._now()

    def _keep(self, living: list[_Page]) -> None:
        """What belongs to another master token stays too: the server may be started with that one again."""
        now = self._now()
        others = [
            page
            for page in self._file.pages
            if page.bound_to != self._bound_to and not page.is_revoked and page.used_at + LIFE_S > now
        ]
        gone = [page for page in self._file.pages if page.is_revoked][-GONE_KEPT:]
        self._file.pages = [*gone, *others[-MOST:], *living]
        self._write()

    def _write(self) -> None:
        self._noted_at = self._now()
        if self._path is None:
            return
        try:
            replace_file(self._path, msgspec.json.encode(self._file), mode=0o600, keep_mode=False)
        except OSError as error:
            log.warning("pages that may come in could not be noted in %s: %s", self._path, error.strerror)


def _hash(token: str) -> str:
    """Without salt: what is hashed is random, and as long as the hash."""
    return hashlib.sha256(token.encode()).hexdigest()


def _shown(page: _Page, *, is_open: bool) -> PageSession:
    return PageSession(
        id=page.id,
        name=page.name,
        created_at=page.created_at,
        used_at=page.used_at,
        expires_at=page.used_at + LIFE_S,
        is_open=is_open,
    )


def _read(path: Path) -> _File:
    """What cannot be read lets nobody in."""
    try:
        with open_regular(path) as (file, _):
            return msgspec.json.decode(file.read(MAX_BYTES), type=_File)
    except FileNotFoundError:
        return _File()
    except (OSError, NotRegular, msgspec.MsgspecError) as error:
        log.warning("%s cannot be read, so every page has to be let in again: %s", path, error)
        return _File()
