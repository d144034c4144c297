"""Spans for OpenTelemetry: what a real receiver gets from a real server, and that nothing depends on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from covey.server.tracing import Context, context_of
from tests.support.collector import Collector
from tests.support.fake_model import FakeModel
from tests.support.server import Server, provider_config, running

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"


def named(spans: list[dict[str, Any]], name: str) -> dict[str, Any] | None:
    return next((span for span in spans if span["name"] == name), None)


def test_a_request_and_its_run_are_spans_of_the_callers_trace(tmp_path: Path) -> None:
    with FakeModel() as model, Collector() as collector:
        env = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_EXPORTER_OTLP_HEADERS": "x-key=a%20b"}
        with running(tmp_path, provider_config(model.url), env) as server:
            workspace = server.workspace()
            session = workspace.session()
            stream = workspace.stream()
            body = {"session_id": session, "prompt": "secret words", "run_id": "r1"}
            headers = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
            assert workspace.request("POST", "/agent", body, headers=headers).status == 202
            stream.terminal("r1")
            run = collector.wait_for(lambda spans: named(spans, "run"))
            posted = collector.wait_for(lambda spans: named(spans, "POST /v1/workspaces/{id}/agent"))
            stream.close()
            watched = collector.wait_for(lambda spans: named(spans, "GET /v1/workspaces/{id}/events"))
    assert (posted["traceId"], posted["parentSpanId"], posted["kind"]) == (TRACE, PARENT, 2)
    assert posted["attributes"]["http.response.status_code"] == 202
    assert (run["traceId"], run["parentSpanId"]) == (TRACE, posted["spanId"])
    assert run["attributes"]["covey.run_id"] == "r1"
    assert run["attributes"]["covey.outcome"] == "completed"
    assert run["attributes"]["gen_ai.usage.input_tokens"] == 10
    assert watched["traceId"] != TRACE
    assert collector.resources[0]["service.name"] == "covey"
    assert collector.headers[0]["x-key"] == "a b"
    assert "secret words" not in str(collector.spans)


def test_what_is_not_sampled_leaves_no_span(tmp_path: Path) -> None:
    with FakeModel() as model, Collector() as collector:
        env = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}
        with running(tmp_path, provider_config(model.url), env) as server:
            server.request("GET", "/v1/version", headers={"traceparent": f"00-{TRACE}-{PARENT}-00"}).ok()
            server.request("GET", "/v1/health").ok()
            collector.wait_for(lambda spans: named(spans, "GET /v1/health"))
            assert named(collector.spans, "GET /v1/version") is None


@pytest.mark.parametrize("status", [0, 500])
def test_a_collector_that_is_away_or_refuses_delays_nothing(tmp_path: Path, status: int) -> None:
    with FakeModel() as model, Collector(status) as collector:
        env = {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"{collector.url}/v1/traces" if status else "http://127.0.0.1:1/"}
        with running(tmp_path, provider_config(model.url), env) as server:
            workspace = server.workspace()
            workspace.ended(workspace.prompt(workspace.session(), "hello")["run_id"])
            if status:
                collector.wait_for(lambda spans: named(spans, "run"))
        assert server.log().count("spans cannot be delivered") == 1


def test_without_its_variables_it_is_not_even_imported(tmp_path: Path) -> None:
    with FakeModel() as model:
        server = Server(tmp_path, provider_config(model.url))
        server.program = ("-X", "importtime", "-m", "covey")
        try:
            server.start()
            server.stop()
        finally:
            server.close()
        assert "covey.server.daemon" in server.log()
        assert "covey.server.tracing" not in server.log()


@pytest.mark.parametrize(
    ("header", "found"),
    [
        (f"00-{TRACE}-{PARENT}-01", Context(TRACE, PARENT, True)),
        (f"00-{TRACE}-{PARENT}-00", Context(TRACE, PARENT, False)),
        (f"01-{TRACE}-{PARENT}-01-more", Context(TRACE, PARENT, True)),
        (f"00-{TRACE}-{PARENT}-01-more", None),
        (f"ff-{TRACE}-{PARENT}-01", None),
        (f"00-{'0' * 32}-{PARENT}-01", None),
        (f"00-{TRACE}-{'0' * 16}-01", None),
        (f"00-{TRACE.upper()}-{PARENT}-01", None),
        ("nonsense", None),
        ("", None),
    ],
)
def test_a_traceparent_is_read_as_the_standard_says(header: str, found: Context | None) -> None:
    assert context_of(header.encode()) == found
    if found and header.startswith("00"):
        assert found.traceparent == header.encode()
