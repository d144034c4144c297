"""The encoding in which commands read their text: always UTF-8, in which they were judged."""

from __future__ import annotations

import re
from collections.abc import Mapping

UTF_8 = "C.UTF-8"
_READS_AS_JUDGED = re.compile(r"|C|POSIX|.*utf-?8(?:@.*)?", re.IGNORECASE)
"""UTF-8, or single bytes of which only those of ASCII mean something. A system without C.UTF-8 falls back to these."""


def in_utf8(env: Mapping[str, str]) -> dict[str, str]:
    """The environment, with a locale in which no shell takes a backslash or a quote for half of a character."""
    locale = env.get("LC_ALL") or env.get("LC_CTYPE") or env.get("LANG") or ""
    return dict(env) if _READS_AS_JUDGED.fullmatch(locale) else {**env, "LC_ALL": UTF_8}
