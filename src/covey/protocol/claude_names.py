"""The names by which other agents know our tools, and their inputs: skills, agents and hooks are written for those."""

from __future__ import annotations

import re

CLAUDE_OF: dict[str, str] = {
    "bash": "Bash",
    "view": "Read",
    "write": "Write",
    "edit": "Edit",
    "multiedit": "MultiEdit",
    "apply_patch": "Edit",
    "glob": "Glob",
    "grep": "Grep",
    "ls": "LS",
    "fetch": "WebFetch",
    "download": "Download",
    "web_search": "WebSearch",
    "todos": "TodoWrite",
    "question": "AskUserQuestion",
    "agent": "Task",
    "skill": "Skill",
    "job_output": "BashOutput",
    "job_kill": "KillShell",
}
"""What Claude Code calls each of our tools. Where it has no such tool, a name in its way of writing."""

_ALSO = {"agent": "agent", "read": "view", "exec": "bash", "shell": "bash", "patch": "apply_patch", "webfetch": "fetch"}
_ALSO |= {"websearch": "web_search", "todowrite": "todos", "todoread": "todos", "list": "ls", "notebookedit": "edit"}
_OURS = {name.lower(): ours for ours, name in reversed(CLAUDE_OF.items())} | {name: name for name in CLAUDE_OF} | _ALSO
_WISH = re.compile(r"\s*([A-Za-z_][\w*?-]*)\s*(?:\(.*\))?\s*", re.DOTALL)


def our_name(name: str) -> str:
    """Our name of a tool that somebody calls by theirs, or by ours; as it is, if nobody knows it."""
    return _OURS.get(name.strip().lower(), name.strip())


def wished_for(wish: str) -> str:
    """The tool of `Bash(git add:*)`: what stands in brackets is no rule of ours, and grants nothing."""
    match = _WISH.fullmatch(wish)
    return our_name(match[1]) if match else ""
