"""A home with secrets, a workspace in it, and the ways in which a system may be able to carry a policy out."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from covey.sandbox import probe
from covey.sandbox.facts import gather
from covey.sandbox.plan import Abilities, Views
from covey.sandbox.policy import Facts, Mode, Policy
from covey.tools.processes import Completed, LocalProcesses
from tests.support.machine import carriers

ABLE = probe.probed()
needs_landlock = pytest.mark.skipif(not ABLE.landlock, reason="this kernel has no Landlock")
needs_view = pytest.mark.skipif(ABLE.views is not Views.OWN, reason="this system has no user namespaces for us")
BWRAP = "/usr/bin/bwrap"

WAYS = {
    "view": ABLE,
    "landlock": replace(ABLE, views=Views.NONE),
    "bubblewrap": replace(ABLE, views=Views.BUBBLEWRAP, bubblewrap=BWRAP),
}
"""With a view of its own; without, as on systems that give out no user namespaces; with bubblewrap's."""


def skip_what_cannot_be(way: str) -> None:
    if way == "view" and ABLE.views is not Views.OWN:
        pytest.skip("this system has no user namespaces for us")
    if way == "bubblewrap" and not os.path.exists(BWRAP):
        pytest.skip("bubblewrap is not installed")
    if not ABLE.landlock or not ABLE.seccomp:
        pytest.skip("this kernel has no Landlock or no seccomp")


@dataclass
class Place:
    """A home, a workspace in it, and somebody else's directory."""

    home: Path
    root: Path
    temp: Path
    outside: Path
    own: Path
    """Covey's data."""
    env: dict[str, str]
    tag: str

    def facts(self) -> Facts:
        return gather(self.root, self.temp, self.env, [self.own])

    async def run(
        self, command: str | list[str], policy: Policy | None, *, mode: Mode = Mode.AUTO, timeout_s: float = 50
    ) -> Completed:
        return await LocalProcesses().run_command(
            command,
            cwd=self.root,
            env=self.env,
            tag=f"{self.tag}/c1",
            timeout_s=timeout_s,
            output_limit=100_000,
            policy=policy,
            sandbox=mode,
        )

    def git(self, *arguments: str) -> str:
        env = {**self.env, "GIT_CONFIG_NOSYSTEM": "1"}
        done = subprocess.run(["git", *arguments], cwd=self.root, env=env, capture_output=True, text=True, check=True)
        return done.stdout


IDENTITY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "Ann"), ("EMAIL", "ann@example.org"))
}


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    base = tmp_path.resolve()
    home, outside, temp = base / "home", base / "outside", base / "temp"
    root, own = home / "project", home / ".local" / "share" / "covey"
    for directory in (root, outside, temp, own, home / ".ssh"):
        directory.mkdir(parents=True)
    (home / ".ssh" / "id_rsa").write_text("CANARY-KEY\n")
    (home / "notes.txt").write_text("CANARY-HOME\n")
    (outside / "secret.txt").write_text("CANARY-OUTSIDE\n")
    (own / "token").write_text("CANARY-TOKEN\n")
    (root / "a.txt").write_text("alpha\nbeta\n")
    (root / "src").mkdir()
    (root / "src" / "main.py").write_text("print('hello')\n")
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", **IDENTITY}
    tag = f"covey-test-{os.getpid()}-{time.monotonic_ns()}"
    made = Place(home, root, temp, outside, own, env, tag)
    made.git("init", "-q", "-b", "main")
    made.git("add", "-A")
    made.git("commit", "-q", "-m", "first")
    yield made
    assert carriers(tag) == []


@pytest.fixture(params=[*WAYS])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each way in which an approved command can be run."""
    skip_what_cannot_be(request.param)
    use(monkeypatch, WAYS[request.param])
    return str(request.param)


def use(monkeypatch: pytest.MonkeyPatch, abilities: Abilities) -> None:
    """As if this system could do just this."""
    monkeypatch.setattr(probe, "probed", lambda: abilities)
