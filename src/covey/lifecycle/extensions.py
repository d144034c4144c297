"""The life of an extension, as a value: facts in, the next life and one decision out. The shell starts and stops.

It is off, starting, ready, waiting for a login or an approval, failed, or resting. At most one process of it exists;
what crashes again and again is left alone for a while. Knows nothing of MCP or language servers, and reads no clock.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from covey.protocol.extensions import ExtensionState

RESTARTS = 3
WINDOW_S = 600.0
"""What ended by itself is started again at most so often within so many seconds: then its trouble will not pass."""


class Decision(Enum):
    NOTHING = "nothing"
    START = "start"
    """Start it; say `started`, `failed`, `needs_login` or `needs_approval` in the end."""
    STOP = "stop"
    """End what runs of it. Nothing is said of that."""


@dataclass(frozen=True, slots=True)
class ExtensionLife:
    """What becomes of one extension. Each fact gives the life after it, and what the shell must do."""

    state: ExtensionState = "off"
    why: str = ""
    restarts: tuple[float, ...] = ()
    """When it was started although it had failed before."""
    is_approved: bool = False
    is_closed: bool = False

    @property
    def has_process(self) -> bool:
        """Something of it may run."""
        return self.state in ("starting", "ready")

    def refusal(self, now: float) -> str:
        """Why it cannot be started now; empty if it can, or runs already."""
        if self.is_closed:
            return "the workspace is closing"
        if not self.is_approved:
            return "nobody has approved it"
        if self.state == "needs_login":
            return self.why or "it needs a login"
        if self.state == "failed" and (wait := self._wait(now)):
            return f"{self.why} (it was started again {RESTARTS} times; it is tried again in {wait:.0f} s)"
        return ""

    def wanted(self, now: float) -> tuple[ExtensionLife, Decision]:
        """Somebody needs it. Ask `refusal` for what to tell them if nothing is decided."""
        if self.has_process or self.refusal(now):
            return self, Decision.NOTHING
        restarts = self._recent(self.restarts, now)
        if self.state == "failed":
            restarts = (*restarts, now)
        return replace(self, state="starting", why="", restarts=restarts), Decision.START

    def approved(self) -> tuple[ExtensionLife, Decision]:
        """What would be executed is approved. It is started when somebody wants it."""
        if self.is_closed or self.is_approved:
            return self, Decision.NOTHING
        return replace(self, state="off", why="", is_approved=True), Decision.NOTHING

    def unapproved(self, why: str) -> tuple[ExtensionLife, Decision]:
        """What would be executed is not, or no longer, what somebody approved."""
        return self._stopped("needs_approval", why, is_approved=False)

    def started(self) -> tuple[ExtensionLife, Decision]:
        if self.state != "starting":
            return self, Decision.NOTHING  # it was stopped meanwhile
        return replace(self, state="ready", why=""), Decision.NOTHING

    def failed(self, why: str) -> tuple[ExtensionLife, Decision]:
        """The start failed, or what ran has ended by itself or broke a bound."""
        if not self.has_process:
            return self, Decision.NOTHING  # it was stopped meanwhile: that it is gone is no news
        return replace(self, state="failed", why=why), Decision.STOP

    def needs_login(self, why: str) -> tuple[ExtensionLife, Decision]:
        return self._stopped("needs_login", why) if self.has_process else (self, Decision.NOTHING)

    def logged_in(self) -> tuple[ExtensionLife, Decision]:
        """Somebody has logged in: the next who needs it may try."""
        changed = self.state == "needs_login"
        return (replace(self, state="off", why="") if changed else self), Decision.NOTHING

    def idle(self) -> tuple[ExtensionLife, Decision]:
        """Nobody has needed it for long."""
        return self._stopped("resting", "") if self.state == "ready" else (self, Decision.NOTHING)

    def switched_off(self, why: str = "") -> tuple[ExtensionLife, Decision]:
        """Somebody wants it to end, or its entry is another one now. A want starts it again."""
        forgiven = replace(self, restarts=())
        return forgiven._stopped("off" if self.is_approved else self.state, why or self.why)

    def closed(self) -> tuple[ExtensionLife, Decision]:
        """Its workspace closes: nothing is started any more."""
        life, decision = self._stopped("off", "")
        return replace(life, is_closed=True), decision

    def _stopped(
        self, state: ExtensionState, why: str, *, is_approved: bool | None = None
    ) -> tuple[ExtensionLife, Decision]:
        decision = Decision.STOP if self.has_process else Decision.NOTHING
        approved = self.is_approved if is_approved is None else is_approved
        return replace(self, state=state, why=why, is_approved=approved), decision

    def _wait(self, now: float) -> float:
        """Seconds until another start is allowed."""
        recent = self._recent(self.restarts, now)
        return max(0.0, recent[-RESTARTS] + WINDOW_S - now) if len(recent) >= RESTARTS else 0.0

    @staticmethod
    def _recent(times: tuple[float, ...], now: float) -> tuple[float, ...]:
        return tuple(at for at in times if at > now - WINDOW_S)
