"""What all workspaces of a server share, which directories can be one, and how each gets its configuration."""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from covey.config.defaults import with_defaults
from covey.config.load import PROJECT_FILE, config_dir, load
from covey.config.probe import probe
from covey.config.schema import Config
from covey.credentials.accounts import Accounts, CredentialsError
from covey.credentials.file import accounts_file, read_accounts
from covey.credentials.keys import Keys, Surrounding
from covey.engine.ownership import Ownership, SoleOwner
from covey.engine.preferences import Preferences
from covey.engine.world import World
from covey.protocol.errors import BadRequest, Conflict
from covey.protocol.who import NAME_LENGTH, Who
from covey.store.base import Store
from covey.store.journal import Journal

if TYPE_CHECKING:
    from covey.config.stamp import Stamp

log = logging.getLogger(__name__)

RETIRED_KEPT = 10_000
"""Clients that said goodbye and are remembered: a late create of theirs is refused."""
CLIENTS_KEPT = 10_000
"""Clients whose names are remembered."""
LARGE_REPLAYS = 2
"""So many clients at once are replayed an event of megabytes: one may have 30 MB, and a hundred may ask for it."""


def _end_processes(tag: str) -> int:
    from covey.tools.processes import kill_tagged

    return kill_tagged(tag)


def _end_jobs(workspace_ids: Collection[str]) -> int:
    from covey.tools.jobs import kill_left_jobs

    return kill_left_jobs(workspace_ids)


def _end_jobs_of_node(node: str) -> int:
    from covey.tools.jobs import kill_jobs_of_node

    return kill_jobs_of_node(node)


@dataclass(frozen=True, slots=True)
class Shared:
    """The store, the clock, and what was given on the command line."""

    store: Store
    journal: Journal
    world: World
    data_dir: Path
    config_file: Path | None
    environ: Mapping[str, str]
    counts: Counter[str] = field(default_factory=Counter)
    """What has happened since the start, for /metrics."""
    large_replays: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(LARGE_REPLAYS))
    keys: Keys = field(default_factory=Keys)
    """The providers' keys that programs had to be asked for."""
    preferences: Preferences = field(default_factory=Preferences)
    sockets: tuple[Path, ...] = ()
    """Where the server listens, if that is a file: no command may reach it."""
    ownership: Ownership = field(default_factory=SoleOwner)
    """Who claims workspaces, where others share the store."""
    end_processes: Callable[[str], int] = _end_processes
    """Ends what the tools of a run left behind when the server was killed."""
    end_jobs: Callable[[Collection[str]], int] = _end_jobs
    """The same for the jobs of workspaces."""
    end_jobs_of_node: Callable[[str], int] = _end_jobs_of_node
    """The same for all jobs of a node."""


async def load_config(shared: Shared, path: str, env: Mapping[str, str] | None = None) -> tuple[Config, Sequence[str]]:
    """What the files of a workspace say, or whatever model can be found without any; with warnings for people.

    `env` is the client's: its keys count, but where the user's files are is the server's to know.
    """
    environ = _environ(shared, env)
    loaded = await asyncio.to_thread(load, Path(path), shared.config_file, environ)
    warnings = list(loaded.warnings)
    try:
        accounts = await asyncio.to_thread(read_accounts, environ)
    except CredentialsError as error:
        accounts = Accounts()
        warnings.append(str(error))
    for warning in warnings:
        log.warning("%s", warning)
    config = await with_defaults(loaded.config, environ, probe, accounts.providers)
    return await shared.keys.fill(config, accounts, Surrounding(Path(path), shared.environ, environ)), warnings


async def config_stamp(shared: Shared, path: str, env: Mapping[str, str] | None = None) -> Stamp:
    """What the files that `load_config` would read look like now: a few system calls, in a thread."""
    from covey.config.stamp import stamp_of  # late: a server listens before it opens anything

    environ = _environ(shared, env)
    user = config_dir(environ)
    files = [user / "config.toml", user / "trusted.toml", Path(path) / PROJECT_FILE, accounts_file(environ)]
    if shared.config_file:
        files.append(shared.config_file)
    return await asyncio.to_thread(stamp_of, files)


def _environ(shared: Shared, env: Mapping[str, str] | None) -> dict[str, str]:
    mine = {name: value for name, value in shared.environ.items() if name == "HOME" or name.startswith("XDG_")}
    return {**shared.environ, **(env or {}), **mine}


def own_directories(shared: Shared) -> tuple[str, ...]:
    """Where Covey keeps its own files, with links resolved: a rule for all edits does not cover those."""
    settings = config_dir(shared.environ)
    own = (settings, settings / "config.toml", settings / "trusted.toml", shared.data_dir, shared.config_file)
    return tuple(dict.fromkeys(str(path.resolve()) for path in own if path))


class KnownClients:
    """By their ids, the oldest of too many are forgotten."""

    def __init__(self) -> None:
        self._retired: dict[str, None] = {}
        self._names: dict[str, Who] = {}

    def who(self, client_id: str) -> Who:
        """A client as it said it is when it opened a workspace; one that said nothing has its id alone."""
        return self._names.get(client_id) or Who(client_id=client_id[:NAME_LENGTH])

    def remember(self, who: Who) -> None:
        self._names.pop(who.client_id, None)
        self._names[who.client_id] = who
        if len(self._names) > CLIENTS_KEPT:
            del self._names[next(iter(self._names))]

    def retire(self, client_id: str) -> None:
        """It has said goodbye for good."""
        self._retired[client_id] = None
        if len(self._retired) > RETIRED_KEPT:
            del self._retired[next(iter(self._retired))]

    def check_not_retired(self, client_id: str) -> None:
        """Raise Conflict for a client that has said goodbye."""
        if client_id in self._retired:
            raise Conflict("this client has said goodbye; use a new client_id", "client_retired")


def resolve(path: str) -> str:
    """The directory that a path leads to. Raises BadRequest."""
    if not path or "\0" in path:
        raise BadRequest("path is missing")
    directory = Path(path)
    if not directory.is_absolute():
        raise BadRequest(f"path must be absolute, not {path!r}: the server may run in another directory than you")
    check_directory(path)
    return str(directory.resolve())


def check_directory(path: str) -> None:
    """Raise BadRequest unless there is such a directory here."""
    try:
        is_directory = Path(path).is_dir()
    except OSError as error:
        raise BadRequest(f"{path!r} cannot be opened: {error.strerror}") from None
    if not is_directory:
        raise BadRequest(f"{path!r} is not a directory")


async def load_engine() -> None:
    """Import what an open workspace needs, which is most of our modules: in a thread, so that nobody else waits.

    A server does so once it listens. Whoever opens a workspace before that is done waits for the rest of it.
    """
    await asyncio.to_thread(importlib.import_module, "covey.engine.workspace")
