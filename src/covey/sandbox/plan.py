"""From a policy and what a system can do: what the launcher is asked to do, and what will be missing. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import assert_never

from covey.sandbox import seccomp
from covey.sandbox.policy import Kind, Mode, Network, Policy, Sockets, is_within

Words = tuple[str, ...]
HIDE = "--hide"
TEMP = "/tmp"  # noqa: S108 - inside a view of its own
"""Where the temporary directory of the policy is in a view, besides its own place."""


class Views(Enum):
    """How a view of the file system of its own can be had."""

    NONE = "none"
    OWN = "own"
    """By the launcher itself."""
    BUBBLEWRAP = "bubblewrap"
    """By bubblewrap, which some systems allow what they refuse to others."""


@dataclass(frozen=True, slots=True)
class Abilities:
    """What a system can do. `probe` finds out."""

    machine: str
    landlock: int
    """Its version; 0: none."""
    seccomp: bool
    views: Views
    bubblewrap: str = ""
    """Where it is, if that is the way."""
    links: tuple[tuple[str, str], ...] = ()
    """Links of the root directory, as /bin."""


@dataclass(frozen=True, slots=True)
class SandboxGap:
    """A promise that is not kept here."""

    text: str
    matters: bool
    """Whether a command that requires the sandbox is not run because of it."""


@dataclass(frozen=True, slots=True)
class SandboxPlan:
    steps: Words
    """What stands before `--` for the launcher; empty: there is nothing to do."""
    gaps: tuple[SandboxGap, ...]
    has_view: bool = False
    """Whether protected paths that exist cannot be changed. If not, they have to be put back afterwards."""
    private: Words = ()
    """Directories in which the command does not see what others see, nor they what it writes there."""
    view: Words = ()
    """What bubblewrap is asked for, if it makes the view. `HIDE` and a path is for whoever knows what is there."""

    @property
    def refusal(self) -> str:
        """Why the command must not be run here; empty if it may."""
        return self.steps[1] if self.steps[:1] == ("refuse",) else ""

    @property
    def is_sound(self) -> bool:
        """Whether all that matters holds."""
        return bool(self.steps) and not any(gap.matters for gap in self.gaps)


_KEPT = {Kind.UNASKED: 1 << 2, Kind.APPROVED: 1 << 0 | 1 << 1 | 1 << 3 | 1 << 4}
"""Rights of root that are kept, so that it can work on files of others: to read them; to change and to own them."""
_NO_LANDLOCK = "This kernel has no Landlock: files outside of the workspace are not protected."
_NO_SECCOMP = "This kernel or processor has no seccomp filters: the network and other processes are not protected."
_NO_VIEW = (
    "This system has no user namespaces for us: what is protected inside the workspace, as .git/hooks, "
    "is only put back after the command."
)
_NO_HIDING = "This system has no user namespaces for us: Covey's own files inside the workspace can be read."
_NO_SCOPE = "This kernel's Landlock is older than version 6: a command can send signals to your other processes."
_NO_LOOPBACK = "This system has no user namespaces for us: without the network there is no loopback either."
_NO_SOCKETS = "This system has no user namespaces for us: a command cannot use unix sockets with names."
_ALL_SOCKETS = "This system has no user namespaces for us: with keys, all your sockets can be reached, also docker's."
_ATTRIBUTES = "This system has no user namespaces for us: modes and times of files outside can be changed."


@lru_cache(maxsize=256)
def planned(policy: Policy, abilities: Abilities, mode: Mode) -> SandboxPlan:
    """How this system carries the policy out."""
    match mode:
        case Mode.OFF:
            return SandboxPlan((), ())
        case Mode.AUTO | Mode.REQUIRED:
            pass
        case _:
            assert_never(mode)
    gaps = tuple(_gaps(policy, abilities))
    reasons = [gap.text for gap in gaps if gap.matters]
    if mode is Mode.REQUIRED and reasons:
        return SandboxPlan(("refuse", f"sandbox is required, and this system cannot: {' '.join(reasons)}"), gaps)
    own_view = _has_view(policy, abilities)
    steps: list[str] = [*_made(policy)]
    view: list[str] = []
    if own_view and abilities.views is Views.OWN:
        network = "network" if policy.network is Network.ALLOWED else "alone"
        steps += ["namespaces", network, *(word for entry in _entries(policy, abilities) for word in entry)]
    elif own_view:
        view += _bubblewrap(policy, abilities)
    steps += [*_landlock(policy, abilities, own_view=own_view), "capabilities", f"{_KEPT[policy.kind]:x}"]
    if abilities.seccomp:
        steps += ["seccomp", _filter(policy, abilities, own_view=own_view).hex()]
    return SandboxPlan(tuple(steps), gaps, own_view, _private(policy) if own_view else (), tuple(view))


def _has_view(policy: Policy, abilities: Abilities) -> bool:
    """Whether the command gets a view of its own. What only looks needs none: it can change nothing anyway."""
    return policy.kind is Kind.APPROVED and abilities.views is not Views.NONE


def _private(policy: Policy) -> Words:
    return (*((TEMP,) if policy.temp else ()), _SHARED_MEMORY)


def _gaps(policy: Policy, abilities: Abilities) -> list[SandboxGap]:
    gaps = []
    if not abilities.landlock:
        gaps.append(SandboxGap(_NO_LANDLOCK, True))
    elif abilities.landlock < 6:
        gaps.append(SandboxGap(_NO_SCOPE, False))
    if not abilities.seccomp:
        gaps.append(SandboxGap(_NO_SECCOMP, True))
    if policy.kind is Kind.UNASKED or abilities.views is not Views.NONE:
        return gaps
    if policy.protected:
        gaps.append(SandboxGap(_NO_VIEW, True))
    if any(is_within(path, tree) for path in policy.hidden for tree in policy.writable):
        gaps.append(SandboxGap(_NO_HIDING, True))
    if policy.sockets is Sockets.ANY:
        gaps.append(SandboxGap(_ALL_SOCKETS, True))
    gaps.append(SandboxGap(_ATTRIBUTES, False))
    if policy.network is Network.LOOPBACK:
        gaps.append(SandboxGap(_NO_LOOPBACK, False))
    if policy.sockets is Sockets.OWN and abilities.landlock < 9:
        gaps.append(SandboxGap(_NO_SOCKETS, False))
    return gaps


def _made(policy: Policy) -> Sequence[str]:
    made = [path for path in policy.writable if not path.startswith("/dev/")]
    hooks = [path for path in policy.protected if path.endswith("/hooks")]
    return [word for path in (*made, *hooks) for word in ("make", path)]


# ── the view ──


def _entries(policy: Policy, abilities: Abilities) -> list[Words]:
    """What is mounted, as the launcher's words."""
    entries: list[Words] = [("dev",), *(("link", path, target) for path, target in abilities.links)]
    entries += [("ro", path) for path in (*policy.readable, *policy.runnable)]
    entries += [("rw", path) for path in (*policy.writable, *policy.pinned) if path not in _MADE_DEVICES]
    entries += [("keep", path) for path in policy.protected]
    entries += [("hide", path) for path in policy.hidden]
    if policy.temp:
        entries.append(("at", policy.temp, TEMP))
    return entries


