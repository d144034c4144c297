"""The environment of everything that tools start: the user's, without the keys that are for the server alone. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from covey.machine.names import TOKEN_VARIABLE
from covey.tools.git_guard import guarded

NEVER = frozenset({TOKEN_VARIABLE, "CDPATH"})
"""The token opens the server itself, to everything. With CDPATH, `cd` would lead elsewhere than it says."""


FOR_EXTENSIONS = frozenset({"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER", "LANG"})
"""What an extension gets of the user's environment, beside LC_*: what programs need to start and find their files."""


def extension_environment(
    inherited: Mapping[str, str], named: Mapping[str, str], keys: Collection[str], passed: Collection[str] = ()
) -> dict[str, str]:
    """What the process of an extension finds in its environment: a short list, and what its entry names.

    A stranger's program runs in it, often for days: a provider's key goes along only if its name is in `passed`.
    """
    kept = {name: value for name, value in inherited.items() if name in FOR_EXTENSIONS or name.startswith("LC_")}
    return tool_environment({**kept, **named}, keys, passed)


def tool_environment(
    inherited: Mapping[str, str], keys: Collection[str], passed: Collection[str] = ()
) -> dict[str, str]:
    """What a command finds in its environment: what a model can print, everybody who watches can read.

    `keys` names the variables with providers' keys; of those, only the ones in `passed` go along.
    """
    left_out = NEVER | (frozenset(keys) - frozenset(passed))
    return guarded({name: value for name, value in inherited.items() if name not in left_out})
