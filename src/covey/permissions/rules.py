"""Rules: `tool`, or `tool:pattern`. What is allowed is read strictly, what is denied or asked about generously."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True, slots=True)
class Rules:
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    root: str = ""
    """The workspace's directory, from which relative patterns are seen."""


def patterns(rules: Iterable[str], tool: str) -> Iterator[str]:
    """The patterns of the rules about a tool; empty for one that covers the whole tool."""
    for rule in rules:
        name, _, pattern = rule.partition(":")
        if name == tool:
            yield pattern


def path_allowed(rules: Iterable[str], tool: str, path: str, root: str) -> bool:
    """Whether an allow rule fits. `*` stays in its directory, and `.git` is only meant where it is named."""
    return any(not pattern or _fits_strictly(path, pattern, root) for pattern in patterns(rules, tool))


def path_hit(rules: Iterable[str], tool: str, path: str, root: str) -> str | None:
    """The deny or ask rule that fits, if any. Here `*` stands for any text, also across directories."""
    for pattern in patterns(rules, tool):
        if not pattern or any(
            fnmatchcase(name, variant)
            for name in (path, _seen_from(root, path) or path)
            for variant in (pattern, pattern.replace("**/", ""), pattern.replace("/**", ""))
        ):
            return f"{tool}:{pattern}" if pattern else tool
    return None


def _fits_strictly(path: str, pattern: str, root: str) -> bool:
    parts = path.split("/")
    if ".." in parts:
        return False
    if path.startswith("/") and not pattern.startswith("/"):
        inside = _seen_from(root, path)
        if inside is None:
            return False
        parts = inside.split("/")
    wanted = pattern.split("/")
    if ".git" in parts and ".git" not in wanted:
        return False  # what stands there makes git run programs
    return _fit(parts, wanted)


def _seen_from(root: str, path: str) -> str | None:
    prefix = f"{root.rstrip('/')}/"
    return path[len(prefix) :] if root and path.startswith(prefix) else None


def _fit(parts: Sequence[str], wanted: Sequence[str]) -> bool:
    """Part by part; `**` is any number of parts, though at the end one at least. Only the last `**` is tried again."""
    at = want = 0
    resume: tuple[int, int] | None = None
    while at < len(parts):
        if want < len(wanted) and wanted[want] == "**":
            resume, want = (at, want), want + 1
        elif want < len(wanted) and fnmatchcase(parts[at], wanted[want]):
            at, want = at + 1, want + 1
        elif resume:
            resume = (resume[0] + 1, resume[1])
            at, want = resume[0], resume[1] + 1
        else:
            return False
    return want == len(wanted)


def escape(text: str) -> str:
    """A pattern that fits this very text."""
    return re.sub(r"([*?\[])", r"[\1]", text)


def exact(pattern: str) -> str | None:
    """The only text that a pattern fits; None if there are more."""
    plain = re.sub(r"\[([*?\[])\]", "", pattern)
    return None if re.search(r"[*?\[]", plain) else re.sub(r"\[([*?\[])\]", r"\1", pattern)
