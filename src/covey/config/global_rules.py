"""Allow rules that hold in every directory although they may have been meant for one. Reads only.

Earlier versions wrote the rules of an answer "always" into the global `[permissions]`. They look the same as those that
were written by hand, so nothing is decided here: people are shown them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from covey.config.check import check
from covey.config.expand import expand
from covey.config.load import blaming, config_dir, parse, read_text
from covey.config.schema import Files
from covey.permissions.rules import exact


def find_global_rules(environ: Mapping[str, str]) -> tuple[Path, tuple[str, ...]]:
    """The user's own file, and the global rules in it that name one command, or one file seen from a workspace.

    Raises ConfigError if the file cannot be read.
    """
    path = config_dir(environ) / "config.toml"
    with blaming(path):
        data = expand(parse(read_text(path) or ""), environ, [])
        check(data, Files)
    entries = data.get("permissions", {}).get("allow", ())
    allowed = dict.fromkeys(entry if isinstance(entry, str) else entry["rule"] for entry in entries)
    return path, tuple(rule for rule in allowed if _names_one_thing_here(rule))


def _names_one_thing_here(rule: str) -> bool:
    """Whether "always" may have written it, and it is about something else in each directory.

    An absolute path, or a URL, is the same thing everywhere.
    """
    tool, _, pattern = rule.partition(":")
    is_relative = tool == "bash" or not (pattern.startswith("/") or "://" in pattern)
    return bool(pattern) and is_relative and exact(pattern) is not None
