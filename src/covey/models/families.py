"""What is different for a family of models, by the model's name: the one place where that is decided."""

from __future__ import annotations

import re
from typing import Literal

EditTool = Literal["edit", "apply_patch"]

Family = Literal["gpt", "claude", "gemini", "open", "small"]
"""Whose habits are known well enough for a line of their own in the system prompt (`context/system.md`).

`open`: models with open weights, which are served by many and now and then invent a tool. `small`: those among all
that are small enough for a laptop; they lose their way in many steps at once.
"""

_PATCHING = re.compile(r"(^|/)(gpt-(4\.1|oss|[5-9]|\d\d)|codex|o[34](-|$))")
"""OpenAI's models since GPT-4.1, which are trained to change files by patches."""
_NAMES: tuple[tuple[Family, re.Pattern[str]], ...] = (
    ("gpt", re.compile(r"(^|/)(gpt-|codex|o[34](-|$))")),
    ("claude", re.compile(r"(^|[/.])claude")),
    ("gemini", re.compile(r"(^|/)gemini")),
    ("open", re.compile(r"(^|/)(kimi|deepseek|qwen|glm|[a-z]*llama|[a-z]*stral|gemma|minimax)")),
)
_BILLIONS = re.compile(r"(?<![a-z0-9.])(\d+(?:\.\d+)?)b(?![a-z])")
"""Parameters, as names say them: `qwen3:8b`, `gemma-3-4b-it`; `a3b` are only those that are active."""
SMALL_BILLIONS = 15


def edit_tool(model_id: str) -> EditTool:
    """The tool by which a model changes files best."""
    return "apply_patch" if _PATCHING.search(model_id.lower()) else "edit"


def families(model_id: str) -> tuple[Family, ...]:
    """Those that a model is of; none if its name says nothing."""
    name = model_id.lower()
    found: list[Family] = [family for family, pattern in _NAMES if pattern.search(name)]
    billions = [float(number) for number in _BILLIONS.findall(name)]
    if billions and max(billions) < SMALL_BILLIONS:
        found.append("small")
    return tuple(found)
