"""Spans for OpenTelemetry: one for each request, and one for each run. Off, and not even imported, unless asked for.

It is asked for by the variables that OpenTelemetry has for it: OTEL_EXPORTER_OTLP_ENDPOINT, or
OTEL_EXPORTER_OTLP_TRACES_ENDPOINT. Spans go out as OTLP in JSON over HTTP, which every collector takes; our own because
what is needed of it is this file, and the SDK starts threads and costs a tenth of a second at each start. A span says
what was asked and how it ended, never what was said. What cannot be delivered is dropped: nothing ever waits for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import msgspec
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from covey.protocol.events import Event
from covey.protocol.runs import Run, RunComplete

log = logging.getLogger(__name__)

EVERY_S = 1.0
"""How long a span waits for others to be sent with."""
BATCH = 512
KEPT = 4096
"""Spans that wait to be sent, and runs whose request is known: beyond that the oldest are dropped."""
SEND_S = 5.0
SERVER, INTERNAL = 2, 1
"""Kinds of spans."""
FAILED = 2
"""The status of a span that went wrong."""
TRACEPARENT = re.compile(rb"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
IDS = re.compile(r"(/v1/workspaces|/sessions|/runs|/jobs|/permissions|/questions|/web)/[^/]+")
"""What stands in a path for one thing of many: the name of a span must not be another for each."""
STREAMS = ("/events", "/activity")


class Context(NamedTuple):
    """Where in a trace something happens."""

    trace_id: str
    span_id: str
    is_sampled: bool = True

    @property
    def traceparent(self) -> bytes:
        return f"00-{self.trace_id}-{self.span_id}-{self.is_sampled:02x}".encode()


def context_of(header: bytes | None) -> Context | None:
    """What a `traceparent` says; None if it says nothing that counts."""
    found = TRACEPARENT.fullmatch(header.strip()) if header else None
    if not found or found[1] == b"ff" or (found[1] == b"00" and found[5]):
        return None
    trace_id, span_id = found[2].decode(), found[3].decode()
    if not int(trace_id, 16) or not int(span_id, 16):
        return None
    return Context(trace_id, span_id, bool(int(found[4], 16) & 1))


def _begun(parent: Context | None) -> Context:
    return Context(parent.trace_id if parent else os.urandom(16).hex(), os.urandom(8).hex())


class Tracing:
    """Collects spans and sends them. Made in the running loop."""

    def __init__(self, endpoint: str, headers: Mapping[str, str], resource: Mapping[str, str]) -> None:
        self._endpoint = endpoint
        self._headers = headers
        self._resource = [_attribute(name, value) for name, value in resource.items()]
        self._waiting: list[dict[str, Any]] = []
        self._requests: OrderedDict[str, Context] = OrderedDict()
        """By run: the request that brought it."""
        self._accepted: OrderedDict[str, float] = OrderedDict()
        """By run: when it was accepted."""
        self.dropped = 0
        self._is_refused = False
        self._sending = asyncio.create_task(self._send_now_and_then())

    @classmethod
    def wanted(cls, environ: Mapping[str, str], node: str = "") -> Tracing | None:
        """As the environment says; None: off."""
        endpoint = environ.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "")
        if not endpoint and (base := environ.get("OTEL_EXPORTER_OTLP_ENDPOINT", "")):
            endpoint = base.rstrip("/") + "/v1/traces"
        if not endpoint or environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
            return None
        given = environ.get("OTEL_EXPORTER_OTLP_TRACES_HEADERS") or environ.get("OTEL_EXPORTER_OTLP_HEADERS", "")
        resource = _pairs(environ.get("OTEL_RESOURCE_ATTRIBUTES", ""))
        resource["service.name"] = environ.get("OTEL_SERVICE_NAME") or resource.get("service.name", "covey")
        if node:
            resource.setdefault("service.instance.id", node)
        return cls(endpoint, _pairs(given), resource)

    def around(self, app: ASGIApp) -> ASGIApp:
        """The same application, with a span for each request."""
        return _Traced(self, app)

    # ── spans ──

    def add(
        self, name: str, kind: int, context: Context, parent: Context | None, start_ns: int,
        attributes: Mapping[str, Any], *, error: str | None = None,
    ) -> None:  # fmt: skip
        span = {
            "traceId": context.trace_id,
            "spanId": context.span_id,
            "name": name,
            "kind": kind,
            "startTimeUnixNano": str(start_ns),
            "endTimeUnixNano": str(time.time_ns()),
            "attributes": [_attribute(key, value) for key, value in attributes.items()],
            "status": {} if error is None else {"code": FAILED, "message": error},
        }
        if parent:
            span["parentSpanId"] = parent.span_id
        if len(self._waiting) >= KEPT:
            self.dropped += 1
            return
        self._waiting.append(span)

    def came_with(self, run_id: str, context: Context) -> None:
        """A run was accepted by this request."""
        _keep(self._requests, run_id, context)

    def note(self, workspace_id: str, event: Event) -> None:
        """Something was published: a run that has ended becomes a span, from when it was accepted on."""
        if isinstance(event.payload, Run):
            if event.change == "created":
                _keep(self._accepted, event.payload.run_id, event.payload.accepted_at)
        elif isinstance(event.payload, RunComplete):
            self._add_run(workspace_id, event.payload)

    def _add_run(self, workspace_id: str, end: RunComplete) -> None:
        parent = self._requests.pop(end.run_id, None)
        accepted_at = self._accepted.pop(end.run_id, None)
        attributes: dict[str, str | int] = {
            "covey.workspace_id": workspace_id,
            "covey.session_id": end.session_id,
            "covey.run_id": end.run_id,
            "covey.outcome": end.outcome,
        }
        if end.usage:
            attributes["gen_ai.usage.input_tokens"] = end.usage.prompt_tokens
            attributes["gen_ai.usage.output_tokens"] = end.usage.completion_tokens
        start_ns = int(accepted_at * 1e9) if accepted_at else time.time_ns()
        error = end.outcome if end.outcome in ("failed", "interrupted") else None
        self.add("run", INTERNAL, _begun(parent), parent, start_ns, attributes, error=error)

    # ── sending ──

    async def _send_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(EVERY_S)
            await self.flush()

    async def flush(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting[:BATCH], self._waiting[BATCH:]
            scope = {"scope": {"name": "covey"}, "spans": batch}
            value = {"resourceSpans": [{"resource": {"attributes": self._resource}, "scopeSpans": [scope]}]}
            try:
                async with asyncio.timeout(SEND_S):
                    status = await _post(self._endpoint, self._headers, msgspec.json.encode(value))
            except (OSError, TimeoutError, ValueError, asyncio.IncompleteReadError) as error:
                self._refused(len(batch), str(error) or type(error).__name__)
            else:
                if status >= 300:
                    self._refused(len(batch), f"it answered {status}")
                else:
                    self._is_refused = False

    def _refused(self, count: int, why: str) -> None:
        self.dropped += count
        if not self._is_refused:  # said once, until it works again
            self._is_refused = True
            log.warning("spans cannot be delivered to %s: %s", self._endpoint, why)

    async def aclose(self) -> None:
        """Send what is left, if that does not take long."""
        self._sending.cancel()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                await self.flush()


class _Traced:
    def __init__(self, tracing: Tracing, app: ASGIApp) -> None:
        self._tracing = tracing
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        given = next((value for name, value in scope["headers"] if name == b"traceparent"), None)
        parent = context_of(given)
        if parent and not parent.is_sampled:
            return await self._app(scope, receive, send)
        context, start_ns = _begun(parent), time.time_ns()
        # Whoever the request is passed on to goes on from here.
        others = [pair for pair in scope["headers"] if pair[0] != b"traceparent"]
        scope["headers"] = [*others, (b"traceparent", context.traceparent)]
        answer = _Answer(send, is_prompt=scope["method"] == "POST" and scope["path"].endswith("/agent"))
        # A stream writes to its connection by what sends: it must not stand behind anything.
        is_stream = scope["path"].endswith(STREAMS)
        try:
            await self._app(scope, receive, send if is_stream else answer.send)
        finally:
            if answer.run_id:
                self._tracing.came_with(answer.run_id, context)
            route = IDS.sub(r"\1/{id}", scope["path"])
            attributes: dict[str, str | int] = {"http.request.method": scope["method"], "http.route": route}
            attributes["url.path"] = scope["path"]
            if answer.status:
                attributes["http.response.status_code"] = answer.status
            error = f"status {answer.status}" if answer.status >= 500 else None
            self._tracing.add(f"{scope['method']} {route}", SERVER, context, parent, start_ns, attributes, error=error)


class _Answer:
    """Looks at an answer on its way out: the status, and of a prompt the id of its run."""

    def __init__(self, send: Send, *, is_prompt: bool) -> None:
        self._send = send
        self._is_prompt = is_prompt
        self.status = 0
        self.run_id = ""

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        elif self._is_prompt and self.status == 202 and (body := message.get("body")):
            with contextlib.suppress(msgspec.MsgspecError, AttributeError):
                self.run_id = msgspec.json.decode(body).get("run_id", "")
        await self._send(message)


def _keep(known: OrderedDict[str, Any], key: str, value: Any) -> None:
    known[key] = value
    if len(known) > KEPT:
        known.popitem(last=False)


def _attribute(key: str, value: Any) -> dict[str, Any]:
    return {"key": key, "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": str(value)}}


def _pairs(text: str) -> dict[str, str]:
    """`a=b,c=d`, as OpenTelemetry writes headers and attributes."""
    pairs = (part.partition("=") for part in text.split(",") if "=" in part)
    return {name.strip(): unquote(value.strip()) for name, _, value in pairs}


async def _post(url: str, headers: Mapping[str, str], body: bytes) -> int:
    """The status of the answer. One connection for each batch: there is one a second at most."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{url} is no address of a collector")
    port = parts.port or (443 if parts.scheme == "https" else 80)
    reader, writer = await asyncio.open_connection(parts.hostname, port, ssl=parts.scheme == "https" or None)
    try:
        lines = [f"POST {parts.path or '/'} HTTP/1.1", f"Host: {parts.netloc}", "Content-Type: application/json"]
        lines += [f"Content-Length: {len(body)}", "Connection: close"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        writer.write("\r\n".join([*lines, "", ""]).encode() + body)
        await writer.drain()
        return int((await reader.readline()).split()[1])
    finally:
        writer.close()
