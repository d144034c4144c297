"""What runs have used, as it crosses the wire."""

from __future__ import annotations

from covey.protocol.messages import Wire


class Spending(Wire, frozen=True, omit_defaults=False):
    """What the turns of one day, one workspace and one model used together."""

    day: str
    """`YYYY-MM-DD`, in UTC: the day on which a turn ended."""
    workspace_id: str
    path: str
    model: str
    """`provider/model`; '' if that is not known."""
    runs: int
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    cost: float
    """Dollars, by the prices that were known then."""
