"""What write, edit and multiedit share: the check that the file was seen, the diff, and replacing it in one step."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from covey.permissions.judge import Intent
from covey.protocol.effects import Effect
from covey.tools.base import (
    Tool,
    ToolContext,
    ToolFailed,
    ToolOutput,
    built_in,
    is_inside,
    parameters,
    resolve,
)
from covey.tools.diffs import Diff, unified
from covey.tools.excerpt import around
from covey.tools.files import FileParams, FileReads, exists, name_for, printable, read_for_change, replace, version_of
from covey.tools.seen_files import seen_fact
from covey.tools.threads import in_thread

P = TypeVar("P", bound=FileParams)

SHOWN_BYTES = 64 * 1024
"""Of each content: it is stored with the message, and sent to everybody. The diff shows the rest."""

Changed = Callable[[P, str | None, str], tuple[str, str]]
"""Parameters, the text before (None: there is no such file yet) and the file's name → the text after the change, and a
sentence about it."""


@dataclass(frozen=True, slots=True)
class FileChange:
    path: Path
    name: str
    before: bytes | None
    content: bytes
    diff: Diff
    summary: str
    """For the model."""

    def shown(self) -> dict[str, Any]:
        """For screens."""
        return {
            "file_path": printable(str(self.path)),
            "diff": self.diff.text,
            "additions": self.diff.additions,
            "removals": self.diff.removals,
            **self._contents(),
        }

    def _contents(self) -> dict[str, str]:
        """For screens that draw the difference themselves: both, or neither."""
        before, after = self.before or b"", self.content
        if max(len(before), len(after)) > SHOWN_BYTES:
            return {}
        return {"old_content": before.decode("utf-8", "replace"), "new_content": after.decode("utf-8", "replace")}


def changing_tool(
    name: str, params: type[P], reads: FileReads, *, verb: str, changed: Changed[P], shows: bool = True
) -> Tool[P]:
    """A tool that turns the text of one file into another. `shows`: the model is shown the lines around the change."""

    def intent(given: P, context: ToolContext) -> Intent:
        return Intent(name, "write", str(resolve(context, given.file_path)))

    def described(given: P, context: ToolContext) -> str:
        return f"{verb} {name_for(context, resolve(context, given.file_path))}"

    change = _Change(reads, changed, shows=shows)
    return built_in(
        name, Effect.CHANGES_FILES, params, intent=intent, describe=described, preview=change.preview, run=change.run
    )


class _Change(Generic[P]):
    """What a call will do to its file, and doing it."""

    def __init__(self, reads: FileReads, changed: Changed[P], *, shows: bool) -> None:
        self._reads = reads
        self._changed = changed
        self._shows = shows

    def preview(self, params: P, context: ToolContext) -> dict[str, Any]:
        path = resolve(context, params.file_path)
        if not is_inside(context, path) and not self._reads.has_seen(context.session_id, path):
            # Nobody has agreed yet to look there: the model must not learn from a refusal what is or is not there.
            return {**parameters(params, context), "file_path": printable(str(path))}
        return self._plan(params, context).shown()

    async def run(self, params: P, context: ToolContext) -> ToolOutput:
        output = await in_thread(lambda: self._apply(params, context))
        diagnostics = [await context.host.diagnostics(context, file.path) for file in output.files]
        return dataclasses.replace(output, content="\n\n".join(filter(None, (output.content, *diagnostics))))

    def _apply(self, params: P, context: ToolContext) -> ToolOutput:
        with self._reads.changing:
            change = self._plan(params, context)
            version = replace(change.path, change.content, change.name)
            self._reads.record(context.session_id, change.path, version)
        is_changed = change.before != change.content
        files = (version_of(change.path, change.before, change.content),) if is_changed else ()
        metadata = {**change.shown(), **seen_fact((change.path, version))}
        return ToolOutput(change.summary, metadata=metadata, files=files)

    def _plan(self, params: P, context: ToolContext) -> FileChange:
        path = resolve(context, params.file_path)
        name = name_for(context, path)
        old = self._seen(path, name, context)
        # Bytes that are no UTF-8 pass through unchanged.
        before = None if old is None else old.decode("utf-8", "surrogateescape")
        after, summary = self._changed(params, before, name)
        try:
            content = after.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError as error:
            raise ToolFailed(f"The text cannot be written as UTF-8: {error.reason}.") from None
        diff = unified(printable(before or ""), printable(after), name)
        if self._shows and (shown := around(printable(after), diff.spans)):
            summary = f"{summary}\nNow there is:\n{shown}"
        return FileChange(path, name, old, content, diff, summary)

    def _seen(self, path: Path, name: str, context: ToolContext) -> bytes | None:
        """The file's content, if the session has seen it as it is now; None if there is no such file."""
        if not exists(path, name):
            return None
        content, version = read_for_change(path, name)
        self._reads.check(context.session_id, path, version, name)
        return content
