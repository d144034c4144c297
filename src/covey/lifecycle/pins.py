"""Tools of a server against those that somebody approved: which may be offered, and which are withheld. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PinComparison:
    """What a server offers now, by name."""

    same: tuple[str, ...]
    """As approved: these are offered to the model."""
    new: tuple[str, ...]
    changed: tuple[str, ...]
    """These two are withheld until somebody approves them."""
    gone: tuple[str, ...]
    """Approved, and not there any more."""

    @property
    def withheld(self) -> tuple[str, ...]:
        return (*self.new, *self.changed)


def compare_pins(pinned: Mapping[str, str], offered: Mapping[str, str]) -> PinComparison:
    """Both are digests by name. One that comes back under another name is a new one."""
    return PinComparison(
        same=tuple(name for name in offered if pinned.get(name) == offered[name]),
        new=tuple(name for name in offered if name not in pinned),
        changed=tuple(name for name in offered if name in pinned and pinned[name] != offered[name]),
        gone=tuple(name for name in pinned if name not in offered),
    )
