"""What servers of models have taught us by refusing it: kept while this process lives, whoever asks them next.

A client lives as long as a workspace is open, and a request that is known to be refused need not be made in each run.
"""

from __future__ import annotations

from dataclasses import dataclass, field

KEPT = 200
"""Servers that are remembered. There are more only where addresses change, and then the older ones are gone."""


@dataclass(slots=True)
class Lessons:
    """Of one server. Models are known by their ids."""

    refused: dict[str, set[str]] = field(default_factory=dict)
    """For each model, the optional fields that it refused."""
    thinking: set[str] = field(default_factory=set)
    """The models that have sent their thoughts as `reasoning_content`, and did not refuse them in a question."""
    thinkers: set[str] = field(default_factory=set)
    """The models that asked for all their thoughts, as DeepSeek's do since 2026 and did not before."""
    refuse_thoughts: set[str] = field(default_factory=set)


_KNOWN: dict[tuple[str, str, str], Lessons] = {}


def lessons_of(format: str, provider_id: str, url: str) -> Lessons:
    """Those of the server at this address, in this format."""
    known = _KNOWN.setdefault((format, provider_id, url), Lessons())
    while len(_KNOWN) > KEPT:
        del _KNOWN[next(iter(_KNOWN))]
    return known


def forget_all() -> None:
    """As if this process had just begun."""
    _KNOWN.clear()
