"""`covey mcp` and approvals on the command line, as a user types them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.cli.conftest import Home, until
from tests.support.mcp import HOSTILE


def test_a_server_is_added_approved_listed_and_removed(own_home: Home, tmp_path: Path) -> None:
    added = own_home.covey("mcp", "add", "h", "--env", "A=$HOME", "--", sys.executable, str(HOSTILE), "normal")
    assert added.returncode == 0 and "covey mcp approve h" in added.stdout
    assert own_home.covey("mcp", "add", "h", "--", "x").returncode == 1, "there is one of this name"
    refused = own_home.covey("mcp", "approve", "h")
    assert refused.returncode == 1 and "not approved" in refused.stderr, "without a terminal nobody has said yes"
    approved = own_home.covey("mcp", "approve", "h", "--yes")
    assert approved.returncode == 0 and "tool echo" in approved.stdout and "Says it again." in approved.stdout
    [listed] = json.loads(own_home.covey("mcp", "list", "--json").stdout)
    assert (listed["name"], listed["tools"]) == ("h", ["echo"])
    assert "mcp h  off, 1 tool\n" in own_home.covey("mcp").stdout
    (own_home.project / ".mcp.json").write_text('{"mcpServers": {"i": {"command": "x"}, "j": {"type": "sse"}}}')
    imported = own_home.covey("mcp", "import")
    assert "taken over: i  x" in imported.stdout and "not taken over: j" in imported.stderr
    assert own_home.covey("mcp", "remove", "h").returncode == 0
    assert own_home.covey("mcp", "remove", "h").returncode == 1
    assert "h " not in own_home.covey("mcp").stdout


def test_x1_a_run_without_a_terminal_leaves_out_what_nobody_approved_and_says_so(
    own_home: Home, tmp_path: Path
) -> None:
    log = tmp_path / "started"
    args = json.dumps([str(HOSTILE), "normal", str(log)])
    (own_home.project / "covey.toml").write_text(f"[mcp.p]\ncommand = {json.dumps(sys.executable)}\nargs = {args}\n")
    untrusted = own_home.covey("run", "hello")
    assert untrusted.returncode == 0 and "ignored, as this directory is not trusted: mcp.p" in untrusted.stderr
    trusted = own_home.covey("trust")
    assert trusted.returncode == 0 and "not approved, and not used: MCP server p" in trusted.stderr
    left_out = own_home.covey("run", "hello")
    assert left_out.returncode == 0 and "left out, because nobody has approved it: MCP server p" in left_out.stderr
    assert not log.exists(), "nothing was started"
    assert "Approved: MCP server p" in own_home.covey("trust", "--yes").stdout
    own_home.covey("mcp", "approve", "--yes")
    assert log.exists()


def test_x12_status_shows_the_memory_and_the_time_of_each_extension(own_home: Home) -> None:
    """A server of tools and a language server, after a run that used both."""
    odd = Path(__file__).parent.parent / "lsp" / "odd_server.py"
    own_home.covey("mcp", "add", "h", "--", sys.executable, str(HOSTILE), "normal")
    words = f"command = {json.dumps(sys.executable)}\nargs = {json.dumps([str(odd), 'push', '/dev/null'])}\n"
    with own_home.config.open("a") as file:
        file.write(f'\n[lsp.odd]\n{words}suffixes = ["odd"]\n')
    (own_home.project / "a.odd").write_text("old\n")
    script = Path(own_home.env["HOME"]) / "script.json"
    rename = {"file_path": "a.odd", "line": 1, "name": "old", "new_name": "new"}
    steps = [[{"tool": "mcp__h__echo", "input": {"text": "hi"}}], [{"tool": "rename", "input": rename}]]
    replies = [{"when": "use both", "steps": [*steps, [{"text": "Done."}]]}]
    script.write_text(json.dumps({"replies": [*replies, *json.loads(script.read_text())["replies"]]}))
    own_home.covey("trust")
    assert own_home.covey("mcp", "approve", "h", "--yes").returncode == 0
    holding = own_home.spawn("run", "hang on")  # so that the workspace stays open
    try:
        until(lambda: own_home.status()["workspaces"], "the workspace")
        assert own_home.covey("run", "--yolo", "use both").returncode == 0
        assert (own_home.project / "a.odd").read_text() == "new\n"
        lines = own_home.covey("status").stdout.splitlines()
    finally:
        holding.kill()
        holding.communicate()
    shown = [line.strip() for line in lines if " MB, " in line and line.endswith(" s CPU")]
    assert [line.split("  ")[0] for line in shown] == ["mcp h", "lsp odd"], lines
    assert all("  ready" in line for line in shown)
