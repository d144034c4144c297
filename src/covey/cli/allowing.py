"""How a call that was denied, because nobody could be asked, could be allowed. Does no I/O.

For each call the one option that would allow it, and at the end of the run the lines for config.toml, all together: a
file can have each table once.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable

from covey.lines.plain_text import visible
from covey.protocol.events import PermissionRequest

EDITS = frozenset({"edit", "multiedit", "write", "apply_patch"})
PROTECTED = frozenset({".git", ".covey", "covey.toml"})
"""What `--accept-edits` leaves out, as it leaves out paths outside of the workspace."""
NETWORKED = "bash+network"
"""In a rule of `--allow`: `bash`, with the network."""

Way = Callable[[PermissionRequest], str]
"""What would allow it, as the end of a sentence; '': nothing but a rule in a file."""


class Advice:
    """What is said about the calls of one run that were denied."""

    def __init__(self, way: Way) -> None:
        self._way = way
        self._said: set[str] = set()
        """A model that tries again need not make us say it again."""
        self._path = ""
        self._rules: dict[tuple[str, str], None] = {}

    def sentence(self, request: PermissionRequest) -> str:
        """How to allow this call; '' if that was said before, or no option would."""
        self._path = request.path
        self._rules |= {(rule, request.asks_for): None for rule in request.rules}
        how = self._way(request)
        if not how or how in self._said:
            return ""
        self._said.add(how)
        return f"Allow it {how}"

    def lines(self) -> str:
        """The lines that would allow all of them in this directory; '' if no rule can."""
        if not self._rules:
            return ""
        from covey.config.edit import asked_lines  # late: seldom needed

        lines = asked_lines(self._path, list(self._rules)).split("\n")
        head = (
            "what was denied would be allowed in this directory by these lines in your config.toml "
            "(or by these rules in the `allow` of that table, if it is there):"
        )
        return "\n".join((head, *map(visible, lines)))


def by_options(request: PermissionRequest, *, takes_rules: bool, accepts_edits: bool) -> str:
    """The options of a command that would allow it. `takes_rules`: it has more of them than `--yolo`."""
    if request.asks_for == "everything":
        return "" if request.rules or not takes_rules else "with --yolo --sandbox off"
    if not request.rules or not takes_rules:
        return "with --yolo"
    if not accepts_edits and _is_accepted(request):
        return "with --accept-edits"
    if any(rule != visible(rule) for rule in request.rules):
        return ""  # of several lines, say: it could not be copied from a terminal
    rules = [_networked(rule) if request.asks_for == "network" else rule for rule in request.rules]
    return "with " + visible(" ".join(f"--allow {shlex.quote(rule)}" for rule in rules))


def _networked(rule: str) -> str:
    name, colon, pattern = rule.partition(":")
    return f"{NETWORKED}{colon}{pattern}" if name == "bash" else rule


def _is_accepted(request: PermissionRequest) -> bool:
    """Whether it changes nothing but files that `--accept-edits` is about."""
    paths = [rule.partition(":")[2] for rule in request.rules]
    inside = all(not path.startswith("/") and not PROTECTED.intersection(path.lower().split("/")) for path in paths)
    return request.tool_name in EDITS and inside
