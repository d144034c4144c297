"""Chooses what the processes of a workspace's tool calls are confined by: the one place where that is decided.

What a call was allowed to do comes from whoever judged it (`Permit`), what holds if nothing else is said from the
configuration, and what the system can do from `sandbox.probe`. Tools get the result as a value.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from covey.permissions.judge import Judgement
from covey.permissions.reach import Reach
from covey.protocol.runs import SandboxMode
from covey.sandbox import policy, probe
from covey.sandbox.confinement import Confinement
from covey.sandbox.facts import gather, looked_at_again
from covey.sandbox.plan import Views, planned
from covey.sandbox.policy import Facts, Mode
from covey.sandbox.starter import STARTER
from covey.tools.threads import in_thread

log = logging.getLogger(__name__)

OFF = "The sandbox is off: it can do whatever you can."
NO_NETWORK = "It runs in the sandbox: it changes files of the workspace only, and has no network unless you say so."


@dataclass(frozen=True, slots=True)
class Permit:
    """That a call may run, and how far its commands may get."""

    approved: bool
    """A person, a rule or a mode has allowed it. Else it was judged to be harmless, and is held to that."""
    reach: Reach = Reach.WORKSPACE
    required: bool = False
    """A rule wants it to run only where the sandbox holds."""
    to_the_letter: bool = False
    """Just this call was allowed, so what it names is meant: a line that only looks sees that, wherever it is."""

    @classmethod
    def of(cls, judgement: Judgement) -> Permit:
        return cls(judgement.is_approved, judgement.reach, judgement.required, judgement.to_the_letter)


@dataclass(frozen=True, slots=True)
class Refusal:
    """That a call may not run."""

    text: str
    """Why, in words for the model."""
    by: Literal["rule", "person", "nobody", "sandbox", "hook"]
    """What or who refused it: a rule or a mode; whoever was asked; that nobody could be; that no sandbox holds."""


@dataclass(frozen=True, slots=True)
class Prospect:
    """What an approved command of a call would run in, before anybody has been asked."""

    holds: bool
    """The sandbox is on, and all that matters of it holds here."""
    confines_network: bool
    """It has no network unless that is allowed."""
    text: str
    """For whoever is asked."""
    refusal: str = ""
    """Why it cannot run at all; empty if it can."""


class Confining:
    """The sandbox of one workspace. What it must know of the machine is looked up once, when it is first needed."""

    def __init__(
        self,
        root: Path,
        temp: Path,
        own: Sequence[Path],
        env: Callable[[], Mapping[str, str]],
        setting: Callable[[], SandboxMode],
    ) -> None:
        self._root = root
        self._temp = temp
        self._own = own
        self._env = env
        self._setting = setting
        self._facts: asyncio.Task[Facts] | None = None

    def mode(self, option: SandboxMode | None) -> Mode:
        """What holds for a run: what was said for it, else the configuration."""
        return Mode(option or self._setting())

    def is_on(self, option: SandboxMode | None) -> bool:
        """Whether commands of a run are confined, as far as the system can."""
        return self.mode(option) is not Mode.OFF

    async def prospect(self, option: SandboxMode | None) -> Prospect:
        """What an approved command would run in."""
        mode = self.mode(option)
        if mode is Mode.OFF:
            return Prospect(holds=False, confines_network=False, text=OFF)
        facts, abilities = await self._looked_up(), probe.probed()
        plan = planned(policy.approved(facts), abilities, mode)
        confines = bool(plan.steps) and abilities.seccomp
        gaps = [gap for gap in plan.gaps if gap.matters]
        text = NO_NETWORK if confines and not gaps else probe.sentences(abilities, gaps)
        return Prospect(plan.is_sound, confines, text, plan.refusal)

    async def confinement(
        self, permit: Permit, option: SandboxMode | None, results: Path, looks_at: Sequence[str] = ()
    ) -> Confinement:
        """What the processes of a call are confined by. `results`: where those of its session are kept.

        `looks_at`: all that it was allowed to do is to look there (`permissions.outside`).
        """
        mode = Mode.REQUIRED if permit.required else self.mode(option)
        if mode is Mode.OFF or permit.reach is Reach.EVERYTHING:
            return Confinement()
        known = await self._looked_up()

        def look() -> Confinement:
            if permit.reach is Reach.WORKSPACE and (seen := self._seen(looks_at, known)):
                return Confinement(known, mode, also_readable=(*_kept(results), *seen))
            facts = looked_at_again(known) if permit.approved else known
            return Confinement(facts, mode, permit.approved, permit.reach >= Reach.NETWORK, _kept(results))

        return await in_thread(look)

    def _seen(self, paths: Sequence[str], facts: Facts) -> list[str]:
        """Where these paths lead; empty if one of them is Covey's own, or leads to a key that it does not name."""
        home = self._env().get("HOME", "")
        named = [os.path.normpath(f"{home}{path[1:]}" if path.startswith("~") else path) for path in paths]
        leads = [(path, os.path.realpath(path)) for path in named]
        keys = (*facts.credentials, *facts.secrets)
        is_kept = any(
            any(policy.is_within(real, own) for own in facts.covey)
            or any(policy.is_within(real, key) and not policy.is_within(path, key) for key in keys)
            for path, real in leads
        )
        return [] if is_kept else [real for _, real in leads if os.path.exists(real)]

    async def _looked_up(self) -> Facts:
        if self._facts is None or (self._facts.done() and self._facts.exception()):
            self._facts = asyncio.ensure_future(in_thread(self._look_up))
        # Whoever is cancelled must not take the others' answer with it.
        return await asyncio.shield(self._facts)

    def _look_up(self) -> Facts:
        shutil.rmtree(self._temp, ignore_errors=True)  # of a server that was killed
        self._temp.mkdir(parents=True, mode=0o700, exist_ok=True)
        facts = gather(self._root, self._temp, self._env(), self._own)
        if probe.probed().landlock or probe.probed().seccomp:
            with suppress(OSError):  # the first command reports it
                STARTER.warm_up()
        return facts

    async def close(self) -> None:
        """Remove the temporary files. All processes have ended."""
        if self._facts is not None:
            await in_thread(lambda: shutil.rmtree(self._temp, ignore_errors=True))


def _kept(results: Path) -> tuple[str, ...]:
    return (str(results.resolve()),) if results.exists() else ()


def announce() -> None:
    """Find out what this system can do, and log it. Blocks; for a thread, once for a server."""
    abilities = probe.probed()
    text = probe.sentences(abilities, ())
    if abilities.landlock and abilities.seccomp and abilities.views is not Views.NONE:
        log.info("%s", text)
    else:
        log.warning("%s `covey doctor` says what does not hold here.", text)
