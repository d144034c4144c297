"""Rules: `tool`, or `tool:pattern`. What is allowed is read strictly, what is denied or asked about generously."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase


@dataclass(frozen=True, slots=True)
class Rules:
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    root: str = ""
    """The workspace's directory, from which relative patterns are seen."""
    own: tuple[str, ...] = ()
    """Covey's own directories (configuration, data): an allow rule covers them only where it names them."""
    networked: tuple[str, ...] = ()
    """Of the allow rules, those that give a command the network too."""
    unsandboxed: tuple[str, ...] = ()
    """Of the allow rules, those whose commands run without the sandbox."""
    required: tuple[str, ...] = ()
    """Of the allow rules, those whose commands run only where the sandbox holds."""

    def allowing(self, more: Sequence[str]) -> Rules:
        """These, and what a prompt allows its run besides."""
        allowed = tuple(map(plain_rule, more))
        networked = tuple(plain_rule(rule) for rule in more if rule != plain_rule(rule))
        return replace(self, allow=self.allow + allowed, networked=self.networked + networked) if more else self


_NETWORKED = "bash+network"


def plain_rule(rule: str) -> str:
    """A rule that a prompt brings along, without that it gives the network: `bash:x` of `bash+network:x`."""
    name, colon, pattern = rule.partition(":")
    return f"bash{colon}{pattern}" if name == _NETWORKED else rule


PROTECTED = frozenset({".git", "covey.toml", ".covey"})
"""Names whose content makes git run programs, or changes Covey's own rules. An allow pattern has to name them."""


def patterns(rules: Iterable[str], tool: str) -> Iterator[str]:
    """The patterns of the rules about a tool; empty for one that covers the whole tool."""
    for rule in rules:
        name, _, pattern = rule.partition(":")
        if name == tool:
            yield pattern


def path_allowed(rules: Rules, tool: str, path: str, *, changes: bool) -> bool:
    """Whether an allow rule covers it. `*` stays in its directory; what is protected must be named."""
    return any(_covers(pattern, tool, path, rules, changes) for pattern in patterns(rules.allow, tool))


def _covers(pattern: str, tool: str, path: str, rules: Rules, changes: bool) -> bool:
    if pattern:
        return _fits_strictly(path, pattern, rules.root) and _names_own(pattern, path, rules)
    if not changes:
        return True
    place = path.partition(" -> ")[2] if tool == "download" else path
    inside = seen_from(rules.root, place)
    return inside is not None and not _protected(inside.split("/")) and _names_own("", place, rules)


def _names_own(pattern: str, path: str, rules: Rules) -> bool:
    """Whether a path is none of Covey's own, or the pattern itself begins with the directory that is."""
    full = pattern if pattern.startswith("/") else f"{rules.root.rstrip('/')}/{pattern}"
    return all(_is_in(full, own) or not _is_in(path, own) for own in rules.own)


def _is_in(path: str, directory: str) -> bool:
    return f"{path}/".startswith(f"{directory.rstrip('/')}/")


def _protected(parts: Sequence[str]) -> frozenset[str]:
    return PROTECTED.intersection(part.lower() for part in parts)


def path_hit(rules: Iterable[str], tool: str, path: str, root: str) -> str | None:
    """The deny or ask rule that fits, if any. Here `*` stands for any text, also across directories."""
    for pattern in patterns(rules, tool):
        if not pattern or any(
            fnmatchcase(name, variant)
            for name in (path, seen_from(root, path) or path)
            for variant in (pattern, pattern.replace("**/", ""), pattern.replace("/**", ""))
        ):
            return f"{tool}:{pattern}" if pattern else tool
    return None


def _fits_strictly(path: str, pattern: str, root: str) -> bool:
    parts = path.split("/")
    if ".." in parts:
        return False
    if path.startswith("/") and not pattern.startswith("/"):
        inside = seen_from(root, path)
        if inside is None:
            return False
        parts = inside.split("/")
    wanted = pattern.split("/")
    if not _protected(parts) <= set(wanted):
        return False
    return _fit(parts, wanted)


def seen_from(root: str, path: str) -> str | None:
    """A path inside of the root, as seen from there; None for any other."""
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
