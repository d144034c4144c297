"""MCP servers in files: added to and removed from the user's own, and taken over from those of other agents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from covey.config.load import load
from covey.config.mcp_edit import add_mcp_server, remove_mcp_server
from covey.config.mcp_import import read_foreign
from covey.config.schema import ConfigError


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path / "home"), "TOKEN": "t0ken"}


def own_file(environ: dict[str, str]) -> Path:
    return Path(environ["HOME"]) / ".config/covey/config.toml"


def test_what_is_added_counts_and_what_is_removed_leaves_the_rest_as_it_was(
    environ: dict[str, str], tmp_path: Path
) -> None:
    path = own_file(environ)
    path.parent.mkdir(parents=True)
    before = '# mine\n[models]\nlarge = "a/b" # the best\n'
    path.write_text(before)
    entry = {"command": "x", "args": ["a b", "c"], "env": {"TOKEN": "$TOKEN", "a.b": "1"}, "reads": ["r"]}
    add_mcp_server(environ, "one", entry)
    add_mcp_server(environ, "two", {"url": "https://x.example/mcp", "headers": {"X-A": "b"}}, tmp_path)
    here, elsewhere = load(tmp_path, None, environ).config, load(tmp_path / "other", None, environ).config
    assert here.mcp["one"].env["TOKEN"] == "t0ken" and here.mcp["one"].args == ("a b", "c")
    assert set(here.mcp) == {"one", "two"} and set(elsewhere.mcp) == {"one"}
    with pytest.raises(ConfigError, match="already"):
        add_mcp_server(environ, "one", {"command": "y"})
    assert remove_mcp_server(environ, "one") and not remove_mcp_server(environ, "one")
    assert remove_mcp_server(environ, "two", tmp_path) and not load(tmp_path, None, environ).config.mcp
    assert path.read_text() == before


def test_tables_inside_the_entry_go_with_it(environ: dict[str, str]) -> None:
    path = own_file(environ)
    path.parent.mkdir(parents=True)
    path.write_text('[mcp.a]\ncommand = "x"\n[mcp.a.env]\nB = "1"\n\n[mcp.ab]\ncommand = "y"\n')
    assert remove_mcp_server(environ, "a")
    assert path.read_text() == '[mcp.ab]\ncommand = "y"\n'


FILES: dict[str, Any] = {
    ".mcp.json": {
        "mcpServers": {
            "my server!": {"command": "npx", "args": ["-y", "x@1"], "env": {"K": "${KEY}", "PRICE": "5$"}},
            "web": {"type": "http", "url": "https://x.example/mcp", "headers": {"A": "Bearer ${T:-none}"}},
            "old": {"type": "sse", "url": "https://x.example/sse"},
            "odd": {"command": "x", "alwaysAllow": ["a"], "timeout": 5},
            "none": {},
        }
    },
    "opencode.json": {
        "$schema": "https://opencode.ai/config.json",
        "model": "a/b",
        "agent": {"review": {"prompt": "Look."}},
        "plugin": ["./evil.js"],
        "mcp": {
            "local": {"type": "local", "command": ["bun", "x"], "environment": {"K": "{env:KEY}"}, "enabled": False},
            "far": {"type": "remote", "url": "https://x.example/mcp"},
        },
    },
    "crush.json": {
        "lsp": {"go": {"command": "gopls"}},
        "hooks": {"PreToolUse": []},
        "mcp": {
            "a": {"type": "stdio", "command": "x", "args": ["$HOME/y"], "disabled_tools": ["t"], "disabled": True},
            "b": {"type": "http", "url": "https://x.example", "headers": {"A": "$(cat key)"}},
        },
    },
}


@pytest.mark.parametrize("name", FILES)
def test_files_of_other_agents_are_taken_over_and_the_rest_is_listed(
    name: str, tmp_path: Path, environ: dict[str, str]
) -> None:
    path = tmp_path / name
    path.write_text("// a comment\n" + json.dumps(FILES[name]))
    found = read_foreign(path)
    for server, entry in found.entries.items():
        add_mcp_server(environ, server, entry)
    config = load(tmp_path, None, {**environ, "KEY": "k"}).config
    if name == ".mcp.json":
        assert set(config.mcp) == {"my-server", "web", "odd"}
        assert config.mcp["my-server"].env == {"K": "k", "PRICE": "5$"}
        assert config.mcp["web"].headers == {"A": "Bearer none"}
        assert [line.partition(":")[0] for line in found.left_out] == ["old", "odd", "odd", "none"]
    elif name == "opencode.json":
        assert config.mcp["local"].args == ("x",) and config.mcp["local"].env == {"K": "k"}
        assert not config.mcp["local"].enabled and config.mcp["far"].url
        assert [line.partition(":")[0] for line in found.left_out] == ["agent", "model", "plugin"]
    else:
        assert set(config.mcp) == {"a"} and config.mcp["a"].disabled_tools == ("t",)
        assert config.mcp["a"].args == (f"{environ['HOME']}/y",) and "shell command" in found.left_out[0]
        assert found.left_out[1:] == ["hooks: see [hooks]", "lsp: see [lsp]"]


@pytest.mark.parametrize("text", ["", "[]", "{", '{"other": 1}', "[" * 100_000])
def test_a_file_that_is_none_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / ".mcp.json"
    path.write_text(text)
    with pytest.raises(ConfigError):
        read_foreign(path)
