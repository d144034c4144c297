"""OpenRouter's login in a browser (OAuth with PKCE), which it documents for programs like this one.

The user agrees on its page, the browser comes back to a page of ours on this machine with a code, and the code becomes
a key. The code is worth nothing to anybody else: the key is given only to who has the verifier, which never leaves this
process but for that request. https://openrouter.ai/docs/use-cases/oauth-pkce
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
import subprocess
import sys
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import msgspec

from covey.config.schema import ProviderSettings
from covey.credentials.accounts import CredentialsError, checked_key
from covey.credentials.browser_answer import MAX_HEAD, answer_browser
from covey.credentials.command import own_environment
from covey.machine.programs import find_program
from covey.models.http import ProviderEndpoint, ProviderHttpFailed, open_http
from covey.models.trouble import error_text_of_body

AGREE_S = 600.0
"""How long the user may take to log in and agree."""
MAX_ANSWER = 64 * 1024
EXCHANGE_S = 20.0


class _Key(msgspec.Struct):
    key: str


class Callback:
    """One login under way: the page to which the browser comes back, and the code that it brings."""

    def __init__(self, provider: ProviderSettings) -> None:
        self._base_url = provider.base_url.rstrip("/")
        self._verifier = secrets.token_urlsafe(32)
        self._path = f"/callback/{secrets.token_urlsafe(16)}"
        """Nobody can guess it: another page cannot bring us a code of its own."""
        self._port = 0
        self._code: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    @property
    def address(self) -> str:
        """Where the user agrees."""
        digest = hashlib.sha256(self._verifier.encode()).digest()
        query = {
            "callback_url": f"http://localhost:{self._port}{self._path}",
            "code_challenge": urlsafe_b64encode(digest).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
        }
        parts = urlsplit(self._base_url)
        return f"{parts.scheme}://{parts.netloc}/auth?{urlencode(query)}"

    async def key(self) -> str:
        """The key, once the user has agreed. Raises CredentialsError."""
        try:
            async with asyncio.timeout(AGREE_S):
                code = await self._code
        except TimeoutError:
            raise CredentialsError(f"nobody agreed within {AGREE_S / 60:g} minutes") from None
        return await self._exchange(code)

    async def _exchange(self, code: str) -> str:
        wanted = {"code": code, "code_verifier": self._verifier, "code_challenge_method": "S256"}
        headers = {"content-type": "application/json", "accept": "application/json", "accept-encoding": "identity"}
        http = open_http(ProviderEndpoint(self._base_url, headers, EXCHANGE_S, EXCHANGE_S))
        try:
            answer = await http.post(msgspec.json.encode(wanted), "/auth/keys")
            body = b""
            while len(body) <= MAX_ANSWER and (piece := await answer.read()):
                body += piece
            await answer.close()
        except ProviderHttpFailed as failure:
            raise CredentialsError(f"the server {failure}") from None
        finally:
            await http.aclose()
        if answer.status != 200:
            said = error_text_of_body(body).replace(self._verifier, "***").replace(code, "***")
            raise CredentialsError(f"the server gave no key ({answer.status}): {said or 'it gave no reason'}")
        try:
            return checked_key(msgspec.json.decode(body, type=_Key).key)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise CredentialsError("the server answered with something that is no key") from None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request of a browser."""
        await answer_browser(reader, writer, self._answer)

    def _answer(self, asked: str) -> tuple[str, str]:
        """What the browser gets to see."""
        target = urlsplit(asked)
        if target.path != self._path:
            return "404 Not Found", "There is nothing here."
        query = parse_qs(target.query)
        if self._code.done():
            return "200 OK", "This was done already. You can close this page."
        if code := query.get("code", [""])[0]:
            self._code.set_result(code)
            return "200 OK", "Covey has what it needs. You can close this page and go back to your terminal."
        self._code.set_exception(CredentialsError("the login was not agreed to"))
        return "200 OK", "Nothing was agreed to. You can close this page."

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """On this machine only, on a port that is free."""
        server = await asyncio.start_server(self.serve, "127.0.0.1", 0, limit=MAX_HEAD)
        async with server:
            self._port = server.sockets[0].getsockname()[1]
            yield


@asynccontextmanager
async def browser_login(provider: ProviderSettings) -> AsyncIterator[Callback]:
    """A login that waits for the browser: show its `address` to the user, then wait for its `key`."""
    callback = Callback(provider)
    async with callback.listening():
        yield callback


def show_in_browser(address: str, environ: Mapping[str, str], project: Path) -> None:
    """Open the page, if a program for that is found outside of the project. Whether it did is for the user to see."""
    name = "open" if sys.platform == "darwin" else "xdg-open"
    program = find_program(name, environ.get("PATH", os.defpath), project)
    if program:
        with suppress(OSError):
            subprocess.Popen(  # noqa: S603 - a program of this machine, with an address of ours
                [program, address],
                cwd="/",
                env=own_environment(environ),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
