"""What every wire format does in the same way: ask, repeat what may be repeated, read, and say what went wrong.

A format is a `WireClient` that fills in where to (`_path`), who asks (`_auth_headers`), what goes out (`_encode`), what
comes back (`_decoder`), and, where its errors differ from the usual, what they mean (`_judge`). The network is `http`.
Texts are for people, and keys are kept out of them.
"""

from __future__ import annotations

import asyncio
import random
import re
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import unquote, unquote_plus, urlsplit

import msgspec

from covey import __version__
from covey.config.schema import ProviderSettings
from covey.lifecycle.reply import ModelFact, UsageReported
from covey.models.base import ModelFailed, ModelRequest, Retry
from covey.models.http import ProviderEndpoint, ProviderHttpFailed, ProviderResponse, ProviderSilent, open_http
from covey.models.lessons import lessons_of
from covey.models.retry import delay_before_retry, retry_after_of
from covey.models.trouble import NOT_AN_API, AnswerBroken, Trouble, error_text_of_body, judge

AFTER_FINISH_S = 5.0
"""How long to wait for the token counts once the answer itself is whole: they are not worth more."""
MAX_ERROR_BYTES = 64 * 1024
"""As much of an error is read: the sentence that matters comes first."""
NOBODY_ATTEMPTS = 2
"""Where nobody listens, or the name is not known: once more, for a server that is just restarting."""
MAX_CHANGES = 4
"""There are fewer things to learn; a server that always finds another fault is not asked for ever."""
MIN_SECRET = 8
"""Shorter words in headers are no keys, and hiding them would only garble the text."""


class AnswerDecoder(Protocol):
    """One answer, as far as it has come; `sse.SseAnswer` is the base of ours."""

    done: bool
    """Nothing that follows can matter: call `end`."""
    finished: bool
    """Everything but the usage and the end mark is here."""

    def feed(self, data: bytes) -> list[ModelFact]:
        """The facts that `data` completes. Raises nothing: words before a break count, and `end` reports it."""
        ...

    def end(self) -> list[ModelFact]:
        """The last facts, of which the very last one is `Stopped`; raises AnswerBroken if there is no usable end."""
        ...


@dataclass
class _Attempts:
    """The attempts for one request: how many there were, and what is sent next."""

    request: ModelRequest
    path: str
    body: bytes
    count: int = 0
    changes: int = 0
    """How often a refusal was taken as advice."""


