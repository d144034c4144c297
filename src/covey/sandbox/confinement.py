"""How the processes of one tool call are confined: a value that the engine decides on, and that tools pass on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from covey.sandbox import policy
from covey.sandbox.policy import Facts, Mode, Policy


@dataclass(frozen=True, slots=True)
class Confinement:
    """Without facts, or with the sandbox off, processes may do whatever the user may do."""

    facts: Facts | None = None
    mode: Mode = Mode.OFF
    approved: bool = False
    """Somebody has allowed the call; else its commands can only look."""
    network: bool = False
    also_readable: tuple[str, ...] = ()
    """What commands may read besides: where long results of the session are kept, though that is among Covey's own
    files, and what somebody has allowed to be looked at."""

    def command(self) -> Policy | None:
        """What a command of the call may do; None: it is not confined."""
        if self.facts is None or self.mode is Mode.OFF:
            return None
        if not self.approved:
            return policy.unasked(self.facts, also_readable=self.also_readable)
        return policy.approved(self.facts, network=self.network, also_readable=self.also_readable)

    def helper(self, *, reads: Iterable[str] = (), writes: Iterable[str] = ()) -> Policy | None:
        """What a process of our own may do which works on what others wrote; None: it is not confined."""
        if self.facts is None or self.mode is Mode.OFF:
            return None
        looks = policy.unasked(self.facts, also_readable=(*self.also_readable, *reads))
        return replace(looks, writable=(*looks.writable, *writes))
