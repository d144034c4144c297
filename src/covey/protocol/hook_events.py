"""The events at which hooks are run, and what holds if one fails: words of the configuration."""

from __future__ import annotations

from typing import Literal, get_args

HookEvent = Literal[
    "PreToolUse",
    "PostToolUse",
    "UserPromptSubmit",
    "Stop",
    "SubagentStop",
    "SessionStart",
    "SessionEnd",
    "Notification",
    "PreCompact",
]
HOOK_EVENTS: tuple[HookEvent, ...] = get_args(HookEvent)
OnFailure = Literal["ask", "deny", "ignore"]
