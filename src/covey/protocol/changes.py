"""What a session has changed in the files of its workspace: by file and by turn, with who did it."""

from __future__ import annotations

from typing import Literal

import msgspec

from covey.protocol.messages import ToolResult, Wire

MadeBy = Literal["tool", "command", "job", "person"]
"""A tool that changes files; a command of the agent; one that it left running; a command of a person."""
FileStatus = Literal["added", "modified", "deleted", "renamed"]


class Origin(msgspec.Struct, frozen=True, omit_defaults=True):
    """How one recorded change came about. It is kept with the change, and no part of the wire."""

    made_by: MadeBy = "tool"
    label: str = ""
    """The name of the tool, or the command."""
    mode_after: int = 0
    """Permission bits that the change left; 0: those that were there before."""
    is_sure: bool = True
    """False: somebody else may have made the change, since more than one was at work."""
    missed: str = ""
    """Of a record without a path: why not all that the command changed may be known."""


class Maker(Wire, frozen=True):
    """Who made a change."""

    made_by: MadeBy
    label: str = ""
    """The name of the tool, or the command."""


class FileDiff(Wire, frozen=True):
    """How a file differs. The counts are null where a content is not kept, or is no text."""

    status: FileStatus
    additions: int | None = None
    deletions: int | None = None
    diff: str = ""
    """Unified; empty where there is none to show."""
    is_binary: bool = False
    is_left_out: bool = False
    """There is a diff, and it is not in this answer: contents are too large, or there were too many before."""
    old_path: str = ""
    """Of a renamed file. Its content is the same."""
    is_executable: bool | None = None
    """It may be executed now, or may no more; null: that did not change."""


class FileTurn(Wire, frozen=True):
    """What one turn did to a file."""

    run_id: str
    """Empty: it was no turn, but a command of a person."""
    at: int
    change: FileDiff
    """The diff is left out of a file's only turn: it is that of the file."""
    made_by: tuple[Maker, ...]
    can_undo: bool
    reason: str = ""
    """Why it cannot be undone."""


class ChangedFile(Wire, frozen=True):
    """A file that is not what it was before the session, as far as the session's own records say."""

    path: str
    change: FileDiff
    turns: tuple[FileTurn, ...]


class MissedChanges(Wire, frozen=True):
    """A command that may have changed more than is listed."""

    run_id: str
    at: int
    label: str
    reason: str


class SessionChanges(Wire, frozen=True):
    """A page of the files that a session has changed."""

    files: tuple[ChangedFile, ...]
    """By path."""
    missed: tuple[MissedChanges, ...] = ()
    """Empty: all that commands changed in files of the workspace that are not ignored is listed."""
    next: str = ""
    """There are more: give it as `after`."""


# ── in the metadata of a result ──

WATCHED = "watched"
"""The files that a call changed were looked for, and all that was found is recorded with its result."""


class _Facts(msgspec.Struct, frozen=True):
    watched: bool = False


def was_watched(result: ToolResult) -> bool:
    """Nothing that the call changed in files of the workspace, as far as they are looked at, is left out."""
    try:
        return msgspec.json.decode(result.metadata, type=_Facts).watched if result.metadata else False
    except msgspec.MsgspecError:
        return False
