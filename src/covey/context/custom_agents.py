"""A custom agent: how one that works for another is to work, with which model, and with which tools at most. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from covey.context.texts import TextFile
from covey.protocol.claude_names import our_name, wished_for

INHERITS = frozenset({"", "inherit", "default"})
"""What a file says that has no wish for a model of its own."""
MAX_STEPS = 1_000


@dataclass(frozen=True, slots=True)
class CustomAgent:
    """What a file says about an agent. It can only narrow what its caller has (S12)."""

    name: str
    instructions: str
    model: str = ""
    """`provider/model`; empty: that of its caller."""
    allowed: tuple[str, ...] | None = None
    """The tools that it has, if its caller has them; None: all of them."""
    denied: tuple[str, ...] = ()
    asked_about: tuple[str, ...] = ()
    """Tools of which each call is asked about, though its caller might use them freely."""
    only_looks: bool = False
    max_steps: int = 0
    """0: as configured."""

    def has(self, tool: str) -> bool:
        """Whether it gets a tool that its caller has."""
        named = self.allowed is None or _is_one_of(tool, self.allowed)
        by_patch = tool == "apply_patch" and "write" in self.denied  # which does what both of them do
        return named and not by_patch and not _is_one_of(tool, self.denied)

    def asks_about(self, tool: str) -> bool:
        return _is_one_of(tool, self.asked_about)


def custom_agent(file: TextFile) -> CustomAgent:
    """The agent that a file describes."""
    matter = file.matter
    tools, permission = matter.fields.get("tools", ""), matter.fields.get("permission", "")
    denied = [*map(wished_for, matter.words("disallowedTools"))]
    asked_about: list[str] = []
    allowed: tuple[str, ...] | None = None
    if isinstance(tools, Mapping):  # opencode says yes or no to each
        denied += [our_name(name) for name, word in tools.items() if word.lower() in ("false", "no", "off")]
    elif words := [word for word in matter.words("tools") if word]:
        allowed = None if "*" in words else tuple(map(wished_for, words))
    if isinstance(permission, Mapping):
        denied += [our_name(name) for name, word in permission.items() if word.lower() == "deny"]
        asked_about += [our_name(name) for name, word in permission.items() if word.lower() == "ask"]
    model = matter.text("model")
    return CustomAgent(
        name=file.name,
        instructions=matter.body,
        model="" if model.lower() in INHERITS else model,
        allowed=allowed,
        denied=tuple(denied),
        asked_about=tuple(asked_about),
        only_looks=matter.text("permissionMode").lower() == "plan",
        max_steps=_steps(matter.text("maxTurns") or matter.text("steps") or matter.text("maxSteps")),
    )


def _steps(text: str) -> int:
    return min(int(text), MAX_STEPS) if text.isascii() and text.isdigit() else 0


def _is_one_of(tool: str, names: tuple[str, ...]) -> bool:
    """Also by a pattern, or by the name of a server: `mcp__git` stands for all its tools."""
    if tool in ("apply_patch", "multiedit") and "edit" in names:
        return True
    return any(tool == name or fnmatchcase(tool, name) or tool.startswith(f"{name}__") for name in names if name)
