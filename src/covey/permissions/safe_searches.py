"""Searches that pick out secrets by their names: `find -name .env -exec cat`, `grep -r --include=.env`.

A search through all files also meets them, but not in particular, and is not asked about.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from covey.permissions.safe_paths import SECRET, is_secret, may_pick_secret
from covey.permissions.shell_words import Word

_FIND_NAMES = re.compile(r"-i?(?:name|path|wholename|regex|lname)")
_SEARCH = re.compile(r"--(?:include|i?glob|include-dir)(?:=(.*))?|-[A-Za-z0-9.]*g(.*)", re.DOTALL)


def found_by_name(words: Sequence[Word]) -> str:
    """`find`, whose `-exec` reads what it finds: what is wrong with the names that it looks for."""
    texts = [word.text for word in words]
    if "-exec" not in texts:
        return ""
    wanted = [texts[at + 1] for at in range(len(texts) - 1) if _FIND_NAMES.fullmatch(texts[at])]
    return SECRET if any(map(picks_secret, wanted)) else ""


def searched_by_name(name: str, words: Sequence[Word]) -> str:
    """The same for what `grep` and `rg` look into."""
    if name not in ("grep", "egrep", "fgrep", "rg"):
        return ""
    for at, word in enumerate(words):
        if found := _SEARCH.fullmatch(word.text):
            value = found[1] or found[2] or "".join(following.text for following in words[at + 1 : at + 2])
            if not value.startswith("!") and picks_secret(value):
                return SECRET
    return ""


_BY_ENDING = re.compile(r"[*.]*(\.\w+)\$?")


def picks_secret(pattern: str) -> bool:
    """Whether a pattern for names of files means secrets in particular: `.env`, `*.pem`, `*/.ssh/*`; not `*.json`."""
    return any(map(_means_secret, re.split(r"[/\\{},]+", pattern.replace("\\.", "."))))


def _means_secret(part: str) -> bool:
    if ending := _BY_ENDING.fullmatch(part):
        return is_secret(ending[1]) or is_secret(f"a{ending[1]}")
    return is_secret(part) or bool(part and may_pick_secret(part))
