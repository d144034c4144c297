"""The rename tool: another name for something, wherever it is used. All places change, or none does.

What would change is found out before anybody is asked, so that the judgement and the person see every file of it.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Any

import msgspec

from covey.permissions.judge import Intent
from covey.protocol.effects import Effect
from covey.tools.base import Tool, ToolContext, ToolFailed, ToolOutput, built_in, is_inside
from covey.tools.file_set import PlannedChange, planned, shown, summary, write_all
from covey.tools.files import FileReads, name_for, read_for_change
from covey.tools.lsp.answers import path_of
from covey.tools.lsp.connection import RequestRefused, ServerGone
from covey.tools.lsp.edits import BadEdit, read_workspace_edit, renamed
from covey.tools.lsp.name_places import NameParams, position_of, read_text, workspace_file
from covey.tools.lsp.server import LanguageServer
from covey.tools.lsp.service import LanguageService
from covey.tools.seen_files import seen_fact
from covey.tools.threads import in_thread


class RenameParams(NameParams, frozen=True, forbid_unknown_fields=True):
    new_name: Annotated[str, msgspec.Meta(min_length=1, max_length=200, description="The new name.")]


class PlannedRename(RenameParams, frozen=True, forbid_unknown_fields=True):
    """A rename, with the files that it would change. Only made by `prepare`: a model cannot send it."""

    changes: Annotated[tuple[Any, ...], msgspec.Meta(description="Each a `PlannedChange`.")] = ()


def rename_tool(service: LanguageService, reads: FileReads) -> Tool[RenameParams]:
    renaming = _Renaming(service, reads)
    tool = built_in(
        "rename",
        Effect.CHANGES_FILES,
        RenameParams,
        intent=_intent,
        describe=_described,
        preview=_preview,
        run=renaming.run,
    )
    return dataclasses.replace(tool, prepare=renaming.prepare)


def _changes(params: RenameParams) -> tuple[PlannedChange, ...]:
    return params.changes if isinstance(params, PlannedRename) else ()


def _intent(params: RenameParams, context: ToolContext) -> Intent:
    """To permissions each file is what edit would do to it, so its rules hold here too."""
    paths = [change.path for change in _changes(params)] or [workspace_file(context, params.file_path)]
    first, *others = (Intent("edit", "write", str(path)) for path in paths)
    return dataclasses.replace(first, others=tuple(others))


def _described(params: RenameParams, context: ToolContext) -> str:
    count = len(_changes(params))
    return f"Rename {params.name} to {params.new_name} in {count} {'file' if count == 1 else 'files'}"


def _preview(params: RenameParams, context: ToolContext) -> dict[str, Any]:
    return shown(_changes(params))


class _Renaming:
    def __init__(self, service: LanguageService, reads: FileReads) -> None:
        self._service = service
        self._reads = reads

    async def prepare(self, params: RenameParams, context: ToolContext) -> RenameParams:
        """Ask the server what would change, and check every place of it. Changes nothing."""
        path = workspace_file(context, params.file_path)
        try:
            server = await self._service.server_for(path, "renameProvider")
            text = await read_text(path, name_for(context, path))
            position = position_of(server.index(text), params)
            edit = await server.ask_at("textDocument/rename", path, text, position, newName=params.new_name)
            changes = await in_thread(lambda: _planned(edit, params, context, server))
        except (ServerGone, RequestRefused, TimeoutError) as error:
            why = str(error) or "it took too long"
            raise ToolFailed(f"The language server did not rename it: {why}. Nothing was changed.") from None
        except BadEdit as error:
            raise ToolFailed(
                f"The rename was not made, since {error}. Nothing was changed. Use grep and edit."
            ) from None
        return PlannedRename(params.file_path, params.line, params.name, params.new_name, changes)

    async def run(self, params: RenameParams, context: ToolContext) -> ToolOutput:
        output = await in_thread(lambda: self._apply(_changes(params), params, context))
        complaints = [await context.host.diagnostics(context, file.path) for file in output.files]
        return dataclasses.replace(output, content="\n\n".join(filter(None, (output.content, *complaints))))

    def _apply(self, changes: tuple[PlannedChange, ...], params: RenameParams, context: ToolContext) -> ToolOutput:
        with self._reads.changing:
            for change in changes:
                if read_for_change(change.path, change.name)[0] != change.before:
                    raise ToolFailed(f"{change.name} has changed meanwhile. Nothing was changed. Call rename again.")
            files = write_all(changes, self._reads, context.session_id)
        session_id = context.session_id
        seen = [(c.path, stamp) for c in changes if (stamp := self._reads.latest(session_id, c.path))]
        listed = "\n".join(summary(change) for change in changes)
        text = f"Renamed {params.name} to {params.new_name}:\n{listed}"
        return ToolOutput(text, metadata={**shown(changes), **seen_fact(*seen)}, files=files)


def _planned(
    edit: Any, params: RenameParams, context: ToolContext, server: LanguageServer
) -> tuple[PlannedChange, ...]:
    """What becomes of each file. Raises BadEdit or ToolFailed if any of it cannot be."""
    contents: dict[str, tuple[Path, bytes]] = {}

    def read(uri: str) -> str:
        path = path_of(uri)
        if path is None or not is_inside(context, path := path.resolve()):
            raise BadEdit(f"it would change {uri}, which is not in the workspace")
        content, _ = read_for_change(path, name_for(context, path))
        contents[uri] = path, content
        try:
            return content.decode()
        except UnicodeDecodeError:
            raise BadEdit(f"{name_for(context, path)} is no UTF-8") from None

    texts = renamed(read_workspace_edit(edit), read, params.name, params.new_name, server.encoding)
    found = ((uri, *contents[uri]) for uri in texts)
    return tuple(planned(path, name_for(context, path), before, texts[uri].encode()) for uri, path, before in found)
