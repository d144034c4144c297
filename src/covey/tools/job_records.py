"""What is kept of background jobs, so that people and models can look at those that have ended: one file for each.

It is written when a job starts, and again when it has ended. A record without an end, found by a server that has not
started the job, is of one that was lost with a former server.

The files are in the data directory of the server that ran them: as many as `Jobs` keeps, of some 60 kB at most.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec

from covey.machine.replace import replace_file

log = logging.getLogger(__name__)

EndedBy = Literal["itself", "model", "person", "close", "crash"]
"""`close`: the workspace was closed, with the server or without it. `crash`: the server was killed."""


class JobRecord(msgspec.Struct, frozen=True):
    """A job that has ended, or had not when this was written."""

    id: str
    session_id: str
    command: str
    started_at: float
    ended_at: float
    """0: it ran."""
    exit_code: int | None = None
    ended_by: EndedBy = "itself"
    tail: str = ""
    """The end of its output, for people."""
    unread: str = ""
    """What the model has not looked at of it."""
    is_known: bool = False
    """The model has been told that it has ended."""

    def lost(self, now: float) -> JobRecord:
        """The same job, now that its server is found to be gone. When it really ended nobody knows."""
        return msgspec.structs.replace(self, ended_at=now, exit_code=None, ended_by="crash", is_known=False)


class JobRecords:
    """Those of one workspace. Everything here blocks."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def read(self) -> list[JobRecord]:
        """All that there are, the oldest first. One that cannot be read is left out."""
        found = []
        for path in self._directory.glob("job-*.json"):
            try:
                found.append(msgspec.json.decode(path.read_bytes(), type=JobRecord))
            except (OSError, msgspec.MsgspecError) as error:
                log.warning("what is kept of a job cannot be read: %s: %s", path, error)
        return sorted(found, key=lambda record: number_of(record.id))

    def write(self, record: JobRecord) -> None:
        """In one step, and for nobody else to read. A disk that refuses costs the record, and no more."""
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(self._path(record.id), msgspec.json.encode(record), mode=0o600, keep_mode=False)
        except OSError as error:
            log.warning("how it is with %s is not kept: %s", record.id, error)

    def forget(self, job_ids: Iterable[str]) -> None:
        for job_id in job_ids:
            with suppress(OSError):
                self._path(job_id).unlink()

    def _path(self, job_id: str) -> Path:
        return self._directory / f"{job_id}.json"


def number_of(job_id: str) -> int:
    """That of `job-7` is 7; 0 for what is no such name."""
    match = re.fullmatch(r"job-(\d{1,9})", job_id, re.ASCII)
    return int(match[1]) if match else 0
