"""The apply_patch tool: a patch over several files, all of it or nothing. For models that are trained on its format.

To permissions each file is what edit or write would do to it, so their rules hold here too.
"""

from __future__ import annotations

import dataclasses
import os
import stat
from pathlib import Path
from typing import Annotated, Any, assert_never

import msgspec

from covey.permissions.judge import Intent
from covey.protocol.effects import Effect
from covey.tools.base import Tool, ToolContext, ToolFailed, ToolOutput, built_in, is_inside, resolve
from covey.tools.file_set import PlannedChange, planned, shown, summary, write_all
from covey.tools.files import FileReads, exists, name_for, printable, read_for_change
from covey.tools.patch import AddFile, DeleteFile, FileOperation, UpdateFile, parse_patch
from covey.tools.patch_hunks import apply_hunks
from covey.tools.seen_files import seen_fact
from covey.tools.threads import in_thread

FILES_LIMIT = 50
"""Files of one patch: more than anybody reads before saying yes."""
PATCH_LIMIT = 1024 * 1024
NAMED = 3
"""Files that are named in the one line for the person who is asked."""


class ApplyPatchParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    patch: Annotated[
        str, msgspec.Meta(max_length=PATCH_LIMIT, description="The whole patch, from *** Begin Patch to *** End Patch.")
    ]


def apply_patch_tool(reads: FileReads) -> Tool[ApplyPatchParams]:
    patching = _Patching(reads)
    return built_in(
        "apply_patch",
        Effect.CHANGES_FILES,
        ApplyPatchParams,
        intent=_intent,
        describe=_described,
        preview=patching.preview,
        run=patching.run,
    )


def _intent(params: ApplyPatchParams, context: ToolContext) -> Intent:
    first, *others = (
        Intent(tool, "write", str(resolve(context, path)))
        for operation in _operations(params)
        for tool, path in _touched(operation)
    )
    return dataclasses.replace(first, others=tuple(others))


def _touched(operation: FileOperation) -> list[tuple[str, str]]:
    """The paths that an operation changes, each with the tool whose rules are meant for that."""
    match operation:
        case AddFile(path):
            return [("write", path)]
        case DeleteFile(path):
            return [("edit", path)]
        case UpdateFile(path, move_to):
            return [("edit", path), *([("write", move_to)] if move_to else [])]
        case _:
            assert_never(operation)


def _operations(params: ApplyPatchParams) -> list[FileOperation]:
    operations = parse_patch(params.patch)
    if len(operations) > FILES_LIMIT:
        raise ToolFailed(f"The patch changes {len(operations)} files; at most {FILES_LIMIT} at once. Make several.")
    return operations


def _described(params: ApplyPatchParams, context: ToolContext) -> str:
    paths = [path for operation in _operations(params) for _, path in _touched(operation)]
    names = [name_for(context, resolve(context, path)) for path in paths[:NAMED]]
    more = f" and {len(paths) - NAMED} more" if len(paths) > NAMED else ""
    return f"Patch {', '.join(names)}{more}"


class _Patching:
    """What a patch will do to its files, and doing it."""

    def __init__(self, reads: FileReads) -> None:
        self._reads = reads

    def preview(self, params: ApplyPatchParams, context: ToolContext) -> dict[str, Any]:
        paths = [resolve(context, path) for o in _operations(params) for _, path in _touched(o)]
        if any(not is_inside(context, p) and not self._reads.has_seen(context.session_id, p) for p in paths):
            # Nobody has agreed yet to look there: the model must not learn from a refusal what is or is not there.
            return {"file_path": printable(str(paths[0])), "content": params.patch}
        return shown(self._plan(params, context))

    async def run(self, params: ApplyPatchParams, context: ToolContext) -> ToolOutput:
        output = await in_thread(lambda: self._apply(params, context))
        there = [file.path for file in output.files if file.after is not None]
        diagnostics = [await context.host.diagnostics(context, path) for path in there]
        return dataclasses.replace(output, content="\n\n".join(filter(None, (output.content, *diagnostics))))

    def _apply(self, params: ApplyPatchParams, context: ToolContext) -> ToolOutput:
        with self._reads.changing:
            changes = self._plan(params, context)
            files = write_all(changes, self._reads, context.session_id)
        listed = "\n".join(summary(change) for change in changes)
        session_id, paths = context.session_id, [change.path for change in changes if change.after is not None]
        seen = [(path, stamp) for path in paths if (stamp := self._reads.latest(session_id, path))]
        metadata = {**shown(changes), **seen_fact(*seen)}
        return ToolOutput(f"Applied the patch:\n{listed}", metadata=metadata, files=files)

    def _plan(self, params: ApplyPatchParams, context: ToolContext) -> list[PlannedChange]:
        """What will be done to each path. Raises ToolFailed if any of it cannot be."""
        changes: dict[Path, PlannedChange] = {}
        for operation in _operations(params):
            for change in self._changes(operation, context):
                if change.path in changes:
                    raise ToolFailed(f"{change.name} is in the patch twice. Put all that happens to it into one place.")
                changes[change.path] = change
        return list(changes.values())

    def _changes(self, operation: FileOperation, context: ToolContext) -> list[PlannedChange]:
        match operation:
            case AddFile(path, content):
                return [self._new(path, _encoded(content), context)]
            case DeleteFile(path):
                where, name, before = self._old(path, context)
                return [planned(where, name, before, None)]
            case UpdateFile(path, move_to, hunks):
                where, name, before = self._old(path, context)
                # Bytes that are no UTF-8 pass through unchanged.
                after = _encoded(apply_hunks(before.decode("utf-8", "surrogateescape"), hunks, name))
                if not move_to:
                    return [planned(where, name, before, after)]
                new = dataclasses.replace(self._new(move_to, after, context), mode=_mode(where, name))
                return [new, planned(where, name, before, None)]
            case _:
                assert_never(operation)

    def _new(self, given: str, content: bytes, context: ToolContext) -> PlannedChange:
        path = resolve(context, given)
        name = name_for(context, path)
        if exists(path, name):
            raise ToolFailed(f"{name} exists already. View it and update it. Nothing was changed.")
        return planned(path, name, None, content)

    def _old(self, given: str, context: ToolContext) -> tuple[Path, str, bytes]:
        """A file that the session has seen as it is now."""
        path = resolve(context, given)
        name = name_for(context, path)
        content, version = read_for_change(path, name)
        self._reads.check(context.session_id, path, version, name)
        return path, name, content


def _mode(path: Path, name: str) -> int:
    try:
        return stat.S_IMODE(os.stat(path).st_mode)
    except OSError as error:
        raise ToolFailed(f"{name} cannot be read: {error.strerror}.") from None


def _encoded(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise ToolFailed(f"The text cannot be written as UTF-8: {error.reason}. Nothing was changed.") from None
