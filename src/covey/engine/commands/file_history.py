"""What a session has changed, file by file: as it was before, and as the session left it last."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from covey.engine.commands.parts import WorkspaceParts
from covey.engine.turns.file_versions import printable
from covey.engine.world import time_of
from covey.lifecycle.undo import FileStep
from covey.protocol.v1 import HistoryFile

CONTENT_BYTES = 256 * 1024
"""A larger content is not sent: nobody reads its diff in a side bar."""
ANSWER_BYTES = 8 * 1024 * 1024
"""All contents of one answer; the files that come after are listed without."""


@dataclass(slots=True)
class Ends:
    """The first and the last step of one file."""

    first: FileStep
    last: FileStep
    steps: int = 1


def ends(steps: Iterable[FileStep], undone: Collection[str]) -> list[Ends]:
    """By file, the last changed first. What was undone does not count."""
    by_path: dict[str, Ends] = {}
    for step in steps:
        if step.run_id in undone or not step.path:
            continue
        found = by_path.pop(step.path, None)
        by_path[step.path] = Ends(found.first, step, found.steps + 1) if found else Ends(step, step)
    return list(reversed(by_path.values()))


async def file_history(parts: WorkspaceParts, session_id: str) -> list[HistoryFile]:
    """Two versions of each file: v1 clients look at no others."""
    await parts.session(session_id)
    undos = await parts.read(parts.store.undos, pending=False)
    undone = {run_id for undo in undos if undo.session_id == session_id for run_id in undo.run_ids}
    files: list[HistoryFile] = []
    left = ANSWER_BYTES
    for each in ends(await parts.read(parts.store.file_steps, session_id, None), undone):
        contents = await _contents(parts, each, left)
        left -= sum(map(len, contents))
        versions = ((0, each.first, contents[0]), (each.steps, each.last, contents[1]))
        files += [_version(session_id, number, step, content) for number, step, content in versions]
    return files


async def _contents(parts: WorkspaceParts, file: Ends, left: int) -> tuple[bytes, bytes]:
    """Before and after. Both are empty if one is not kept, or too large: half a pair would show a false difference."""
    found = [await _content(parts, digest) for digest in (file.first.before, file.last.after)]
    before, after = found
    if before is None or after is None or len(before) + len(after) > left:
        return b"", b""
    return before, after


async def _content(parts: WorkspaceParts, digest: str | None) -> bytes | None:
    """An empty one where there is no file; None if it cannot be sent."""
    if digest is None:
        return b""
    content = await parts.shared.journal.read(parts.store.content, parts.id, digest)
    return content if content is not None and len(content) <= CONTENT_BYTES else None


def _version(session_id: str, number: int, step: FileStep, content: bytes) -> HistoryFile:
    at = int(time_of(step.message_id))
    return HistoryFile(
        id=f"{step.message_id}.{number}",
        session_id=session_id,
        path=printable(step.path),
        content=content.decode("utf-8", "replace"),
        version=number,
        created_at=at,
        updated_at=at,
    )
