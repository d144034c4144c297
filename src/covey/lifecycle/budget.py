"""What a run may use: the price of tokens, and when a turn goes round in circles."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from covey.lifecycle.reply import UsageReported
from covey.protocol.runs import Usage

LOOP_WINDOW = 10
"""How many of the last tool calls are looked at for one that comes back."""
LOOP_REPEATS = 5
"""The same call with the same result more often than this is a loop: polling seldom needs more."""
CYCLE_LENGTH = 10
"""The longest sequence of calls that is recognised when it comes again and again."""
SUMMARIES_IN_A_ROW = 3
"""So many summaries with a single step after each one: the next would bring the work no further."""


@dataclass(frozen=True, slots=True)
class Price:
    """What a model costs, in dollars for a million tokens."""

    prompt: float = 0.0
    completion: float = 0.0
    cached: float | None = None
    """For prompt tokens out of a cache; None: like the others."""
    cache_write: float | None = None

    def usage(self, report: UsageReported) -> Usage:
        cached, written = report.cached_tokens, report.cache_write_tokens
        fresh = report.prompt_tokens - cached - written
        read_price = self.prompt if self.cached is None else self.cached
        write_price = self.prompt if self.cache_write is None else self.cache_write
        cost = fresh * self.prompt + cached * read_price + written * write_price
        return Usage(
            prompt_tokens=report.prompt_tokens,
            completion_tokens=report.completion_tokens,
            cached_tokens=cached,
            cost=(cost + report.completion_tokens * self.completion) / 1e6 if report.cost is None else report.cost,
        )


def is_too_long(used_tokens: int, context_window: int, share: float) -> bool:
    """Whether a conversation should be summarised before the model reads it again. A window of 0 is not known."""
    return bool(context_window and share) and used_tokens > context_window * share


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a run may cost, in dollars; 0 for no bound. Looked at before each step: a step is never cut short for it."""

    run: float = 0.0
    session: float = 0.0
    run_bound: str = "limits.cost_per_run"
    """What sets the bound of the run, as people and models read it."""

    def exceeded(self, run_cost: float, session_cost: float) -> str:
        """Which bound is reached, for people; empty if none. `session_cost` is without this run."""
        if self.run and run_cost >= self.run:
            return f"stopped: this run has cost ${run_cost:.4f}, and it may cost ${self.run:g} ({self.run_bound})"
        total = run_cost + session_cost
        if self.session and total >= self.session:
            bound = f"${self.session:g} (limits.cost_per_session)"
            return f"stopped: this session has cost ${total:.4f}, and it may cost {bound}"
        return ""

    def left(self, run_cost: float, session_cost: float) -> float | None:
        """What may still be spent; None: there is no bound."""
        left = [self.run - run_cost] if self.run else []
        left += [self.session - run_cost - session_cost] if self.session else []
        return min(left, default=None)


@dataclass(slots=True)
class Purse:
    """The money of one run. Agents that work for the run spend from here too, so that all share one bound."""

    bounds: Callable[[], tuple[Bounds, float]]
    """What may be spent as things stand, and what the session had cost before."""
    owner: Purse | None = None
    """That of the run which this one works for."""
    spent: float = 0.0
    """Dollars, with those of all who work for the run."""

    def spend(self, dollars: float) -> None:
        self.spent += dollars
        if self.owner:
            self.owner.spend(dollars)

    @property
    def is_empty(self) -> bool:
        """Nothing may be spent any more, by this run or by one that it works for."""
        bounds, before = self.bounds()
        left = bounds.left(self.spent, before)
        return (left is not None and left <= 0) or (self.owner is not None and self.owner.is_empty)

    def refusal(self) -> str:
        """Why the run may not go on, for people; empty if it may."""
        bounds, before = self.bounds()
        if why := bounds.exceeded(self.spent, before):
            return why
        if self.owner and self.owner.is_empty:
            return "stopped: the run that it works for has spent what it may"
        return ""


class LoopGuard:
    """Notices a model that makes the same tool calls, with the same results, again and again: one, or a cycle of them.

    A call is compared by its hash: what a long result was need not be kept for that.
    """

    def __init__(self) -> None:
        self._recent: deque[int] = deque(maxlen=max(LOOP_WINDOW, CYCLE_LENGTH))
        self._equal = [0] * (CYCLE_LENGTH + 1)
        """For each length of a cycle: how many of the last calls, in a row, equal the one so many calls before."""

    def saw(self, tool: str, tool_input: str, result: str) -> bool:
        """Note one call; True if the turn is in a loop."""
        call = hash((tool, tool_input, result))
        for length in range(1, CYCLE_LENGTH + 1):
            same = length <= len(self._recent) and self._recent[-length] == call
            self._equal[length] = self._equal[length] + 1 if same else 0
        self._recent.append(call)
        again = any(self._equal[length] >= LOOP_REPEATS * length for length in range(1, CYCLE_LENGTH + 1))
        return again or self._recent.count(call) > LOOP_REPEATS


@dataclass(slots=True)
class SummaryGuard:
    """Notices a turn that only summarises: what a summary frees is filled again by the very next step."""

    in_a_row: int = 0
    """Summaries of which each came after a single step."""
    steps: int = 2
    """Since the last summary. The first summary of a turn follows on all that was said before it."""

    def stepped(self) -> None:
        self.steps += 1

    def summarised(self) -> bool:
        """Note one summary; True if another one would be in vain."""
        self.in_a_row = self.in_a_row + 1 if self.steps <= 1 else 1
        self.steps = 0
        return self.in_a_row > SUMMARIES_IN_A_ROW
