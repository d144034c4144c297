"""Names that models give to arguments of tools because other agents call them so, and what we call them. Pure.

A model that was trained with another agent's tools sends that agent's names now and then, whatever the schema says.
What is meant is taken, where it can mean one thing only; the schema itself offers our names alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

ALIASES: Mapping[str, tuple[str, ...]] = {
    "file_path": ("path", "file", "filename", "file_name", "filepath", "filePath", "absolute_path", "target_file"),
    "path": ("directory", "dir", "dir_path", "file_path", "target_directory"),
    "command": ("cmd", "shell_command"),
    "working_dir": ("cwd", "workdir", "working_directory", "directory", "dir_path"),
    "background": ("run_in_background", "is_background"),
    "timeout_s": ("timeout_seconds", "timeout_secs"),  # not `timeout`: some mean milliseconds
    "old_string": ("old_str", "oldString", "old_text", "oldText"),
    "new_string": ("new_str", "newString", "new_text", "newText"),
    "replace_all": ("replaceAll",),
    "content": ("contents", "file_text", "file_content"),
    "patch": ("input", "patch_text", "patchText"),
    "pattern": ("regex", "query", "glob_pattern"),
    "include": ("glob", "include_pattern"),
    "offset": ("start_line",),
    "job_id": ("bash_id", "shell_id", "task_id"),
    "active_form": ("activeForm",),
    "depth": ("max_depth",),
}
"""Of an argument: what others call it. A name that a tool has for something else is never an alias in that tool."""


def with_own_names(given: Mapping[str, Any], fields: Collection[str]) -> dict[str, Any]:
    """An object with our names instead of others'; `fields`: those that it may have.

    Nothing is guessed: where a field is there already, or two names could stand for it, all stays as it is.
    """
    meant: dict[str, str] = {}
    for field in fields:
        others = [name for name in ALIASES.get(field, ()) if name in given and name not in fields]
        if field not in given and len(others) == 1:
            meant[others[0]] = "" if others[0] in meant else field
    return {meant.get(name) or name: value for name, value in given.items()}
