"""Chat Completions with streaming, as OpenAI made it and as most other servers speak it.

What goes out is `chat_request`, what comes back is `chat_answer`, the network is `http`. This file joins them: it
repeats what may be repeated, says what went wrong in words for people, and keeps keys out of them.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

from covey import __version__
from covey.config.schema import ProviderSettings
from covey.lifecycle.reply import ModelFact
from covey.models.base import ModelFailed, ModelRequest, Retry
from covey.models.chat_answer import NOT_AN_API, AnswerBroken, ChatAnswer, error_text_of_body
from covey.models.chat_request import encode_request
from covey.models.http import Answer, Endpoint, HttpFailed, open_http
from covey.models.retry import delay_before_retry, parse_retry_after

AFTER_FINISH_S = 5.0
"""How long to wait for the token counts once the answer itself is whole: they are not worth more."""
MAX_ERROR_BYTES = 64 * 1024
"""As much of an error is read: the sentence that matters comes first."""
MIN_SECRET = 8
"""Shorter words in headers are no keys, and hiding them would only garble the text."""


class OpenAICompatible:
    """One provider that speaks Chat Completions."""

    def __init__(self, provider_id: str, settings: ProviderSettings) -> None:
        self._provider_id = provider_id
        self._settings = settings
        self._max_tokens_field = "max_completion_tokens" if settings.type == "openai" else "max_tokens"
        endpoint = Endpoint(
            url=self._address(),
            headers=self._headers(),
            connect_timeout_s=settings.connect_timeout_s,
            idle_timeout_s=settings.idle_timeout_s,
        )
        try:
            self._http = open_http(endpoint)
        except HttpFailed as failure:
            raise self._failed(f"the server {failure}") from None

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelFact]:
        answer = await self._ask(request)
        chat = ChatAnswer(call.id for message in request.messages for call in message.tool_calls)
        try:
            request.on_connected()
            while not chat.done and (data := await self._read(answer, chat)):
                for fact in chat.feed(data):
                    yield fact
            last_facts = chat.end()
            await answer.finish()
        except (HttpFailed, AnswerBroken) as failure:
            raise self._failed(f"the server {failure}") from None
        finally:
            await answer.close()
        for fact in last_facts:
            yield fact  # here the connection is free already, however long the reader takes

    async def aclose(self) -> None:
        await self._http.aclose()

    async def _read(self, answer: Answer, chat: ChatAnswer) -> bytes:
        if not chat.finished:
            return await answer.read()
        try:
            async with asyncio.timeout(AFTER_FINISH_S):
                return await answer.read()
        except (TimeoutError, HttpFailed):
            return b""

    async def _ask(self, request: ModelRequest) -> Answer:
        """The answer as soon as it begins; repeats the request while that can help."""
        body = encode_request(request, self._max_tokens_field)
        attempt = 0
        while True:
            attempt += 1
            status = retry_after = None
            try:
                answer = await self._http.post(body)
                if 200 <= answer.status < 300:
                    return answer
                status = answer.status
                retry_after = parse_retry_after(answer.headers.get("retry-after"), time.time())
                error = self._refusal(answer, await self._read_error(answer))
            except HttpFailed as failure:
                error = f"the server {failure}"
                if not failure.retry:
                    raise self._failed(error) from None
            delay = delay_before_retry(
                attempt,
                self._settings.max_attempts,
                status=status,
                retry_after=retry_after,
                jitter=random.random(),
            )
            if delay is None:
                tried = f" (tried {attempt} times)" if attempt > 1 else ""
                raise self._failed(error + tried, auth=status in (401, 403))
            request.on_retry(Retry(attempt, delay, str(self._failed(error))))
            await asyncio.sleep(delay)

    async def _read_error(self, answer: Answer) -> bytes:
        body = b""
        try:
            async with asyncio.timeout(self._settings.connect_timeout_s):
                while len(body) < MAX_ERROR_BYTES and (data := await answer.read()):
                    body += data
                await answer.finish()
        except (TimeoutError, HttpFailed):
            pass  # the status says enough
        finally:
            await answer.close()
        return body

    def _refusal(self, answer: Answer, body: bytes) -> str:
        status, told = answer.status, error_text_of_body(body) or "it gave no reason"
        if told == NOT_AN_API and status >= 500:
            told = "a web page without a reason"  # from a gateway, which says nothing about the API behind it
        elif told == NOT_AN_API:
            return f"the server {told} (status {status})"
        if status in (401, 403):
            what = "the API key" if self._settings.api_key else "a request without an API key"
            advice = f"Set api_key for the provider {self._provider_id!r} in the configuration."
            return f"the server refused {what} ({status}): {told}. {advice}"
        if target := answer.headers.get("location"):
            return f"the server moved ({status}): put its new address, {target}, into base_url"
        return f"the server answered {status}: {told}"

    def _failed(self, text: str, *, auth: bool = False) -> ModelFailed:
        return ModelFailed(f"{self._provider_id}: {self._without_secrets(text)}", auth=auth)

    def _without_secrets(self, text: str) -> str:
        """Servers like to quote the key that they refuse. Headers may hold keys too."""
        words = [word for value in self._settings.headers.values() for word in value.split() if len(word) >= MIN_SECRET]
        for secret in (self._settings.api_key.strip(), *words):
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
        if self._settings.api_key:
            headers["authorization"] = f"Bearer {self._settings.api_key.strip()}"
        headers |= {name.lower(): value for name, value in self._settings.headers.items()}
        for name, value in headers.items():
            if not all(" " <= character <= "~" for character in name + value):
                raise self._failed(f"the header {name!r} or the api_key has characters that cannot be sent")
        return headers

    def _address(self) -> str:
        base_url = self._settings.base_url
        parts = urlsplit(base_url)
        try:
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            usable = False
        if not usable or not all("!" <= character <= "~" for character in base_url):
            raise self._failed('base_url must be an address, such as "http://127.0.0.1:8080/v1"')
        if parts.username is not None:
            raise self._failed("base_url must not hold a user or password: use api_key or headers")
        return parts._replace(path=parts.path.rstrip("/") + "/chat/completions", fragment="").geturl()
