"""A database that has no connection left: at the start of a node, and while it is at work (N5)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.cluster import Cluster, running_cluster
from tests.support.fake_model import FakeModel, Reply
from tests.support.postgres import PostgresProcess, postgres
from tests.support.server import provider_config, until

NEEDED = 5
HANG_UP = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1"


class Room:
    """A database whose role may have only so many connections."""

    def __init__(self, server: PostgresProcess) -> None:
        self._server = server
        url = server.new_database(empty=True)
        self.name = urlsplit(url).path.lstrip("/")
        self.role = f"few_{self.name}"
        server.sql(f"CREATE ROLE {self.role} LOGIN")
        server.sql(f"ALTER DATABASE {self.name} OWNER TO {self.role}")
        self.url = url.replace("covey@", f"{self.role}@")

    def limit(self, connections: int) -> None:
        self._server.sql(f"ALTER ROLE {self.role} CONNECTION LIMIT {connections}")

    def hang_up(self) -> None:
        self._server.sql(HANG_UP, self.role)

    def remove(self) -> None:
        self.hang_up()
        self._server.sql(f"DROP DATABASE {self.name} WITH (FORCE)")
        self._server.sql(f"DROP ROLE {self.role}")


@pytest.fixture
def room() -> Iterator[Room]:
    made = Room(postgres())
    yield made
    made.remove()


@pytest.fixture
def model() -> Iterator[FakeModel]:
    with FakeModel() as made:
        yield made


@pytest.fixture
def cluster(tmp_path: Path, model: FakeModel, room: Room) -> Iterator[Cluster]:
    with running_cluster(tmp_path, provider_config(model.url), names=("a",), url=room.url) as made:
        yield made


@pytest.mark.parametrize("connections", [0, 1, 2, NEEDED - 1])
def test_at_its_start_a_node_says_that_it_needs_more(tmp_path: Path, room: Room, connections: int) -> None:
    room.limit(connections)
    made = Cluster(tmp_path, "", names=("a",), url=room.url)
    (node,) = made.nodes
    try:
        with pytest.raises(AssertionError):
            node.start()
        assert node.wait() == 1
        said = node.log()
    finally:
        made.close()
    where = f"this node cannot join the cluster at /{room.name}: "
    assert where in said and f'too many connections for role "{room.role}"' in said, said
    assert "Start it again when that is over" in said and "Traceback" not in said and "doctor" not in said, said


def test_n5_while_none_is_left_turns_wait_and_posts_are_refused_with_the_reason(
    cluster: Cluster, model: FakeModel, room: Room
) -> None:
    model.on(lambda request: Reply(chunks=4, gates={2: "go on"}) if request.prompt == "long" else Reply())
    workspace = cluster.workspace()
    session = workspace.session()
    workspace.prompt(session, "long", run_id="long")
    workspace.prompt(session, "waits", run_id="waits")
    model.wait_for(lambda: bool(model.requests))
    room.limit(0)
    room.hang_up()
    model.release("go on")  # the turn has words that nobody can write
    # A post that was under way when the connection broke would wait until it is known what became of it (N6).
    until(lambda: "this node cannot say that it is alive" in cluster.log())
    refused = workspace.request("POST", "/agent", {"session_id": session, "prompt": "now", "run_id": "now"})
    refused.refused(503, "store_unavailable")
    assert "the database has no connection left for this server" in cluster.log()
    room.limit(NEEDED)  # enough, and not one more
    assert workspace.ended("long")["state"] == "completed"
    assert workspace.ended("waits")["state"] == "completed"
    assert cluster.sql("SELECT 1 FROM runs WHERE run_id = 'now'") == []
    workspace.prompt(session, "now", run_id="now")
    assert workspace.ended("now")["state"] == "completed"
    room.limit(-1)
