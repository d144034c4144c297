"""A text of a project that nobody has trusted, which a person has asked for by its name: they are asked once (S4)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from covey.config.approvals import ExtensionEntry, JudgedEntry, approval_of, approve, digest_of
from covey.config.load import read_trusted
from covey.config.schema import ConfigError
from covey.context.texts import TextFile
from covey.engine.asks.approvals import ApprovalDesk
from covey.protocol.extensions import ApprovalRequest
from covey.tools.threads import in_thread


class TextApprovals:
    """Approvals of single texts, by their very content. That of the directory is another thing: `covey trust`."""

    def __init__(self, desk: ApprovalDesk, root: Path, environ: Mapping[str, str]) -> None:
        self._desk = desk
        self._root = root
        self._environ = environ

    async def is_approved(self, file: TextFile) -> bool:
        """Whether a text may be used as it is now. If nobody has said so yet, it is asked."""
        entry = ExtensionEntry(file.kind, file.name, file.path, is_users_own=False, text=file.source)
        digest = digest_of(entry, self._root)
        try:
            if digest in await in_thread(lambda: read_trusted(self._environ).digests(self._root)):
                return True
        except ConfigError:  # reported where the configuration is read
            return False

        async def approved(request: ApprovalRequest) -> None:
            await in_thread(lambda: approve(self._environ, self._root, (request.id,)))

        self._desk.ask(approval_of(JudgedEntry(entry, digest, "not_approved"), self._root), approved)
        return False
