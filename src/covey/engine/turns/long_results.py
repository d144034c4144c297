"""Results that are too long for a model: it is told of a file, and reads what it needs of that, perhaps much later.

The file is on the disk of the server that ran the tool. In a cluster it is in the store as well, so that whoever owns
the workspace by then has it, under the same name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from covey.engine.ownership import Ownership
from covey.engine.recorder import patiently
from covey.protocol.messages import Message, ToolResultPart
from covey.tools.spill import write_private
from covey.tools.threads import in_thread


class LongResults:
    """Those of one workspace, by session."""

    def __init__(self, data_dir: Path, workspace_id: str, ownership: Ownership) -> None:
        self._directory = data_dir / "spill" / workspace_id
        self._workspace_id = workspace_id
        self._ownership = ownership
        self._named = re.compile(rf"/spill/{re.escape(workspace_id)}/([\w-]+)/([\w-]+\.txt)\b", re.ASCII)

    def directory(self, session_id: str) -> Path:
        return self._directory / session_id

    async def keep(self, content: str) -> None:
        """Keep the files of which a result speaks for other nodes: before the model can be told of them."""
        if not self._ownership.is_shared:
            return
        for session_id, name in self._names([content]):
            with suppress(OSError):  # a disk that refused costs the file, never the result
                data = await in_thread((self.directory(session_id) / name).read_bytes)
                await patiently(lambda s=session_id, n=name, d=data: self._keep(s, n, d))  # type: ignore[misc]

    async def bring(self, messages: Sequence[Message]) -> None:
        """Have here what other nodes have kept, as far as the model can still read of it."""
        if not self._ownership.is_shared:
            return
        parts = (part for message in messages for part in message.parts)
        results = [part.data.content for part in parts if isinstance(part, ToolResultPart)]
        for session_id, name in self._names(results):
            path = self.directory(session_id) / name
            if await in_thread(path.exists):
                continue
            found = await patiently(lambda s=session_id, n=name: self._find(s, n))  # type: ignore[misc]
            if found is not None:
                with suppress(OSError):
                    await in_thread(lambda p=path, d=found: write_private(p, d))  # type: ignore[misc]

    def _names(self, results: Iterable[str]) -> list[tuple[str, str]]:
        """Session and name of each file that is mentioned, once."""
        return list(dict.fromkeys(match for result in results for match in self._named.findall(result)))

    async def _keep(self, session_id: str, name: str, data: bytes) -> None:
        await self._ownership.keep_result(self._workspace_id, session_id, name, data)

    async def _find(self, session_id: str, name: str) -> bytes | None:
        return await self._ownership.result(self._workspace_id, session_id, name)
