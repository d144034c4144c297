"""All tools, made for one workspace."""

from __future__ import annotations

from typing import Any

from covey.tools.base import Tool
from covey.tools.bash import Bash
from covey.tools.edit import Edit
from covey.tools.files import FileReads
from covey.tools.processes import LocalProcesses, Processes
from covey.tools.view import View
from covey.tools.write import Write


def make_tools(processes: Processes | None = None) -> dict[str, Tool[Any]]:
    """Fresh tools by name. They share what the workspace's sessions have seen of its files, and nothing beyond it."""
    reads = FileReads()
    tools: list[Tool[Any]] = [Bash(processes or LocalProcesses()), View(reads), Write(reads), Edit(reads)]
    return {tool.name: tool for tool in tools}
