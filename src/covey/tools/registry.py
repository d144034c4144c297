"""All tools, made for one workspace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from covey.tools.agent import agent_tool
from covey.tools.apply_patch import apply_patch_tool
from covey.tools.base import Tool
from covey.tools.bash import bash_tool
from covey.tools.download import download_tool
from covey.tools.edit import edit_tool
from covey.tools.fetch import fetch_tool
from covey.tools.files import FileReads
from covey.tools.glob import glob_tool
from covey.tools.grep import grep_tool
from covey.tools.job_kill import job_kill_tool
from covey.tools.job_output import job_output_tool
from covey.tools.jobs import Jobs
from covey.tools.ls import ls_tool
from covey.tools.multiedit import multiedit_tool
from covey.tools.processes import LocalProcesses, Processes
from covey.tools.question import question_tool
from covey.tools.skill import skill_tool
from covey.tools.todos import todos_tool
from covey.tools.view import view_tool
from covey.tools.write import write_tool

NOT_FOR_AGENTS = frozenset({"agent", "question", "todos"})
"""They are between a run and its people: who works for it neither asks them, nor keeps its list, nor sends others."""


def make_tools(
    processes: Processes | None = None, jobs: Jobs | None = None, reads: FileReads | None = None
) -> dict[str, Tool[Any]]:
    """Fresh tools by name. They share what the workspace's sessions have seen of its files, and nothing beyond it.

    Without `jobs`, which whoever made them must close, nothing can be left running in the background.
    """
    reads = reads or FileReads()
    processes = processes or LocalProcesses()
    tools: list[Tool[Any]] = [
        bash_tool(processes, jobs),
        view_tool(reads),
        write_tool(reads),
        edit_tool(reads),
        multiedit_tool(reads),
        apply_patch_tool(reads),
        glob_tool(processes),
        grep_tool(processes),
        ls_tool(processes),
        fetch_tool(processes),
        download_tool(reads),
        todos_tool(),
        question_tool(),
        agent_tool(),
        skill_tool(),
    ]
    if jobs is not None:
        tools += [job_output_tool(jobs), job_kill_tool(jobs)]
    return {tool.name: tool for tool in tools}


def read_only(tools: Mapping[str, Tool[Any]]) -> dict[str, Tool[Any]]:
    """Those of them that change nothing, run nothing and ask nobody: for plans, and for agents that only report."""
    return {name: tool for name, tool in tools.items() if tool.effect.is_for_reading_agents}


def for_writing_agents(tools: Mapping[str, Tool[Any]]) -> dict[str, Tool[Any]]:
    """What an agent has that may change files and run commands."""
    return {name: tool for name, tool in tools.items() if name not in NOT_FOR_AGENTS}
