"""How much of the same is tried: once each in `make test`, all of it in `make heavy`."""

from __future__ import annotations

import os
from typing import TypeVar

T = TypeVar("T")

IS_HEAVY = os.environ.get("COVEY_HEAVY") == "1"


def bound(usual: T, heavy: T) -> T:
    """How far a test goes. With the usual bound it shows the same, with fewer examples; mark it with `larger`."""
    return heavy if IS_HEAVY else usual
