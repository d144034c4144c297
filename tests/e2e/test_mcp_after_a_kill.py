"""`kill -9` of a real server at moments of a start and of a call: the next one leaves no process of its MCP servers."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from covey.machine.names import workspace_tag
from covey.tools import process_table
from tests.support.fake_model import Call, FakeModel, Reply
from tests.support.mcp import HOSTILE
from tests.support.server import provider_config, running, until


def entry(mode: str, log: Path) -> str:
    args = json.dumps([str(HOSTILE), mode, str(log)])
    return f"[mcp.h]\ncommand = {json.dumps(sys.executable)}\nargs = {args}\n"


MOMENTS = ["spawned", "server/discover", "tools/list", "tools/call"]
"""Of a start and of a call: each message that the server of tools gets. The first is as soon as it has a process."""
USUAL = ("spawned", "tools/call")


@pytest.mark.parametrize(
    "moment", [pytest.param(each, marks=() if each in USUAL else pytest.mark.heavy) for each in MOMENTS]
)
def test_m11_after_a_kill_the_next_start_ends_what_was_left(tmp_path: Path, moment: str) -> None:
    """The server of tools ignores TERM and the end of its input, and has a child in another session."""
    log = tmp_path / "mcp.log"
    with FakeModel() as model, running(tmp_path, provider_config(model.url, entry("stubborn", log))) as server:
        server.may_log_errors = True
        workspace = server.workspace(yolo=True)
        tag = workspace_tag(workspace.id)
        until(lambda: process_table.tagged(tag))
        if moment not in ("spawned", "tools/call"):
            until(lambda: log.exists() and moment in log.read_text())
        if moment == "tools/call":
            [request] = until(lambda: workspace.get("/approvals"))
            workspace.request("POST", "/approvals/answer", {"id": request["id"], "approve": True}).ok()
            model.on(lambda asked: Reply(text="", tools=(Call(name="mcp__h__echo", input={"text": "hi"}),)))
            workspace.prompt(workspace.session(), "go", run_id="r1")
            until(lambda: log.exists() and "tools/call" in log.read_text())
        server.kill()
        assert process_table.tagged(tag), "they outlive it, as they ignore everything"
        server.start()
        until(lambda: not process_table.tagged(tag))
