"""What commands print, as far as it matters: in `$(…)` without quotes, a pattern becomes names of files."""

from __future__ import annotations

import re
from collections.abc import Sequence

from covey.permissions.shell_commands import SimpleCommand
from covey.permissions.shell_words import WordKind

_PATTERN = re.compile(r"[*?\[\\]")
_PRINTS_FACTS = frozenset({"arch", "date", "hostname", "id", "nproc", "pwd", "seq", "tty", "uname", "wc", "whoami"})
"""Their output holds no text of files, and no pattern that was not written in their words."""
_GIT_FACTS = frozenset({"rev-parse", "ls-files", "merge-base", "count-objects"})
"""Names in a repository may hold patterns, but none that leads out of it."""


def may_print_patterns(commands: Sequence[SimpleCommand]) -> bool:
    """Whether the output of these commands may hold a pattern that leads anywhere."""
    return not all(_prints_facts(command) for command in commands)


def _prints_facts(command: SimpleCommand) -> bool:
    texts = [word.text for word in command.words]
    if not texts:
        return True
    plain = (WordKind.LITERAL, WordKind.NUMBER)
    if any(word.kind not in plain or _PATTERN.search(word.text) for word in command.words):
        return False
    return texts[0] in _PRINTS_FACTS or (texts[0] == "git" and not _GIT_FACTS.isdisjoint(texts[1:2]))