class WireClient(ABC):
    """One provider that is asked by POST and answers in a stream."""

    default_base_url = ""
    """Where the provider is, unless the settings say otherwise; empty: they must."""
    key_check_path = "/models"
    """What can be asked for nothing, and by those alone who have a key."""
    optional_fields: Mapping[str, bytes] = {}
    """Fields of a body that some models refuse (`a.b` for one inside another), and the pattern of such a refusal.

    The request is repeated without the field, and so is every later one for that model.
    """

    def __init__(self, provider_id: str, settings: ProviderSettings) -> None:
        self._provider_id = provider_id
        self._settings = settings
        self._lessons = lessons_of(type(self).__name__, provider_id, settings.base_url)
        endpoint = ProviderEndpoint(
            url=self._address(),
            headers=self._headers(),
            connect_timeout_s=settings.connect_timeout_s,
            idle_timeout_s=settings.idle_timeout_s,
        )
        try:
            self._http = open_http(endpoint)
        except ProviderHttpFailed as failure:
            raise self._failed(f"the model server {failure}") from None

    # What a format fills in.

    @abstractmethod
    def _path(self, request: ModelRequest) -> str:
        """What is appended to the path of base_url, such as "/chat/completions"; may end with a query."""

    @abstractmethod
    def _encode(self, request: ModelRequest) -> bytes:
        """The body of the request."""

    @abstractmethod
    def _decoder(self, request: ModelRequest) -> AnswerDecoder:
        """What will read the answer."""

    def _auth_headers(self) -> dict[str, str]:
        """How the key is shown, and what else every request carries. The headers of the settings come on top."""
        return {"authorization": f"Bearer {self._api_key}"} if self._api_key else {}

    def _judge(self, status: int, body: bytes) -> Trouble:
        """What a refused request means."""
        return judge(status, body)

    def _retry_after(self, body: bytes) -> float | None:
        """How many seconds a refusal asks to wait, where no header says it."""
        return None

    def _learn(self, model: str, error: bytes) -> None:
        """What a refusal teaches about a model: the request is built again, and sent at once if it differs."""
        refused = {field for field, pattern in self.optional_fields.items() if re.search(pattern, error)}
        self._lessons.refused.setdefault(model, set()).update(refused)

    # What is the same for all.

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelFact, None]:
        attempts = _Attempts(request, self._checked_path(request), self._body(request))
        seen = False
        while True:
            answer = await self._ask(attempts)
            decoder = self._decoder(request)
            try:
                request.on_connected()
                while not decoder.done and (data := await self._read(answer, decoder)):
                    self._trace(request, "answer", data)
                    for fact in decoder.feed(data):
                        seen = seen or not isinstance(fact, UsageReported)
                        yield fact
                last_facts = decoder.end()
                await answer.finish()
                break
            except ProviderHttpFailed as failure:
                trouble = Trouble.SILENT if isinstance(failure, ProviderSilent) else Trouble.CUT
                raise self._failed(f"the model server {failure}", trouble, seen=seen) from None
            except AnswerBroken as broken:
                if seen or broken.trouble is not Trouble.BUSY:
                    raise self._failed(f"the model server {broken}", broken.trouble, seen=seen) from None
                error = f"the model server {broken}"
            finally:
                await answer.close()
            await self._wait(attempts, error, Trouble.BUSY, None, self._settings.max_attempts)  # too busy for a word
        for fact in last_facts:
            yield fact  # here the connection is free already, however long the reader takes

    async def check_key(self) -> None:
        """One cheap request; raises ModelFailed, with `auth` if the key was refused. It is not repeated."""
        try:
            answer = await self._http.get(self.key_check_path)
            if 200 <= answer.status < 300:
                await answer.close()
                return
            body = await self._read_error(answer)
        except ProviderHttpFailed as failure:
            raise self._failed(f"the model server {failure}", Trouble.BUSY) from None
        trouble = self._judge(answer.status, body)
        raise self._failed(self._refusal(answer, body, trouble), trouble)

    async def aclose(self) -> None:
        await self._http.aclose()

    @property
    def _api_key(self) -> str:
        return self._settings.api_key.strip()

    async def _read(self, answer: ProviderResponse, decoder: AnswerDecoder) -> bytes:
        if not decoder.finished:
            return await answer.read()
        try:
            async with asyncio.timeout(AFTER_FINISH_S):
                return await answer.read()
        except (TimeoutError, ProviderHttpFailed):
            return b""

    async def _ask(self, attempts: _Attempts) -> ProviderResponse:
        """The answer as soon as it begins; repeats the request while that can help."""
        while True:
            attempts.count += 1
            retry_after, most = None, self._settings.max_attempts
            self._trace(attempts.request, f"request to {self._provider_id}: POST {attempts.path}", attempts.body)
            try:
                answer = await self._http.post(attempts.body, attempts.path)
                if 200 <= answer.status < 300:
                    return answer
                body = await self._read_error(answer)
                self._trace(attempts.request, f"answer {answer.status}", body)
                retry_after = retry_after_of(answer.headers, time.time())
                if retry_after is None:
                    retry_after = self._retry_after(body)
                trouble = self._judge(answer.status, body)
                if trouble is Trouble.REFUSED and self._has_changed(attempts, body):
                    continue
                error = self._refusal(answer, body, trouble)
            except ProviderHttpFailed as failure:
                trouble = Trouble.SILENT if isinstance(failure, ProviderSilent) else Trouble.BUSY
                error = f"the model server {failure}"
                if not failure.retry:
                    raise self._failed(error, trouble) from None
                if failure.nobody:
                    most = min(most, NOBODY_ATTEMPTS)
            await self._wait(attempts, error, trouble, retry_after, most)

    def _body(self, request: ModelRequest) -> bytes:
        body = self._encode(request)
        for field in self._lessons.refused.get(request.model, ()):
            body = without(body, field) or body
        return body

    def _has_changed(self, attempts: _Attempts, error: bytes) -> bool:
        """Whether the refusal taught something by which the body differs now."""
        self._learn(attempts.request.model, error)
        body = self._body(attempts.request)
        if body == attempts.body or attempts.changes == MAX_CHANGES:
            return False
        attempts.body = body
        attempts.changes += 1
        attempts.count -= 1  # it was no trouble, only a question
        return True

    async def _wait(
        self, attempts: _Attempts, error: str, trouble: Trouble, retry_after: float | None, most: int
    ) -> None:
        """Until it is time for the next attempt; raises ModelFailed if there should be none."""
        delay = None
        if trouble is Trouble.BUSY:
            delay = delay_before_retry(attempts.count, most, retry_after=retry_after, jitter=random.random())
        if delay is None:
            tried = f" (tried {attempts.count} times)" if attempts.count > 1 else ""
            raise self._failed(error + tried, trouble)
        attempts.request.on_retry(Retry(attempts.count, delay, str(self._failed(error))))
        await asyncio.sleep(delay)

    async def _read_error(self, answer: ProviderResponse) -> bytes:
        body = b""
        try:
            async with asyncio.timeout(self._settings.connect_timeout_s):
                while len(body) < MAX_ERROR_BYTES and (data := await answer.read()):
                    body += data
                await answer.finish()
        except (TimeoutError, ProviderHttpFailed):
            pass  # the status says enough
        finally:
            await answer.close()
        return body

    def _refusal(self, answer: ProviderResponse, body: bytes, trouble: Trouble) -> str:
        status, reason = answer.status, error_text_of_body(body) or "it gave no reason"
        if reason == NOT_AN_API and status >= 500:
            reason = "a web page without a reason"  # from a gateway, which says nothing about the API behind it
        elif reason == NOT_AN_API:
            return f"the model server {reason} (status {status})"
        if trouble is Trouble.AUTH:
            what = "the API key" if self._api_key else "a request without an API key"
            advice = f"Set api_key for the provider {self._provider_id!r} in the configuration, or use `covey login`; "
            advice += "`covey models` says where the key comes from now."
            return f"the model server refused {what} ({status}): {reason.rstrip('.')}. {advice}"
        if target := answer.headers.get("location"):
            return f"the model server moved ({status}): put its new address, {target}, into base_url"
        return f"the model server answered {status}: {reason}"

    def _failed(self, text: str, trouble: Trouble | None = None, *, seen: bool = False) -> ModelFailed:
        return ModelFailed(
            f"{self._provider_id}: {self._without_secrets(text)}",
            auth=trouble is Trouble.AUTH,
            overflow=trouble is Trouble.OVERFLOW,
            busy=trouble in (Trouble.BUSY, Trouble.SPENT, Trouble.CUT, Trouble.SILENT) and not seen,
            broken=trouble in (Trouble.CUT, Trouble.SILENT) or (trouble is Trouble.BUSY and seen),
            silent=trouble is Trouble.SILENT,
        )

    def _trace(self, request: ModelRequest, what: str, data: bytes) -> None:
        if request.trace:
            request.trace(what, self._without_secrets(data.decode("utf-8", "replace")))

    def _without_secrets(self, text: str) -> str:
        """Servers like to quote the key that they refuse, and the address. Headers and queries may hold keys too."""
        words = [word for value in self._settings.headers.values() for word in value.split() if len(word) >= MIN_SECRET]
        for secret in (self._api_key, *words, *secrets_of_query(self._settings.base_url)):
            if secret:
                text = text.replace(secret, "***")
        return text

    def _headers(self) -> dict[str, str]:
        headers = {
            "content-type": "application/json",
            "accept": "text/event-stream",
            "accept-encoding": "identity",
            "user-agent": f"covey/{__version__}",
        }
        headers |= self._auth_headers()
        headers |= {name.lower(): value for name, value in self._settings.headers.items()}
        for name, value in headers.items():
            if not all(" " <= character <= "~" for character in name + value):
                raise self._failed(f"the header {name!r} or the api_key has characters that cannot be sent")
        return headers

    def _address(self) -> str:
        base_url = self._settings.base_url or self.default_base_url
        parts = urlsplit(base_url)
        try:
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            usable = False
        if not usable or not _is_plain(base_url):
            raise self._failed('base_url must be an address, such as "http://127.0.0.1:8080/v1"')
        if parts.username is not None:
            raise self._failed("base_url must not hold a user or password: use api_key or headers")
        return parts._replace(path=parts.path.rstrip("/"), fragment="").geturl()

    def _checked_path(self, request: ModelRequest) -> str:
        path = self._path(request)
        if not _is_plain(path):
            raise self._failed(f"the name of the model, {request.model!r}, has characters that cannot be sent")
        return path


