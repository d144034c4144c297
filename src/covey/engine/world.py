"""What the engine takes from the world around it: the time of day, and ids that nobody has used before."""

from __future__ import annotations

import time
from collections.abc import Callable

EPOCH_S = 1_767_225_600
"""1 January 2026: ids count from here, which keeps them short."""
TICKS_PER_S = 10_000
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
"""In the order of their codes, so that ids sort as their numbers do."""


class World:
    """The wall clock and the ids of one server. A simulation gives its own clock."""

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self.now = now
        self._last_tick = 0

    def now_s(self) -> int:
        return int(self.now())

    def start_after(self, newest_id: str) -> None:
        """Give out no id up to this one, which is in the store: the clock may have been set back since."""
        self._last_tick = max(self._last_tick, _tick(newest_id))

    def new_id(self) -> str:
        """A short id that sorts by time. One server owns a store, so counting up is enough to be unique.

        Short, because three of them are in every delta that is sent.
        """
        tick = int((self.now() - EPOCH_S) * TICKS_PER_S)
        self._last_tick = max(self._last_tick + 1, tick)
        return _in_digits(self._last_tick)


def time_of(made: str) -> float:
    """When an id was given out, in unix seconds; 0 for one that is not of this kind."""
    tick = _tick(made)
    return EPOCH_S + tick / TICKS_PER_S if tick else 0.0


def _tick(made: str) -> int:
    if not all(digit in _DIGITS for digit in made):
        return 0
    tick = 0
    for digit in made:
        tick = tick * len(_DIGITS) + _DIGITS.index(digit)
    return tick


def _in_digits(number: int) -> str:
    digits = []
    while number > 0:
        number, digit = divmod(number, len(_DIGITS))
        digits.append(_DIGITS[digit])
    return "".join(reversed(digits)) or "0"
