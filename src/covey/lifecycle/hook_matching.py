"""Which hooks are meant, and what they are told: the names and fields that hooks of Claude Code expect. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from covey.protocol.claude_names import CLAUDE_OF
from covey.protocol.messages import SessionMode

MATCHER_LIMIT = 500
_NAMES = re.compile(r"[\w\-,| ]*")
_REPEATED_GROUP = re.compile(r"\)[*+{]")
"""A group that is repeated can take longer than the life of a run, and no list of tools needs one."""

MODES: dict[SessionMode, str] = {
    "ask": "default",
    "plan": "plan",
    "accept_edits": "acceptEdits",
    "sandboxed": "acceptEdits",
}
"""What Claude Code calls our modes; the nearest, where it has none."""
_ALSO = {
    "apply_patch": ("Write", "MultiEdit"),
    "multiedit": ("Edit",),
    "download": ("Write",),
    "agent": ("Agent",),
}
_PATHS = frozenset({"file_path", "path"})


def wrong_matcher(matcher: str) -> str:
    """Why a matcher cannot be used, for people; '' if it can."""
    if len(matcher) > MATCHER_LIMIT:
        return f"it is longer than {MATCHER_LIMIT} characters"
    if _NAMES.fullmatch(matcher) or matcher == "*":
        return ""
    if _REPEATED_GROUP.search(matcher):
        return "a group in it is repeated, which could take for ever"
    try:
        re.compile(matcher)
    except (re.error, RecursionError, OverflowError) as error:
        return f"it is no regular expression: {error}"
    return ""


@lru_cache(maxsize=256)
def _pattern(matcher: str) -> re.Pattern[str] | None:
    return None if wrong_matcher(matcher) else re.compile(matcher)


def fits(matcher: str, names: Sequence[str]) -> bool:
    """Whether a matcher means one of these names: a list of names, else an expression that is found in one of them."""
    matcher = matcher.strip()
    if matcher in ("", "*"):
        return True
    if _NAMES.fullmatch(matcher):
        listed = {name.strip() for name in re.split(r"[,|]", matcher)}
        return not listed.isdisjoint(names)
    pattern = _pattern(matcher)
    return pattern is not None and any(pattern.search(name[:200]) for name in names)


def names_of(tool: str) -> tuple[str, ...]:
    """By which names a tool is known to hooks, the one they are told first.

    Whoever guards Edit and Write means every way to change a file.
    """
    return tuple(dict.fromkeys((CLAUDE_OF.get(tool, tool), *_ALSO.get(tool, ()), tool)))


def told_name(tool: str) -> str:
    """What a hook is told as the name of a tool."""
    return names_of(tool)[0]


def told_input(tool: str, given: Mapping[str, Any], root: str, paths: Sequence[str] = ()) -> dict[str, Any]:
    """The input of a call with the fields that hooks expect: full paths, and `file_path` also for a patch.

    `paths`: what the call is about to change, where its input does not say so by itself.
    """
    told = {name: _full(value, root) if name in _PATHS else value for name, value in given.items()}
    if tool == "apply_patch" and paths:
        told |= {"file_path": paths[0], "file_paths": list(paths)}
    if tool == "agent":
        told |= {"subagent_type": given.get("agent") or "general-purpose", "description": _beginning(given)}
    if tool == "skill":
        told |= {"skill": given.get("name", "")}
    return told


def _beginning(given: Mapping[str, Any]) -> str:
    return str(given.get("prompt", "")).strip().partition("\n")[0][:60]


def _full(value: Any, root: str) -> Any:
    return (
        f"{root.rstrip('/')}/{value}"
        if isinstance(value, str) and value and not value.startswith(("/", "~"))
        else value
    )


def rewritten_input(given: Mapping[str, Any], told: Mapping[str, Any], updated: Mapping[str, Any]) -> dict[str, Any]:
    """The input of a call after hooks have changed what they were told of it. What they left alone is as it was."""
    kept = {name: value for name, value in given.items() if name in updated}
    changed = {name: value for name, value in updated.items() if name not in told or told[name] != value}
    return {**kept, **changed}