def without(body: bytes, field: str) -> bytes | None:
    """The JSON object `body` without the field, and without what that leaves empty; None if it has no such field."""
    value: dict[str, Any] = msgspec.json.decode(body)
    outer, _, inner = field.partition(".")
    if inner:
        inside = value.get(outer)
        if not isinstance(inside, dict) or inside.pop(inner, None) is None:
            return None
    if not inner or not value[outer]:
        if outer not in value:
            return None
        del value[outer]
    return msgspec.json.encode(value)


def secrets_of_query(url: str) -> list[str]:
    """What a quoted address must not show of its query: the whole of it, each entry, and values as they may be quoted.

    The version of an API is none: an error about it would be a riddle.
    """
    query = url.partition("?")[2].partition("#")[0]
    entries = [entry for entry in query.split("&") if "=" in entry and not entry.startswith("api-version=")]
    values = [value for entry in entries for value in _spellings(entry.partition("=")[2]) if len(value) >= MIN_SECRET]
    whole = [query] if entries or (query and "=" not in query) else []
    return sorted({*whole, *entries, *values}, key=len, reverse=True)


def _spellings(value: str) -> set[str]:
    return {value, unquote(value), unquote_plus(value)}


def _is_plain(text: str) -> bool:
    """Whether it can stand in the first line of a request without ending it."""
    return all("!" <= character <= "~" for character in text)
