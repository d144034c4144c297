"""What a deny rule keeps from being viewed is not found by searching either; secrets are not searched unasked."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from covey.tools.base import Tool, ToolContext, ToolFailed
from covey.tools.glob import glob_tool
from covey.tools.grep import grep_tool
from covey.tools.processes import LocalProcesses, Processes

pytestmark = pytest.mark.anyio


async def search(make: Callable[[Processes], Tool[Any]], context: ToolContext, **params: Any) -> str:
    used = make(LocalProcesses())
    return (await used.run(used.decode(json.dumps(params)), context)).content


async def test_what_may_not_be_viewed_is_not_searched_either(context: ToolContext, root: Path) -> None:
    (root / "deep").mkdir()
    for path in (".env", "deep/.env", "deep/a.py"):
        (root / path).write_text("SECRET = 1\n")
    context = dataclasses.replace(context, denied=("view:*.env", "bash:rm *"))
    found = await search(grep_tool, context, pattern="SECRET")
    assert "deep/a.py" in found and ".env" not in found
    assert await search(glob_tool, context, pattern="**/*") == "deep/a.py"
    with pytest.raises(ToolFailed, match="forbids looking there"):
        await search(grep_tool, context, pattern="SECRET", path="deep/.env")


async def test_a_search_that_picks_out_secrets_is_not_harmless(context: ToolContext, root: Path) -> None:
    grep = grep_tool(LocalProcesses())

    def harmless(**params: str) -> bool:
        return grep.intent(grep.decode(json.dumps({"pattern": "x", **params})), context).harmless

    assert harmless()
    assert harmless(include="*.{ts,json}")
    assert not harmless(include=".env")
    assert not harmless(include="{.env,*.py}")
    assert not harmless(include="**/*.pem")
    assert not harmless(path=str(root.parent))
