"""What `covey doctor` tells about rules that hold in every directory: once, and again when there is another one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from covey.config.edit import rule_lines
from covey.config.global_rules import find_global_rules

SHOWN_FILE = "global-rules-shown"
"""In the data directory: a digest for each rule that was shown."""
UNKNOWN = "/the/full/path/of/the/directory"


@dataclass(frozen=True)
class GlobalRules:
    """Global rules that may have been meant for one directory, and where each of them was asked about."""

    file: Path
    asked_in: Mapping[str, tuple[str, ...]]
    """By rule: directories, as far as the log of events still knows."""

    def as_json(self) -> list[dict[str, Any]]:
        return [{"rule": rule, "directories": list(asked)} for rule, asked in self.asked_in.items()]

    def text(self) -> str:
        """What they mean, and the lines that would say the same about one directory."""
        by_directory: dict[str, list[str]] = {}
        for rule, directories in self.asked_in.items():
            for directory in directories or (UNKNOWN,):
                by_directory.setdefault(directory, []).append(rule)
        return "\n".join(
            (
                f"These rules of {self.file} hold in every directory:",
                *(f"  {' '.join(rule.split())}" for rule in self.asked_in),
                'Earlier versions wrote such a rule when you answered "always"; now that holds in one directory only.',
                "If that is what you meant, remove them from `allow` in [permissions], and add instead:",
                "",
                *(rule_lines(directory, "allow", rules) for directory, rules in by_directory.items()),
                "",
                "If you meant every directory, leave them as they are: this is not shown again.",
            )
        )

    def is_new(self, data_dir: Path) -> bool:
        """Whether one of them was never shown."""
        shown: set[str] = set()
        with suppress(OSError, ValueError):
            shown = set((data_dir / SHOWN_FILE).read_text().split())
        return not shown.issuperset(self._digests)

    def note_shown(self, data_dir: Path) -> None:
        with suppress(OSError):  # then they are shown again
            (data_dir / SHOWN_FILE).write_text("".join(f"{digest}\n" for digest in self._digests))

    @property
    def _digests(self) -> list[str]:
        return [sha256(rule.encode("utf-8", "backslashreplace")).hexdigest() for rule in self.asked_in]


def find(environ: Mapping[str, str], requests: Iterable[tuple[str, Any]]) -> GlobalRules:
    """`requests`: the directory of each permission request that is known, and the rules that it offered.

    Raises ConfigError if the user's file cannot be read.
    """
    file, rules = find_global_rules(environ)
    asked_in: dict[str, dict[str, None]] = {rule: {} for rule in rules}
    for directory, offered in requests:
        for rule in offered if isinstance(offered, list) else ():
            if isinstance(rule, str) and rule in asked_in:
                asked_in[rule][directory] = None
    return GlobalRules(file, {rule: tuple(directories) for rule, directories in asked_in.items()})
