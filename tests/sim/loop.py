"""A small deterministic event loop: at each step one ready handle runs, and which one is a choice from outside.

The list of choices is the schedule: the same list gives the same history, to the last step. The clock is virtual and
moves only when nothing is ready. If nothing is ready and no timer is set, the loop is dead, which is a failure.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol

MAX_STEPS = 20_000
"""A history longer than this goes round in circles."""


class Deadlock(Exception):
    """Nothing is ready, nothing is due, and the work is not done."""


class Endless(Exception):
    """The work does not come to an end."""


class Crash(Exception):
    """The world ends here: nothing of this loop runs any more, no `finally` either."""


class Chooser(Protocol):
    def choose(self, ready: int) -> int:
        """Which of `ready` handles, in the order in which they became ready, runs next."""
        ...


@dataclass
class Replay:
    """Follows a schedule; behind its end, first come, first served. Keeps what was offered at each choice."""

    schedule: Sequence[int] = ()
    offered: list[int] = field(default_factory=list)

    def choose(self, ready: int) -> int:
        position = len(self.offered)
        self.offered.append(ready)
        chosen = self.schedule[position] if position < len(self.schedule) else 0
        return min(chosen, ready - 1)


@dataclass
class Shuffle:
    """Chooses at random from a seed, mostly in order: a few delays find more than chaos does."""

    random: Random
    taken: list[int] = field(default_factory=list)
    delay_chance: float = 0.15

    def choose(self, ready: int) -> int:
        chosen = self.random.randrange(1, ready) if self.random.random() < self.delay_chance else 0
        self.taken.append(chosen)
        return chosen


class SimLoop(asyncio.BaseEventLoop):
    """The loop. Has no selector: whatever reaches for a socket, a signal or a thread fails."""

    def __init__(self, chooser: Chooser, crash_after: int = 0) -> None:
        super().__init__()
        self.steps = 0
        self._crash_after = crash_after
        self.failures: list[dict[str, Any]] = []
        self._chooser = chooser
        self._now = 1_000.0
        self.set_exception_handler(lambda loop, context: self.failures.append(context))

    def time(self) -> float:
        return self._now

    def _run_once(self) -> None:
        self._fire_timers()
        ready: Any = self._ready  # type: ignore[attr-defined]
        while ready and ready[0]._cancelled:
            ready.popleft()
        if not ready:
            if self._stopping:  # type: ignore[attr-defined]
                return
            raise Deadlock(f"after {self.steps} steps")
        if self._crash_after and self.steps == self._crash_after:
            raise Crash
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise Endless(f"after {self.steps} steps")
        index = self._chooser.choose(len(ready)) if len(ready) > 1 else 0
        handle = ready[index]
        del ready[index]
        if not handle._cancelled:
            handle._run()

    def _fire_timers(self) -> None:
        """Make due timers ready; when nothing else is, let the time pass until the next one."""
        ready: Any = self._ready  # type: ignore[attr-defined]
        scheduled: Any = self._scheduled  # type: ignore[attr-defined]
        while scheduled and scheduled[0]._cancelled:
            heapq.heappop(scheduled)._scheduled = False
        if scheduled and not ready and not self._stopping:  # type: ignore[attr-defined]
            self._now = max(self._now, scheduled[0]._when)
        while scheduled and scheduled[0]._when <= self._now:
            handle = heapq.heappop(scheduled)
            handle._scheduled = False
            if not handle._cancelled:
                ready.append(handle)

    def run_in_executor(  # type: ignore[override] # nobody here needs its type
        self, executor: Executor | None, func: Callable[..., Any], *args: Any
    ) -> Any:
        """Work for a thread is done at a step of its own."""
        done = self.create_future()

        def work() -> None:
            if done.done():
                return  # whoever asked has left
            try:
                result = func(*args)
            except Exception as error:
                done.set_exception(error)
            else:
                done.set_result(result)

        self.call_soon(work)
        return done

    def _write_to_self(self) -> None:
        pass

    def _process_events(self, event_list: object) -> None:
        pass


@dataclass(frozen=True)
class History:
    """What one schedule led to."""

    schedule: tuple[int, ...]
    offered: tuple[int, ...]
    failure: BaseException | None


Scenario = Callable[[], Coroutine[Any, Any, None]]


def run_schedule(scenario: Scenario, schedule: Sequence[int]) -> History:
    chooser = Replay(schedule)
    failure = _run(scenario, chooser)
    return History(tuple(schedule), tuple(chooser.offered), failure)


def run_seed(scenario: Scenario, seed: int) -> History:
    chooser = Shuffle(Random(seed))
    failure = _run(scenario, chooser)
    return History(tuple(chooser.taken), (), failure)


def run_to_crash(scenario: Scenario, schedule: Sequence[int], step: int) -> bool:
    """Run a schedule and cut it off after `step` steps; False if it was over before."""
    failure = _run(scenario, Replay(schedule), crash_after=step)
    if failure is not None and not isinstance(failure, Crash):
        raise failure
    return isinstance(failure, Crash)


def _run(scenario: Scenario, chooser: Chooser, crash_after: int = 0) -> BaseException | None:
    loop = SimLoop(chooser, crash_after)
    try:
        loop.run_until_complete(scenario())
        if loop.failures:
            return AssertionError(f"left unhandled: {loop.failures}")
    except Exception as error:
        return error
    finally:
        for task in asyncio.all_tasks(loop):
            _forget(task)
        loop.close()
    return None


def _forget(task: asyncio.Task[Any]) -> None:
    """Drop a task that will never go on. What its `finally` still does leads nowhere: this loop takes no more steps."""
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    coroutine = task.get_coro()
    assert coroutine is not None
    with contextlib.suppress(BaseException):
        coroutine.close()


def explore(scenario: Scenario, delays: int, stride: int = 1) -> Iterator[History]:
    """Every schedule with at most `delays` delays, fewest first: most races need one or two.

    A delay lets one handle that became ready later go first. Schedules are unfolded from those with one delay less, by
    putting a further delay behind the last one. A stride of three looks at every third of them.
    """
    pending: list[tuple[int, ...]] = [()]
    for _ in range(delays + 1):
        unfolded: list[tuple[int, ...]] = []
        for schedule in pending:
            history = run_schedule(scenario, schedule)
            yield history
            for position in range(len(schedule), len(history.offered)):
                gap = (0,) * (position - len(schedule))
                unfolded += [(*schedule, *gap, choice) for choice in range(1, history.offered[position])]
        pending = unfolded[::stride]


def shorten(scenario: Scenario, schedule: Sequence[int]) -> tuple[int, ...]:
    """A shorter schedule that fails too: drop delays one after the other while it still does."""
    best = tuple(schedule)
    for position in reversed(range(len(best))):
        if best[position]:
            fewer = (*best[:position], 0, *best[position + 1 :])
            if run_schedule(scenario, fewer).failure:
                best = fewer
    while best and best[-1] == 0:
        best = best[:-1]
    return best
