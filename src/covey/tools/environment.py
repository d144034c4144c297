"""The environment of everything that tools start: the user's, without the keys that are for the server alone. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from covey.machine.names import TOKEN_VARIABLE
from covey.tools.git_guard import guarded

NEVER = frozenset({TOKEN_VARIABLE, "CDPATH"})
"""The token opens the server itself, to everything. With CDPATH, `cd` would lead elsewhere than it says."""


def tool_environment(
    inherited: Mapping[str, str], keys: Collection[str], passed: Collection[str] = ()
) -> dict[str, str]:
    """What a command finds in its environment: what a model can print, everybody who watches can read.

    `keys` names the variables with providers' keys; of those, only the ones in `passed` go along.
    """
    left_out = NEVER | (frozenset(keys) - frozenset(passed))
    return guarded({name: value for name, value in inherited.items() if name not in left_out})
