"""What a rule may be about. One about anything else never fits, and whoever wrote it would believe that it does."""

from __future__ import annotations

RULED = (
    *("agent", "apply_patch", "bash", "definition", "diagnostics", "download", "edit", "fetch", "glob", "grep"),
    *("job_kill", "job_output", "ls", "mcp", "mcp_tools", "multiedit", "question", "references", "rename", "skill"),
    *("symbols", "todos", "view", "web_search", "write"),
)
"""Every tool of ours by its name, and `mcp`, which is whatever is asked of an MCP server."""
_OF_A_SERVER = "mcp_"


def why_never(rule: str) -> str:
    """Why a rule fits nothing, in words that complete a sentence about it; empty: it may fit."""
    name = rule.partition(":")[0]
    if name in RULED:
        return ""
    return f"never applies: there is no tool {name!r}; {_hint(name)}"


def _hint(name: str) -> str:
    if name.startswith(_OF_A_SERVER):
        return "a rule about the tools of an MCP server is mcp:SERVER/TOOL, such as mcp:git/*"
    from difflib import get_close_matches  # only needed once something is wrong

    near = get_close_matches(name, RULED, n=1)
    return f"did you mean {near[0]}?" if near else f"there are: {', '.join(RULED)}"
