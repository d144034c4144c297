"""`covey nodes`, /v1/ready and drain, as whoever runs a cluster sees them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.support.cluster import Cluster, running_cluster
from tests.support.fake_model import FakeModel, Reply
from tests.support.server import Server, provider_config, until


def _covey(server: Server, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "covey", *words, "--host", f"tcp://127.0.0.1:{server.port}"]
    env = {**os.environ, "COVEY_TOKEN": server.token, "HOME": str(server.directory)}
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=env, check=False)


def test_nodes_are_listed_by_any_of_them(server: Cluster) -> None:
    for node in server.nodes:
        done = _covey(node, "nodes")
        lines = [line.split() for line in done.stdout.splitlines() if " gone " not in line]
        assert [line[:2] for line in lines] == [["a", "ready"], ["b", "ready"], ["c", "ready"]], done
        assert [line[0] for line in lines if line[-1] == "(asked)"] == [node.name]
    listed = json.loads(_covey(server, "nodes", "--json").stdout)
    alive = {each["name"]: each["address"] for each in listed if each["state"] == "ready"}
    assert alive == {node.name: f"http://127.0.0.1:{node.port}" for node in server.nodes}


def test_a_node_is_drained_and_forgotten_by_way_of_another(tmp_path: Path, model: FakeModel) -> None:
    model.on(lambda request: Reply(text="slowly ", gates={1: "go"}) if request.prompt == "one" else Reply(text="done"))
    with running_cluster(tmp_path, provider_config(model.url), names=("a", "b")) as server:
        workspace = server.workspace()
        session = workspace.session()
        stream = workspace.stream()
        workspace.prompt(session, "one", run_id="one")
        workspace.prompt(session, "two", run_id="two")
        stream.wait_delta()
        leaving, other = server.owner(workspace.id), server.others(workspace.id)[0]
        refused = _covey(other, "nodes", "forget", leaving.name)
        assert (refused.returncode, "is alive" in refused.stderr) == (1, True), refused
        assert _covey(other, "nodes", "drain", leaving.name).returncode == 0
        until(lambda: leaving.request("GET", "/v1/ready").status == 503)
        leaving.request("GET", "/v1/ready").refused(503, "not_ready")
        assert leaving.request("GET", "/v1/health").ok() == {"status": "ok"}
        assert f"{leaving.name}  draining" in _covey(other, "nodes").stdout
        model.release("go")
        assert leaving.wait() == 0
        assert [workspace.ended(run_id)["state"] for run_id in ("one", "two")] == ["completed", "completed"]
        assert f"{leaving.name}  gone" in _covey(other, "nodes").stdout
        assert _covey(other, "nodes", "forget", leaving.name).returncode == 0
        assert leaving.name not in [line.split()[0] for line in _covey(other, "nodes").stdout.splitlines()]
        unknown = _covey(other, "nodes", "drain", leaving.name)
        assert (unknown.returncode, "there is no node" in unknown.stderr) == (1, True), unknown
        workspace.close()
