"""The oracle on PostgreSQL: each workspace is dumped into a file of SQLite and judged there, one after the other."""

from __future__ import annotations

import tempfile
from pathlib import Path

from covey.doctor.oracle import Examination, examine
from covey.doctor.oracle_file import NAME
from covey.store.postgres import transfer


def examine_postgres(url: str) -> Examination:
    """Look at everything. Nodes may be running: each workspace is seen as it is at one moment. Raises StoreFailed."""
    whole = Examination()
    for workspace_id in transfer.workspace_ids(url):
        found = examine_workspace(url, workspace_id)
        whole.findings += found.findings
        whole.records += found.records
    return whole


def examine_workspace(url: str, workspace_id: str) -> Examination:
    with tempfile.TemporaryDirectory(prefix="covey-doctor-") as directory:
        transfer.dump(url, workspace_id, Path(directory) / NAME)
        return examine(Path(directory))
