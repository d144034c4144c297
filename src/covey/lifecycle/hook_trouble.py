"""Exit code 2 means "forbidden" to hooks, and "no such file" to many programs that run them. Pure.

A hook that ends so forbids all the same: else whoever removes its script, a model among them, would have lifted it. But
people are told that it is broken, and how to switch it off, and the model that this is no word of theirs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

_MISSING = re.compile(
    r"no such file or directory|can(?:'t|not) (?:open|find|read|access)|could not (?:open|find)|"
    r"not found|is not recognized|unable to (?:open|read)",
    re.IGNORECASE,
)
"""What python3, sh, perl, jq, grep and others write when they do not find what they are to run or to read."""


def looks_broken(stderr: str) -> bool:
    """Whether a hook that forbade something probably did not run at all: its last line is about a missing file."""
    lines = [line for line in stderr.splitlines() if line.strip()]
    return bool(lines) and _MISSING.search(lines[-1][:2000]) is not None


def missing_script(words: Iterable[str], stderr: str, exists: Callable[[str], bool]) -> str:
    """The file that a hook's command names, that its errors name too, and that is not there; '': there is none."""
    paths = (word for word in words if re.search(r"[/.]", word) and word in stderr)
    return next((path for path in paths if not exists(path)), "")
