"""All tools, made for one workspace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from covey.tools.agent import Agent
from covey.tools.base import Tool
from covey.tools.bash import Bash
from covey.tools.download import Download
from covey.tools.edit import Edit
from covey.tools.fetch import Fetch
from covey.tools.files import FileReads
from covey.tools.glob import Glob
from covey.tools.grep import Grep
from covey.tools.job_kill import JobKill
from covey.tools.job_output import JobOutput
from covey.tools.jobs import Jobs
from covey.tools.ls import Ls
from covey.tools.multiedit import Multiedit
from covey.tools.processes import LocalProcesses, Processes
from covey.tools.question import Question
from covey.tools.todos import Todos
from covey.tools.view import View
from covey.tools.write import Write


def make_tools(processes: Processes | None = None, jobs: Jobs | None = None) -> dict[str, Tool[Any]]:
    """Fresh tools by name. They share what the workspace's sessions have seen of its files, and nothing beyond it.

    Without `jobs`, which whoever made them must close, nothing can be left running in the background.
    """
    reads = FileReads()
    processes = processes or LocalProcesses()
    tools: list[Tool[Any]] = [
        Bash(processes, jobs),
        View(reads),
        Write(reads),
        Edit(reads),
        Multiedit(reads),
        Glob(processes),
        Grep(processes),
        Ls(processes),
        Fetch(processes),
        Download(reads),
        Todos(),
        Question(),
        Agent(),
    ]
    if jobs is not None:
        tools += [JobOutput(jobs), JobKill(jobs)]
    return {tool.name: tool for tool in tools}


def read_only(tools: Mapping[str, Tool[Any]]) -> dict[str, Tool[Any]]:
    """Those of them that change nothing, run nothing and ask nobody: for plans, and for agents that only report."""
    return {name: tool for name, tool in tools.items() if tool.effect.is_for_reading_agents}
