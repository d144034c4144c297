"""What this system can do for the sandbox, found out once, and how a command line becomes a restricted one."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import assert_never

from covey.sandbox import facts, places, seccomp
from covey.sandbox.guard import Guard
from covey.sandbox.plan import HIDE, TEMP, Abilities, SandboxGap, SandboxPlan, Views, planned
from covey.sandbox.policy import Kind, Mode, Network, Policy, Sockets

_PACKAGE = str(Path(__file__).resolve().parents[2])
_TRY_S = 10.0
"""A machine that needs longer to start one process has other problems."""
_UNREACHABLE = (
    "SSH_AUTH_SOCK",
    "DBUS_SESSION_BUS_ADDRESS",
    "GPG_AGENT_INFO",
    "WAYLAND_DISPLAY",
    "DISPLAY",
    "XAUTHORITY",
    "XDG_RUNTIME_DIR",
)
"""Variables that lead to sockets and keys outside: without them programs do not even try."""
_SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin:/run/current-system/sw/bin"
"""Where programs are looked for: never in a workspace."""


def program(name: str) -> tuple[str, ...]:
    """The command line of a program of this package. It sees neither the environment nor what is installed."""
    code = f"import sys; sys.path.append({_PACKAGE!r}); from covey.sandbox.{name} import main; main()"
    return (sys.executable, "-I", "-S", "-E", "-c", code)


@dataclass(frozen=True, slots=True)
class Wrapped:
    """A command, with what has to be done to a process before it becomes the command."""

    command: tuple[str, ...]
    env: Mapping[str, str]
    plan: SandboxPlan
    policy: Policy
    bubblewrap: str = ""

    def line(self) -> tuple[str, ...]:
        """The whole command line, for a process that is started by itself. Makes directories that it needs."""
        if not self.plan.steps:
            return self.command
        line = (*program("launcher"), *self.plan.steps, "--", *self.command)
        if not self.plan.view:
            return line
        for word, path in pairwise(self.plan.steps):
            if word == "make":
                os.makedirs(path, 0o700, exist_ok=True)
        return (self.bubblewrap, *_interpreter(), *_hiding(self.plan.view), "--", *line)

    def guard(self) -> Guard:
        """Looks at what is protected and could be changed all the same. To be made before the command is started."""
        return Guard(self.policy.protected if self.plan.steps else (), only_missing=self.plan.has_view)


def wrap(command: Sequence[str], policy: Policy, env: Mapping[str, str], mode: Mode = Mode.AUTO) -> Wrapped:
    """The same command inside the policy, as far as this system can. `Wrapped.plan` says what it cannot."""
    abilities = probed()
    plan = planned(policy, abilities, mode)
    inner = _environment(policy, env, has_view=plan.has_view) if plan.steps else env
    return Wrapped(tuple(command), inner, plan, policy, abilities.bubblewrap)


@cache
def probed() -> Abilities:
    """What this system can do. Starts up to two short processes the first time, and blocks for that."""
    machine = platform.machine()
    if sys.platform != "linux":
        return Abilities(machine, 0, False, Views.NONE)
    from covey.sandbox import landlock  # loads the C library's functions

    views, bubblewrap = _views()
    filters = machine in seccomp.MACHINES and os.path.exists("/proc/sys/kernel/seccomp/actions_avail")
    return Abilities(machine, landlock.version(), filters, views, bubblewrap, facts.top_links())


def sentences(abilities: Abilities, gaps: Sequence[SandboxGap]) -> str:
    """For people: what holds here, and what does not."""
    if not abilities.landlock and not abilities.seccomp:
        return "There is no sandbox on this system: commands can do whatever you can."
    parts = [f"Landlock {abilities.landlock}" if abilities.landlock else "", "seccomp" if abilities.seccomp else ""]
    match abilities.views:
        case Views.OWN:
            parts.append("namespaces")
        case Views.BUBBLEWRAP:
            parts.append(f"bubblewrap ({abilities.bubblewrap})")
        case Views.NONE:
            pass
        case _:
            assert_never(abilities.views)
    return " ".join((f"Sandbox: {', '.join(filter(None, parts))}.", *(gap.text for gap in gaps)))


def _views() -> tuple[Views, str]:
    """By trying it. Bubblewrap is only looked for where we cannot do it ourselves, and never taken from a workspace."""
    true = shutil.which("true", path=_SYSTEM_PATH)
    if not true:
        return Views.NONE, ""
    runnable = tuple(os.path.realpath(path) for path in (*places.SYSTEM, "/proc") if os.path.exists(path))
    policy = Policy(Kind.APPROVED, (), runnable, ("/dev/null",), (), (), (), Network.LOOPBACK, Sockets.OWN, temp="")
    trial = planned(policy, Abilities("", 0, False, Views.OWN, links=facts.top_links()), Mode.AUTO)
    if _succeeds((*program("launcher"), *trial.steps, "--", true)):
        return Views.OWN, ""
    found = shutil.which("bwrap", path=_SYSTEM_PATH)
    if found and _succeeds((found, "--unshare-net", "--ro-bind", "/", "/", "--dev", "/dev", true)):
        return Views.BUBBLEWRAP, found
    return Views.NONE, ""


def _succeeds(arguments: Sequence[str]) -> bool:
    try:
        tried = subprocess.run(  # noqa: S603 - our own programs
            arguments, capture_output=True, stdin=subprocess.DEVNULL, timeout=_TRY_S, env={}, cwd="/"
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return tried.returncode == 0


def _interpreter() -> tuple[str, ...]:
    """What the launcher needs to start inside of bubblewrap. Landlock takes it away again."""
    parts = dict.fromkeys((sys.base_prefix, sys.prefix, _PACKAGE))
    return tuple(word for place in parts for word in ("--ro-bind-try", place, place))


def _hiding(view: Sequence[str]) -> Iterator[str]:
    """Bubblewrap puts different things over files and over directories."""
    words = iter(view)
    for word in words:
        if word != HIDE:
            yield word
        elif os.path.isdir(path := next(words)):
            yield from ("--tmpfs", path, "--remount-ro", path)
        elif os.path.lexists(path):
            yield from ("--ro-bind", os.devnull, path)


def _environment(policy: Policy, env: Mapping[str, str], *, has_view: bool) -> dict[str, str]:
    kept = {name: value for name, value in env.items() if policy.sockets is Sockets.ANY or name not in _UNREACHABLE}
    match policy.kind:
        case Kind.UNASKED:
            # Else `git status` tries to write what it has learned into the index.
            return {**kept, "GIT_OPTIONAL_LOCKS": "0"}
        case Kind.APPROVED:
            # In a view it is there too, and that is short: names of sockets have at most 107 bytes.
            return {**kept, "TMPDIR": TEMP if has_view else policy.temp}
        case _:
            assert_never(policy.kind)
