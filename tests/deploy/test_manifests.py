"""The manifests in deploy/, as far as they can be checked without an engine: names, options, probes, times."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from covey.cli.main import build_parser
from covey.config.load import load
from covey.server.access import OPEN
from covey.server.app import ENDPOINTS
from tests.support.plain_yaml import load_all

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
COMPOSE = load_all((DEPLOY / "compose" / "compose.yaml").read_text())[0]
KUBERNETES = load_all((DEPLOY / "kubernetes" / "covey.yaml").read_text())
NODES = {name: service for name, service in COMPOSE["services"].items() if name.startswith("node-")}


def one(kind: str, name: str) -> Any:
    (found,) = [each for each in KUBERNETES if (each["kind"], each["metadata"]["name"]) == (kind, name)]
    return found


def options(words: list[str]) -> Any:
    """As `covey` itself understands them."""
    return build_parser().parse_args(words)


def drain_s(text: str, tmp_path: Path) -> float:
    file = tmp_path / "covey.toml"
    file.write_text(text)
    return load(None, file, {"HOME": str(tmp_path)}).config.cluster.drain_s


def test_compose_has_nodes_that_differ_in_name_and_find_each_other() -> None:
    given = {name: options(node["command"]) for name, node in NODES.items()}
    assert len(given) == 3
    assert len({options.node for options in given.values()}) == 3
    assert len({options.data_dir for options in given.values()}) == 3
    assert {options.store for options in given.values()} == {"postgres://covey@db/covey"}
    for name, found in given.items():
        assert found.advertise == f"http://{name}:8790"
        assert found.host.endswith(":8790")


def test_compose_names_only_what_it_has() -> None:
    for service in COMPOSE["services"].values():
        assert set(service.get("secrets", [])) <= set(COMPOSE["secrets"])
        named = {volume.partition(":")[0] for volume in service.get("volumes", []) if volume[0] not in "./"}
        assert named <= set(COMPOSE["volumes"])
        assert set(service.get("depends_on", [])) <= set(COMPOSE["services"])
    for node in NODES.values():
        files = re.findall(r"/run/secrets/(\S+)", " ".join([*node["command"], node["environment"]["PGPASSFILE"]]))
        assert set(files) == set(node["secrets"])
    for file in ("covey.toml", "nginx.conf"):
        assert (DEPLOY / "compose" / file).is_file()
    assert (DEPLOY / "compose" / NODES["node-a"]["build"]["context"]).resolve() == ROOT


def test_compose_lets_turns_end(tmp_path: Path) -> None:
    minutes = int(NODES["node-a"]["stop_grace_period"].removesuffix("m"))
    assert minutes * 60 >= drain_s((DEPLOY / "compose" / "covey.toml").read_text(), tmp_path) + 60


def test_the_proxy_knows_all_nodes_and_buffers_nothing() -> None:
    text = (DEPLOY / "compose" / "nginx.conf").read_text()
    assert set(re.findall(r"server (node-\S+):8790 ", text)) == set(NODES)
    assert "proxy_buffering off;" in text and "proxy_request_buffering off;" in text
    assert text.count("{") == text.count("}")


def container() -> Any:
    (found,) = one("StatefulSet", "covey")["spec"]["template"]["spec"]["containers"]
    return found


def test_kubernetes_starts_a_node_under_the_name_of_its_pod() -> None:
    given = options(
        [word.replace("$(POD)", "covey-0").replace("$(STORE)", "postgres://x/y") for word in container()["args"]]
    )
    service = one("StatefulSet", "covey")["spec"]["serviceName"]
    assert (given.node, given.advertise) == ("covey-0", f"http://covey-0.{service}:8790")
    headless = one("Service", service)["spec"]
    assert (headless["clusterIP"], headless["publishNotReadyAddresses"]) == ("None", "true")
    names = {variable["name"] for variable in container()["env"]}
    assert set(re.findall(r"\$\((\w+)\)", " ".join(container()["args"]))) == names


@pytest.mark.parametrize(
    ("probe", "path"), [("readinessProbe", "ready"), ("livenessProbe", "health"), ("startupProbe", "health")]
)
def test_kubernetes_probes_ask_what_anybody_may(probe: str, path: str) -> None:
    asked = container()[probe]["httpGet"]
    assert asked["path"] == f"/v1/{path}"
    assert ("GET", asked["path"]) in OPEN
    assert [endpoint for endpoint in ENDPOINTS if (endpoint.method, endpoint.path) == ("GET", asked["path"])]
    assert asked["httpHeaders"] == [{"name": "Host", "value": "localhost"}], "the address of a pod is no name of ours"


def test_kubernetes_lets_turns_end_and_one_node_leave_at_a_time(tmp_path: Path) -> None:
    config = one("ConfigMap", "covey")["data"]["covey.toml"]
    assert "covey" in tomllib.loads(config)["server"]["allowed_hosts"]
    grace = int(one("StatefulSet", "covey")["spec"]["template"]["spec"]["terminationGracePeriodSeconds"])
    assert grace >= drain_s(config, tmp_path) + 60
    assert one("PodDisruptionBudget", "covey")["spec"]["maxUnavailable"] == "1"


def test_kubernetes_labels_and_volumes_fit() -> None:
    state = one("StatefulSet", "covey")["spec"]
    labels = state["template"]["metadata"]["labels"]
    assert state["selector"]["matchLabels"] == labels
    for service in ("covey", "covey-nodes"):
        assert one("Service", service)["spec"]["selector"] == labels
    assert one("PodDisruptionBudget", "covey")["spec"]["selector"]["matchLabels"] == labels
    volumes = {volume["name"]: volume for volume in state["template"]["spec"]["volumes"]}
    made = {claim["metadata"]["name"] for claim in state["volumeClaimTemplates"]}
    assert {mount["name"] for mount in container()["volumeMounts"]} == set(volumes) | made
    claim = volumes["work"]["persistentVolumeClaim"]["claimName"]
    assert one("PersistentVolumeClaim", claim)["spec"]["accessModes"] == ["ReadWriteMany"]
    mounts = {mount["mountPath"] for mount in container()["volumeMounts"]}
    for word in container()["args"]:
        if "=/" in word:
            assert any(word.partition("=")[2].startswith(mount) for mount in mounts), word


def test_the_image_has_the_driver() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert "[postgres]" in (DEPLOY / "Dockerfile").read_text()
    assert any(name.startswith("asyncpg") for name in extras["postgres"])
