"""Names on the machine that more than one part of Covey must know: those that differ between two parts find nothing."""

from __future__ import annotations

from pathlib import Path

TOKEN_VARIABLE = "COVEY_TOKEN"  # noqa: S105 - its name
"""The environment variable with the token for TCP."""

TAG_VARIABLE = "COVEY_PROCESS_TAG"
"""The environment variable that says for which tool call a process runs. Children inherit it."""


def server_lock(data_dir: Path) -> Path:
    """Held by the server that owns a data directory; says who that is."""
    return data_dir / "server.lock"


def node_tag(node: str) -> str:
    """What marks the jobs of all workspaces of a node: other nodes may run on the same machine."""
    return f"covey@{node}"


def workspace_tag(workspace_id: str, node: str = "") -> str:
    """What marks the jobs of a workspace, on one server or on a node of a cluster.

    The tag of a run goes on after the id, without a slash: it is another tag.
    """
    own = f"covey-{workspace_id}"
    return tag_within(node_tag(node), own) if node else own


def run_tag(workspace_id: str, run_id: str) -> str:
    """What marks the processes of a run, also after a crash of the server.

    It names no node: whoever takes the run over ends them, and nobody runs it again.
    """
    return f"{workspace_tag(workspace_id)}-{run_id}"


def tag_within(tag: str, part: str | int) -> str:
    """A narrower tag: a search for `tag` finds its processes too. Neither ids nor parts have a slash."""
    return f"{tag}/{part}"


def widest_tag(tag: str) -> str:
    """The tag of the run or the workspace that a narrower one is within."""
    return tag.partition("/")[0]
