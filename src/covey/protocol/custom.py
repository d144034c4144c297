"""What a person can ask for by its name: `/name arguments`."""

from __future__ import annotations

from typing import Literal

from covey.protocol.messages import Wire

CommandKind = Literal["command", "skill", "mcp_prompt", "agent"]

COMMAND_TYPE = "text/x-covey-command"
"""The type of an attachment that is no file: what the command says that a prompt asks for."""


HOOK_TYPE = "text/x-covey-hook"
"""The same of what hooks tell the model with a prompt."""


JOB_TYPE = "text/x-covey-job"
"""The same of jobs that have ended since the model last looked."""


class CustomCommand(Wire, frozen=True):
    """One of them. What it says is got by expanding it, or by a prompt that begins with `/name`."""

    name: str
    kind: CommandKind
    source: str
    """`user`, `project`, or the name of the MCP server that has it."""
    description: str = ""
    argument_hint: str = ""
    path: str = ""
    """The file that it is from, for people."""
    needs_trust: bool = False
    """It is a project's, and nobody has trusted the directory: it cannot be used, and no model is told of it."""


class ExpandCommand(Wire, frozen=True):
    name: str
    """Without the slash."""
    arguments: str = ""


class ExpandedCommand(Wire, frozen=True):
    """What the model reads with a prompt that asks for the command."""

    name: str
    kind: CommandKind
    text: str
