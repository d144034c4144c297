"""All pages of what a session has changed in files."""

from __future__ import annotations

import msgspec

from covey.client.client import Client
from covey.protocol.changes import SessionChanges


async def all_changes(
    client: Client, workspace_id: str, session_id: str, *, run_id: str = "", diffs: bool = True
) -> SessionChanges:
    """Page by page: what is left out of one answer for lack of room may fit into the next."""
    found = await client.changes(workspace_id, session_id, run_id=run_id, diffs=diffs)
    files = list(found.files)
    after = found.next
    while after:
        page = await client.changes(workspace_id, session_id, run_id=run_id, after=after, diffs=diffs)
        files += page.files
        after = page.next
    return msgspec.structs.replace(found, files=tuple(files), next="")
