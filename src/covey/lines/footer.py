"""The last line of a run: what it was, what it took, and what can be done next."""

from __future__ import annotations

from dataclasses import dataclass

from covey.lines.line import Span, StyledLine
from covey.lines.widths import width
from covey.lines.words import counted, dollars, lasted


@dataclass(frozen=True, slots=True)
class RunFacts:
    session: str
    """Its id, or as much of it as tells it from others."""
    steps: int
    seconds: float
    cost: float | None = None
    files: int = 0
    model: str = ""
    """That has answered."""


def footer_line(facts: RunFacts, columns: int) -> StyledLine:
    """Where there is no room, the model is left out first, then what is nearest to the end."""
    pieces = [f"session {facts.session}", counted(facts.steps, "step"), lasted(facts.seconds)]
    if facts.cost:
        pieces.append(dollars(facts.cost))
    if facts.files:
        pieces.append(f"{counted(facts.files, 'file')} changed")
    pieces.append('covey run -C "…"')
    if facts.files:
        pieces.append("covey undo")
    if facts.model:
        named = [pieces[0], facts.model, *pieces[1:]]
        pieces = named if width(" · ".join(named)) <= columns else pieces
    while len(pieces) > 1 and width(" · ".join(pieces)) > columns:
        pieces.pop()
    return StyledLine((Span(" · ".join(pieces), "dim"),))
