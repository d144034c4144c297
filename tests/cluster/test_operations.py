"""What operators see of a cluster: figures of each node, and one trace through both nodes of a request."""

from __future__ import annotations

from pathlib import Path

from tests.support.cluster import running_cluster
from tests.support.collector import Collector
from tests.support.fake_model import FakeModel
from tests.support.server import provider_config

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


def test_figures_and_spans_of_two_nodes(tmp_path: Path) -> None:
    with FakeModel() as model, Collector() as collector:
        config = provider_config(model.url)
        variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}
        with running_cluster(tmp_path, config, names=("a", "b"), env=variables) as cluster:
            workspace = cluster.workspace()
            session = workspace.session()
            (other,) = cluster.others(workspace.id)
            body = {"session_id": session, "prompt": "hello", "run_id": "r1"}
            headers = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
            assert other.request("POST", f"{workspace.path}/agent", body, headers=headers).status == 202
            workspace.ended("r1")
            run = collector.wait_for(lambda spans: next((s for s in spans if s["name"] == "run"), None))
            name = "POST /v1/workspaces/{id}/agent"
            posts = collector.wait_for(lambda spans: len(p := [s for s in spans if s["name"] == name]) == 2 and p)
            owner = cluster.owner(workspace.id)
            figures, others = owner.metrics(), other.metrics()
            workspace.close()
    first = next(span for span in posts if span["parentSpanId"] == PARENT)
    second = next(span for span in posts if span["parentSpanId"] == first["spanId"])
    assert {first["traceId"], second["traceId"], run["traceId"]} == {TRACE}
    assert run["parentSpanId"] == second["spanId"], "the run belongs to the request as its owner got it"
    assert {resource["service.instance.id"] for resource in collector.resources} == {"a", "b"}
    assert (figures["cluster_workspaces_owned"], others["cluster_workspaces_owned"]) == (1, 0)
    assert 0 < figures["cluster_lease_left_seconds"] <= 9
    assert figures["store_commit_changes_sum"] >= figures["store_commit_seconds_count"] > 3
    assert others["requests_passed_on_total"] >= 1
    assert figures["store_commits_in_doubt_total"] == figures["store_commits_fenced_total"] == 0
