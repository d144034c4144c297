"""Several `covey serve` processes on one PostgreSQL, which a test speaks to as to one server: each request at another.

A `Cluster` is a `Server` to whoever uses it. So the tests that say what one server promises say it of a cluster, too.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import secrets
import signal
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncpg

from covey.store.postgres.transfer import dump
from tests.support import oracle
from tests.support.postgres import PostgresProcess, postgres
from tests.support.server import STOP_S, Answer, Pending, Server, Workspace, until

LEASE_S = 9.0
"""Of nodes in tests: that of real ones, since a machine may be busy. Who is killed is noticed sooner."""
NAMES = ("a", "b", "c")


class Node(Server):
    """One of them."""

    def __init__(self, cluster: Cluster, name: str, lease_s: float) -> None:
        directory = cluster.directory / name
        directory.mkdir(parents=True, exist_ok=True)
        config = f"{cluster.config_text}\n[cluster]\nlease_s = {lease_s}\ndrain_s = {cluster.drain_s}\n"
        super().__init__(directory, config, cluster.node_env)
        self.name = name
        self.project = cluster.project
        self._cluster = cluster
        self.may_log_errors = True  # of a node whose peer was killed; the cluster as a whole is judged by what it did

    def start(self) -> None:
        port = self.port or _free_port()
        self.host = f"tcp://127.0.0.1:{port}"
        self.options = (
            "--store", self._cluster.url, "--node", self.name, "--advertise", f"http://127.0.0.1:{port}",
            "--cluster-secret-file", str(self._cluster.secret_file), "--token-file", str(self._cluster.token_file),
        )  # fmt: skip
        super().start()

    @property
    def token(self) -> str:
        return self._cluster.token


class Cluster(Server):
    """All nodes. `port` is that of the next one, whoever asks: no two requests in a row go to the same."""

    def __init__(
        self,
        directory: Path,
        config: str,
        *,
        names: Sequence[str] = NAMES,
        lease_s: float = LEASE_S,
        drain_s: float = 60,
        database: PostgresProcess | None = None,
        url: str = "",
        env: dict[str, str] | None = None,
    ) -> None:
        self.directory = directory
        self.project = directory / "project"
        self.project.mkdir(parents=True, exist_ok=True)
        self.data_dir = directory / "dump"
        """What the nodes have written, after `finish`, as one server would have."""
        self.config_text, self.drain_s = config, drain_s
        self.node_env: dict[str, str] = env or {}
        self.database = database or postgres()
        self.url = url or self.database.new_database()
        self.secret_file, self.token_file = directory / "secret", directory / "token"
        for file in (self.secret_file, self.token_file):
            file.write_text(secrets.token_hex(16))
            file.chmod(0o600)
        self.may_log_errors = False
        self.nodes = [Node(self, name, lease_s) for name in names]
        self._turn = itertools.count()
        self._sent = []
        self._down: list[Node] = []
        self._clients: list[str] = []

    # ── their lives ──

    def start(self) -> None:
        """Those that do not run, also because a test that failed has left them so."""
        for node in self.nodes:
            if node.process and node.process.poll() is not None:
                node.wait()
        starting = [threading.Thread(target=node.start) for node in self.nodes if node.process is None]
        for thread in starting:
            thread.start()
        for thread in starting:
            thread.join()
        assert all(node.process for node in self.nodes)
        self._down.clear()

    def node(self, name: str) -> Node:
        return next(node for node in self.nodes if node.name == name)

    @property
    def alive(self) -> list[Node]:
        return [node for node in self.nodes if node.process and node.process.poll() is None and node not in self._down]

    def owner(self, workspace_id: str = "") -> Node:
        """The node that has a workspace; '': the one that was opened last."""
        query = (
            "SELECT n.name FROM logs l JOIN nodes n ON n.id = l.owner JOIN workspaces w ON w.id = l.workspace_id"
            " WHERE $1 IN ('', w.id) ORDER BY w.created_at DESC, w.id DESC LIMIT 1"
        )
        rows: list[Any] = until(lambda: self.sql(query, workspace_id))
        return self.node(rows[0]["name"])

    def others(self, workspace_id: str = "") -> list[Node]:
        owner = self.owner(workspace_id)
        return [node for node in self.alive if node is not owner]

    def kill(self) -> None:
        """The owner of what was opened last; `start` brings it back."""
        self.owner().kill()

    def leave(self, node: Node) -> None:
        """Ask a node to hand over what it has, and to go: nobody speaks to it any more."""
        node.signal(signal.SIGTERM)
        self._down.append(node)

    def freeze(self, node: Node) -> None:
        node.signal(signal.SIGSTOP)
        self._down.append(node)

    def thaw(self, node: Node) -> None:
        node.signal(signal.SIGCONT)
        self._down.remove(node)

    def signal(self, number: signal.Signals) -> None:
        for node in self.alive:
            node.signal(number)

    def wait(self, timeout: float = STOP_S) -> int:
        return max(node.wait(timeout) for node in self.nodes if node.process)

    def stop(self) -> int:
        self.signal(signal.SIGTERM)
        return self.wait()

    def finish(self) -> None:
        """Stop all of them in order, and judge what they have written as if it were that of one server."""
        killed = any(node._was_killed for node in self.nodes)
        if any(node.process for node in self.nodes):
            assert self.stop() == 0, self.log()
        self.dump()
        for record in self.records():
            faults = oracle.judge(record, all_ended=False)
            assert not faults, "the store breaks promises:\n" + "\n".join(faults)
        assert killed or self.may_log_errors or "Traceback" not in self.log(), self.log()

    def close(self) -> None:
        for pending in self._sent:
            pending.abandon()
        for node in self.nodes:
            node.close()

    def log(self) -> str:
        return "".join(f"── {node.name} ──\n{node.log()}" for node in self.nodes)

    # ── speaking to them ──

    @property
    def port(self) -> int:  # type: ignore[override]
        alive = self.alive
        return alive[next(self._turn) % len(alive)].port

    @property
    def token(self) -> str:
        return self.token_file.read_text()

    def request(self, method: str, path: str, body: Any = None, *, headers: dict[str, str] | None = None) -> Answer:
        """Again at the next node if one says that it is about to leave."""
        for _ in self.nodes:
            answer = super().request(method, path, body, headers=headers)
            if answer.status != 503 or answer.body["code"] != "shutting_down":
                break
        return answer

    def begin(self, method: str, path: str, body: Any = None, *, headers: dict[str, str] | None = None) -> Pending:
        """At the next node that listens: one that is leaving may have gone in this very moment."""
        for _ in self.nodes:
            with contextlib.suppress(ConnectionRefusedError):
                return super().begin(method, path, body, headers=headers)
        raise ConnectionRefusedError("no node listens")

    def workspace(self, path: Path | None = None, **fields: Any) -> Workspace:
        opened = super().workspace(path, **fields)
        self._clients.append(opened.client_id)
        return opened

    def retire_clients(self) -> None:
        """All who have opened something say goodbye."""
        for client_id in self._clients:
            self.request("DELETE", f"/v1/clients/{client_id}").ok()
        self._clients.clear()

    def at_every_node(self, method: str, path: str, body: Any = None) -> list[Answer]:
        return [node.request(method, path, body) for node in self.alive]

    # ── looking into them ──

    def metrics(self) -> dict[str, float]:
        """The sums of all nodes."""
        found: dict[str, float] = {}
        for node in self.alive:
            with contextlib.suppress(ConnectionRefusedError):
                for name, value in node.metrics().items():
                    found[name] = found.get(name, 0.0) + value
        found["workspaces_open"] = float(len(self.open_here()))
        return found

    def open_here(self) -> list[str]:
        """The ids of what is open of this test's directory: who looked at one of another test holds it for a while."""
        return [each["id"] for each in self.request("GET", "/v1/workspaces").ok() if each["path"] == str(self.project)]

    def resident_bytes(self) -> int:
        return sum(node.resident_bytes() for node in self.alive)

    def sql(self, query: str, *values: Any) -> list[Any]:
        return self.database.sql_in(urlsplit(self.url).path.lstrip("/"), query, *values)

    def dump(self) -> None:
        """What is in the store, as a store of one server."""
        self.data_dir.mkdir(exist_ok=True)
        for row in self.sql("SELECT id FROM workspaces ORDER BY id"):
            file = self.data_dir / row["id"] / "covey.db"
            file.parent.mkdir(exist_ok=True)
            file.unlink(missing_ok=True)
            dump(self.url, row["id"], file)

    def records(self) -> list[oracle.Record]:
        self.dump()
        return [record for directory in sorted(self.data_dir.iterdir()) for record in oracle.read(directory)]

    @contextlib.contextmanager
    def blocked_store(self) -> Iterator[None]:
        """Meanwhile nothing can be written about any workspace. Nodes say that they are alive all the same."""
        with _Locked(self.url):
            yield


class _Locked:
    """A transaction of another program, which holds what every commit needs."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._loop = asyncio.new_event_loop()

    def __enter__(self) -> None:
        self._loop.run_until_complete(self._lock())

    async def _lock(self) -> None:
        self._connection = await asyncpg.connect(self._url)
        await self._connection.execute("BEGIN; LOCK TABLE logs IN EXCLUSIVE MODE")

    def __exit__(self, *_: object) -> None:
        self._loop.run_until_complete(self._connection.close())
        self._loop.close()


def _free_port() -> int:
    from tests.support.postgres import free_port

    return free_port()


@contextlib.contextmanager
def running_cluster(directory: Path, config: str, **options: Any) -> Iterator[Cluster]:
    """A cluster for the time of a test; whatever it leaves behind is checked at the end."""
    cluster = Cluster(directory, config, **options)
    try:
        cluster.start()
        yield cluster
        cluster.finish()
    finally:
        cluster.close()