_SHARED_MEMORY = "/dev/shm"  # noqa: S108 - inside a view of its own
_MADE_DEVICES = (_SHARED_MEMORY, "/dev/pts", "/dev/ptmx")


def _bubblewrap(policy: Policy, abilities: Abilities) -> list[str]:
    """The same view, in bubblewrap's words."""
    words = ["--unshare-user-try", *([] if policy.network is Network.ALLOWED else ["--unshare-net"])]
    for entry in sorted(_entries(policy, abilities), key=_place_of):
        words += _in_its_words(entry)
    return words


def _in_its_words(entry: Words) -> list[str]:
    kind, place = entry[0], _place_of(entry)
    if kind in ("ro", "keep"):
        return ["--ro-bind-try", place, place]
    if kind == "rw":
        return ["--dev-bind-try" if place.startswith("/dev/") else "--bind-try", place, place]
    if kind == "hide":
        return [HIDE, place]
    if kind == "link":
        return ["--symlink", entry[2], place]
    return ["--bind", entry[1], place] if kind == "at" else ["--dev", place]


def _place_of(entry: Words) -> str:
    return "/dev" if entry == ("dev",) else entry[2 if entry[0] == "at" else 1]


# ── Landlock and seccomp ──


def _landlock(policy: Policy, abilities: Abilities, *, own_view: bool) -> list[str]:
    if not abilities.landlock:
        return []
    options = ["scoped"]
    if policy.network is not Network.NONE and (own_view or policy.network is Network.ALLOWED):
        options.append("tcp")
    if policy.sockets is Sockets.ANY:
        options.append("unix")
    words = ["landlock", str(abilities.landlock), ",".join(options)]
    writable = (*policy.writable, *((TEMP,) if own_view and policy.temp else ()))
    for rights, paths in (("read", policy.readable), ("run", policy.runnable), ("write", writable)):
        words += [word for path in paths for word in (rights, path)]
    if own_view:  # nothing else is there
        words += ["list", "/"]
    else:
        unseen = [p for p in policy.hidden if not any(is_within(p, tree) for tree in policy.writable)]
        words += [word for path in unseen for word in ("hidden", path)]
    return words


def _filter(policy: Policy, abilities: Abilities, *, own_view: bool) -> bytes:
    network, sockets = policy.network, policy.sockets
    if not own_view:
        network = Network.NONE if network is Network.LOOPBACK else network
        if sockets is Sockets.OWN and abilities.landlock < 9:
            sockets = Sockets.NONE
    return seccomp.program(abilities.machine, policy.kind, network, sockets, abilities.landlock)
