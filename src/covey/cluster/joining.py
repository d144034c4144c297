"""How a server becomes a node: the store that all share, its name among them, and the secret by which they know it."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path
from typing import NamedTuple

import msgspec

from covey.cluster.node import Node, NodeTimes
from covey.config.check import check as check_settings
from covey.config.schema import ClusterSettings, ConfigError
from covey.engine.ownership import node_home
from covey.protocol.errors import CoveyError
from covey.store.base import StoreFailed
from covey.store.postgres.connection import check_room, shown
from covey.store.postgres.nodes import NodeTable
from covey.store.postgres.store import PostgresStore

SECRET_BYTES = 16
"""A shorter secret can be guessed."""


CONNECTIONS = 5
"""What a node needs of the database: one that writes, two that read, one for its life and one for claims."""

CONNECTED = 2
"""Those of them that are there once it has joined; the others are made when they are needed."""


class CannotJoin(CoveyError):
    """The database is not there, has no room, or does not want this node."""

    code = "cannot_join"


class Joined(NamedTuple):
    node: Node
    store: PostgresStore
    secret: bytes


async def join(settings: ClusterSettings, data_dir: Path) -> Joined:
    """Be a node of the cluster. Raises ConfigError for settings that cannot be, and CannotJoin."""
    check(settings)
    secret = read_secret(Path(settings.secret_file))
    try:
        return await _join(settings, data_dir, secret)
    except StoreFailed as error:
        later = " Start it again when that is over; nothing is lost meanwhile." if error.passing else ""
        raise CannotJoin(f"this node cannot join the cluster at {shown(settings.store)}: {error}.{later}") from error


async def _join(settings: ClusterSettings, data_dir: Path, secret: bytes) -> Joined:
    store = await asyncio.to_thread(PostgresStore, settings.store, uuid.uuid4().hex)
    times = NodeTimes(lease_s=settings.lease_s, drain_s=settings.drain_s)
    table = NodeTable(settings.store, settings.lease_s, reach=settings.reach)
    node = Node(settings.node, settings.advertise.rstrip("/"), _home(data_dir), store, table, times)
    try:
        await node.join()
        await asyncio.to_thread(check_room, settings.store, CONNECTIONS - CONNECTED, CONNECTIONS)
    except BaseException:
        await node.leave()
        await asyncio.to_thread(store.close)
        raise
    return Joined(node, store, secret)


def check(settings: ClusterSettings) -> None:
    """Raise ConfigError unless a node can be made of it."""
    needed = {
        "--store": settings.store,
        "--node": settings.node,
        "--advertise": settings.advertise,
        "--cluster-secret-file": settings.secret_file,
    }
    if missing := [name for name, value in needed.items() if not value]:
        raise ConfigError(
            f"a node of a cluster needs {', '.join(missing)} (or the same under [cluster]): the database that all "
            "nodes share, its own name, the URL at which the others reach it, and the secret that they share"
        )
    check_settings(msgspec.json.decode(msgspec.json.encode(settings)), ClusterSettings, "cluster")


def read_secret(path: Path) -> bytes:
    try:
        secret = path.expanduser().read_bytes().strip()
    except OSError as error:
        raise ConfigError(f"the cluster's secret cannot be read from {path}: {error.strerror}") from None
    if len(secret) < SECRET_BYTES:
        raise ConfigError(f"the cluster's secret in {path} is too short: use 32 random characters or more")
    return secret


def _home(data_dir: Path) -> str:
    """What this data directory is known by. Whoever owns the directory knows that a former owner of it is gone."""
    path = node_home(data_dir)
    if not path.exists():
        path.write_text(uuid.uuid4().hex)
    return path.read_text().strip()
