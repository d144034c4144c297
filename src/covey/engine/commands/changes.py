"""What a session has changed, with diffs: a page of files, each with the turns that changed it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from msgspec import structs

from covey.engine.commands.file_history import CONTENT_BYTES
from covey.engine.commands.parts import WorkspaceParts
from covey.engine.turns.file_versions import printable
from covey.engine.world import time_of
from covey.lifecycle import changes as rules
from covey.lifecycle.changes import Chain
from covey.lifecycle.undo import FileStep
from covey.protocol.changes import ChangedFile, FileDiff, FileTurn, MissedChanges, SessionChanges
from covey.tools.diffs import unified
from covey.tools.threads import in_thread

FILES = 100
"""Of an answer, if nothing else is asked for."""
DIFF_CHARS = 4 * 1024 * 1024
"""Of all diffs in an answer; one alone has at most 50,000."""
SECONDS = 5.0
"""For comparing. Files that come later are listed without counts."""
MISSED = 100
"""Commands of which is said that they may have changed more; the newest are kept."""
_BINARY_LOOKED_AT = 8000


@dataclass(frozen=True, slots=True)
class ChangesQuery:
    run_id: str = ""
    """Only what this turn changed; '': all."""
    after: str = ""
    limit: int = 0
    """Files; 0: as many as is usual."""
    diffs: bool = True


async def session_changes(parts: WorkspaceParts, session_id: str, query: ChangesQuery) -> SessionChanges:
    await parts.session(session_id)
    undos = await parts.read(parts.store.undos, pending=False)
    undone = {run_id for undo in undos if undo.session_id == session_id for run_id in undo.run_ids}
    steps = [
        step
        for step in await parts.read(parts.store.file_steps, session_id, [query.run_id] if query.run_id else None)
        if step.run_id not in undone
    ]
    files = rules.by_file(steps, undone)
    old_names = rules.renamed(files)
    listed = [path for path in files if path not in old_names.values() and printable(path) > query.after]
    page = listed[: query.limit or FILES]
    diffs = _Diffs(parts, with_text=query.diffs)
    changed = [await diffs.file(path, files[path], old_names.get(path, "")) for path in page]
    return SessionChanges(
        files=tuple(changed),
        missed=tuple(_missed(step) for step in steps if step.origin.missed)[-MISSED:],
        next=printable(page[-1]) if len(listed) > len(page) else "",
    )


def _missed(step: FileStep) -> MissedChanges:
    return MissedChanges(
        run_id=step.run_id, at=_at(step), label=printable(step.origin.label), reason=step.origin.missed
    )


def _at(step: FileStep) -> int:
    return int(time_of(step.message_id))


class _Diffs:
    """Compares contents, as long as there is room and time in the answer."""

    def __init__(self, parts: WorkspaceParts, *, with_text: bool) -> None:
        self._parts = parts
        self._with_text = with_text
        self._chars = DIFF_CHARS
        self._deadline = time.monotonic() + SECONDS

    async def file(self, path: str, chain: Chain, old_path: str) -> ChangedFile:
        whole = await self._diff(chain, path)
        if old_path:
            whole = FileDiff(status="renamed", old_path=printable(old_path), additions=0, deletions=0)
        turns = rules.by_turn(chain)
        return ChangedFile(path=printable(path), change=whole, turns=await self._turns(turns, path, whole))

    async def _turns(self, turns: Sequence[Chain], path: str, whole: FileDiff) -> tuple[FileTurn, ...]:
        found = []
        for turn in turns:
            change = structs.replace(whole, diff="") if len(turns) == 1 else await self._diff(turn, path)
            why = rules.why_not_undone(turn)
            made_by = tuple(structs.replace(maker, label=printable(maker.label)) for maker in rules.makers(turn))
            found.append(
                FileTurn(
                    run_id=turn[0].run_id,
                    at=_at(turn[-1]),
                    change=change,
                    made_by=made_by,
                    can_undo=not why,
                    reason=why,
                )
            )
        return tuple(found)

    async def _diff(self, chain: Chain, path: str) -> FileDiff:
        status = rules.status(chain)
        assert status
        plain = FileDiff(status=status, is_executable=rules.became_executable(chain))
        before, after = [await self._content(digest) for digest in (chain[0].before, chain[-1].after)]
        if before is None or after is None:
            return plain
        if b"\0" in before[:_BINARY_LOOKED_AT] or b"\0" in after[:_BINARY_LOOKED_AT]:
            return structs.replace(plain, is_binary=True)
        if max(len(before), len(after)) > CONTENT_BYTES or time.monotonic() > self._deadline:
            return structs.replace(plain, is_left_out=True)
        name = printable(path.removeprefix(f"{self._parts.agent.root}/"))
        texts = before.decode("utf-8", "replace"), after.decode("utf-8", "replace")
        diff = await in_thread(lambda: unified(*texts, name))
        fits = len(diff.text) <= self._chars
        if self._with_text and fits:
            self._chars -= len(diff.text)
        return structs.replace(
            plain,
            additions=diff.additions,
            deletions=diff.removals,
            diff=diff.text if self._with_text and fits else "",
            is_left_out=not fits,
        )

    async def _content(self, digest: str | None) -> bytes | None:
        """An empty one where there is no file; None if it is not kept."""
        if digest is None:
            return b""
        return await self._parts.shared.journal.read(self._parts.store.content, self._parts.id, digest)
