"""Options that write or run something, of programs that otherwise only look.

Whoever allows `git log*` means looking. So a pattern with a wildcard covers such an option only if it names it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from covey.permissions.rules import exact
from covey.permissions.shell_words import Word

_RISKY = {
    "git": re.compile(
        r"--o(?:u(?:t(?:p(?:ut?)?)?)?)?(?:=.*)?|--output-d.*|--ext-diff|--textconv|-O.*|--open-files-in-pager.*"
        r"|--exec(?:=.*)?|--(?:upload|receive)-pack.*"
    ),
    "find": re.compile(r"-delete|-(?:exec|ok)(?:dir)?|-fls|-fprint[0f]?"),
    "rg": re.compile(r"--pre(?:=.*)?|--hostname-bin.*"),
    "sed": re.compile(r"-[nErsuz]*i.*|--i.*", re.DOTALL),
    "sort": re.compile(r"-[bdfghiMnRrVcCmsuz]*o.*|--o.*|--co.*"),
    "tree": re.compile(r"-[A-Za-z]*o"),
    "date": re.compile(r"-[uR]*s.*|--s.*"),
}
_GIT_SETTINGS = re.compile(r"-c.*|--config-env.*|--exec-path=.*")
"""Before the subcommand: they set what git runs."""


def names_risks(pattern: str, words: Sequence[Word]) -> bool:
    """Whether an allow pattern that fits a command means it: every option in it that writes or runs is named."""
    if exact(pattern) is not None:
        return True
    return all(risk.partition("=")[0] in pattern for risk in _risks(words))


def _risks(words: Sequence[Word]) -> list[str]:
    name, texts = words[0].text.rpartition("/")[2], [word.text for word in words[1:]]
    listed = _RISKY.get(name)
    found = [text for text in texts if listed and listed.fullmatch(text)]
    if name == "git":
        for text in texts:
            if not text.startswith("-"):
                break
            if _GIT_SETTINGS.fullmatch(text):
                found.append(text)
    return found
