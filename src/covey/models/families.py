"""What is different for a family of models, by the model's name: the one place where that is decided."""

from __future__ import annotations

import re
from typing import Literal

EditTool = Literal["edit", "apply_patch"]

_PATCHING = re.compile(r"(^|/)(gpt-(4\.1|oss|[5-9]|\d\d)|codex|o[34](-|$))")
"""OpenAI's models since GPT-4.1, which are trained to change files by patches."""


def edit_tool(model_id: str) -> EditTool:
    """The tool by which a model changes files best."""
    return "apply_patch" if _PATCHING.search(model_id.lower()) else "edit"
