"""Exit code 2 means "forbidden" to hooks, and "no such file" to many programs that run them. Pure."""

from __future__ import annotations

import re

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
