"""A receiver of OTLP on loopback: takes spans as a collector does, checks them by the letter, and keeps them."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

BOUND_S = 30.0
SPAN = {"traceId", "spanId", "parentSpanId", "name", "kind", "startTimeUnixNano", "endTimeUnixNano", "attributes",
        "status"}  # fmt: skip


class Collector:
    """Spans that arrived, with their attributes as a table."""

    def __init__(self, status: int = 200) -> None:
        self.spans: list[dict[str, Any]] = []
        self.resources: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.status = status
        self._changed = threading.Condition()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                assert (self.path, self.headers["content-type"]) == ("/v1/traces", "application/json")
                with collector._changed:
                    collector.headers.append({name.lower(): value for name, value in self.headers.items()})
                    collector._take(json.loads(body))
                    collector._changed.notify_all()
                self.send_response(collector.status)
                self.send_header("content-length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def _take(self, value: Any) -> None:
        for resource in value["resourceSpans"]:
            self.resources.append(_table(resource["resource"]["attributes"]))
            for scope in resource["scopeSpans"]:
                self.spans += [_checked(span) for span in scope["spans"]]

    def wait_for(self, found: Callable[[list[dict[str, Any]]], Any]) -> Any:
        with self._changed:
            assert self._changed.wait_for(lambda: found(self.spans), BOUND_S), [span["name"] for span in self.spans]
            return found(self.spans)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(BOUND_S)


def _checked(span: dict[str, Any]) -> dict[str, Any]:
    """As the specification says of JSON: ids in hex, numbers of 64 bits as texts."""
    assert set(span) <= SPAN, span
    assert re.fullmatch("[0-9a-f]{32}", span["traceId"]) and re.fullmatch("[0-9a-f]{16}", span["spanId"]), span
    assert re.fullmatch("[0-9a-f]{16}", span.get("parentSpanId", "0" * 16)), span
    assert 0 < int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"]), span
    assert span["kind"] in (1, 2, 3, 4, 5), span
    return {**span, "attributes": _table(span["attributes"])}


def _table(attributes: list[Any]) -> dict[str, Any]:
    found = {}
    for attribute in attributes:
        ((kind, value),) = attribute["value"].items()
        assert kind in ("stringValue", "intValue") and isinstance(value, str), attribute
        found[attribute["key"]] = int(value) if kind == "intValue" else value
    return found
