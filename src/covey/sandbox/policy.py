"""What a process may read, write and connect to: values, and how they follow from facts about a workspace.

Nothing here looks at the machine. All paths are absolute and real, without links in them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

Paths = tuple[str, ...]


class Mode(Enum):
    """What happens where this system cannot keep a promise of the policy."""

    AUTO = "auto"
    """As much as the system can; what is missing is reported."""
    REQUIRED = "required"
    """What matters must hold, else the command is not run."""
    OFF = "off"


class Kind(Enum):
    UNASKED = "unasked"
    """Nobody was asked about the command: it looks, and cannot do anything else."""
    APPROVED = "approved"
    """A person or a rule has allowed it: it works in the workspace."""


class Network(Enum):
    NONE = "none"
    LOOPBACK = "loopback"
    """A loopback of its own, for its own processes. Where that is not possible: NONE."""
    ALLOWED = "allowed"


class Sockets(Enum):
    """Unix sockets with a name, as those of docker, of ssh-agent and of Covey. Pairs of sockets are always possible."""

    NONE = "none"
    OWN = "own"
    """Those that it has made itself. Where they cannot be distinguished from others: NONE."""
    ANY = "any"
    """Also those of others in trees that are named. Where there is no view of its own: all."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What one command may do. Whatever is not named is refused."""

    kind: Kind
    readable: Paths
    """Trees and files that can be read. Programs in there cannot be started."""
    runnable: Paths
    """Trees and files that can be read and started."""
    writable: Paths
    """Trees that can be read, started and changed. Those that do not exist are made."""
    protected: Paths
    """In writable trees, and yet not changed. Of those that do not exist none may come into being."""
    pinned: Paths
    """Directories in writable trees with something protected in them: not renamed, as that would go around it."""
    hidden: Paths
    """In trees named above, and yet not read."""
    network: Network
    sockets: Sockets
    temp: str
    """Where temporary files go; empty: nowhere. It is among the writable."""


@dataclass(frozen=True, slots=True)
class GitPlaces:
    """Where git has its parts, as far as they are known. All of it is empty where there is no repository."""

    git_dirs: Paths = ()
    """Its own directory and the common one: two for a linked work tree."""
    protected: Paths = ()
    """Files by which git would be made to run programs: its configuration, its hooks, what leads to another of them."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What a policy is made from: places that exist here, and whose they are."""

    workspace: str
    temp: str
    """The private temporary directory of the workspace."""
    system: Paths
    """Programs and libraries of the system, and of what is installed elsewhere on PATH."""
    settings: Paths
    """Files of /etc and the like that programs need and that hold no secrets."""
    etc: Paths
    """All of /etc, for what was approved."""
    devices: Paths
    """Devices that everybody may write to, as /dev/null."""
    terminals: Paths
    """Memory and terminals in /dev that programs make for themselves."""
    kernel: Paths
    """What the kernel says about processes and processors."""
    git_settings: Paths
    """The user's configuration of git."""
    tool_settings: Paths
    """What builds read of the home: configuration of package managers, certificates."""
    resolver: Paths
    """What is needed to look up hosts, and lies elsewhere than in /etc."""
    caches: Paths
    """What builds keep between runs, for programs that are installed."""
    credentials: Paths
    """Keys and passwords of the user, and the sockets of those who keep them."""
    secrets: Paths
    """What is in /etc and not for everybody."""
    covey: Paths
    """Covey's own data, configuration and sockets."""
    guarded: Paths
    """Covey's files in the workspace, which may not exist."""
    repository: GitPlaces


def unasked(facts: Facts, *, also_readable: Iterable[str] = ()) -> Policy:
    """For a command that nobody was asked about: no change anywhere, no connection, and nothing of the home.

    Also for helpers of ours that read what others wrote. `also_readable` is what somebody has allowed to be looked at.
    """
    looked_at = (facts.workspace, *also_readable)
    return Policy(
        kind=Kind.UNASKED,
        readable=_roots((*looked_at, *facts.repository.git_dirs, *facts.git_settings, *facts.settings)),
        runnable=_roots((*facts.system, *facts.kernel)),
        writable=facts.devices,
        protected=(),
        pinned=(),
        hidden=_within((*facts.covey, *facts.credentials), looked_at, but=looked_at),
        network=Network.NONE,
        sockets=Sockets.NONE,
        temp="",
    )


def approved(
    facts: Facts,
    *,
    network: bool = False,
    credentials: bool = False,
    also_readable: Iterable[str] = (),
    also_writable: Iterable[str] = (),
    unprotected: Iterable[str] = (),
) -> Policy:
    """For a command that was allowed: it works in the workspace, and leaves alone what would make others run code.

    `credentials`: it may use the user's keys, and the sockets of whoever keeps them. `also_readable` and
    `also_writable` are further trees, and `unprotected` are protected paths that it may change this time.
    """
    git_dirs = facts.repository.git_dirs
    writable = _roots((facts.workspace, facts.temp, *git_dirs, *facts.caches, *also_writable))
    readable = (*facts.system, *facts.kernel, *facts.etc, *facts.git_settings, *facts.tool_settings, *also_readable)
    if network:
        readable += facts.resolver
    if credentials:
        readable += facts.credentials
    freed = set(unprotected)
    protected = tuple(p for p in (*facts.repository.protected, *facts.guarded) if p not in freed)
    unseen = (*facts.covey, *facts.secrets, *(() if credentials else facts.credentials))
    return Policy(
        kind=Kind.APPROVED,
        readable=(),
        runnable=_roots(readable),
        writable=(*writable, *facts.devices, *facts.terminals),
        protected=_within(protected, writable),
        pinned=_pinned(protected, writable),
        hidden=_within(unseen, (*writable, *readable), but=writable),
        network=Network.ALLOWED if network else Network.LOOPBACK,
        sockets=Sockets.ANY if credentials else Sockets.OWN,
        temp=facts.temp,
    )


def is_within(path: str, root: str) -> bool:
    """Whether it is that tree or something in it, by name."""
    return path == root or path.startswith(root.rstrip("/") + "/")


def _roots(paths: Iterable[str]) -> Paths:
    """In order, each once, without those that are within another one."""
    unique = tuple(dict.fromkeys(paths))
    return tuple(p for p in unique if not any(p != other and is_within(p, other) for other in unique))


def _within(paths: Iterable[str], roots: Iterable[str], *, but: Iterable[str] = ()) -> Paths:
    """Those that are in one of the trees. One that has a tree of `but` in it would take that away: it is left out."""
    roots, kept = tuple(roots), tuple(but)
    found = (p for p in dict.fromkeys(paths) if any(is_within(p, root) for root in roots))
    return tuple(p for p in found if not any(is_within(tree, p) for tree in kept))


def _pinned(protected: Iterable[str], writable: Paths) -> Paths:
    """Directories on the way from a writable tree to what is protected, without the tree itself."""
    found: dict[str, None] = {}
    for path in protected:
        above = path.rpartition("/")[0]
        while above and above not in writable and any(is_within(above, root) for root in writable):
            found[above] = None
            above = above.rpartition("/")[0]
    return tuple(sorted(found))
