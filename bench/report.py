"""Figures, their targets, and the table that shows them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

SPIN_S = 0.3
"""Some dozens of the scheduler's time slices."""


@dataclass(frozen=True)
class Figure:
    """One measured number. `target` is what it must not exceed (`at_most`) or fall below (`at_least`)."""

    name: str
    value: float
    unit: str
    target: float | None = None
    better: Literal["at_most", "at_least"] = "at_most"
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """How good it is against the target: 1 is just good enough, more is better."""
        if not self.target or not self.value:
            return None
        return self.target / self.value if self.better == "at_most" else self.value / self.target

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"ratio": self.ratio}


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def core_share() -> float:
    """How much of a core a busy process gets right now. Far below 1, the figures tell about the neighbours too."""
    wall, cpu = time.perf_counter(), time.process_time()
    while time.perf_counter() - wall < SPIN_S:
        pass
    return (time.process_time() - cpu) / (time.perf_counter() - wall)


def best_round(rounds: Sequence[Sequence[float]]) -> Sequence[float]:
    """The round with the lowest median: on a shared machine the others tell about the neighbours."""
    return min(rounds, key=statistics.median)


def number(value: float) -> str:
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 100 else f"{value:.3g}"


def header() -> str:
    return f"{'':2}{'figure':<52}{'value':>12} {'unit':<6}{'target':>12}{'ratio':>8}  note"


def line(figure: Figure) -> str:
    sign = "<=" if figure.better == "at_most" else ">="
    target = f"{sign} {number(figure.target)}" if figure.target is not None else ""
    ratio = figure.ratio
    mark = " " if ratio is None else ("+" if ratio >= 1 else "-")
    shown = "" if ratio is None else f"{ratio:.2f}"
    return (
        f"{mark} {figure.name:<52}{number(figure.value):>12} {figure.unit:<6}{target:>12}{shown:>8}  {figure.note}"
    ).rstrip()
