"""The sessions of a workspace with their runs: the open ones of all, and those that have ended of the one shown."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from covey.client.view.records import RunRecord, SessionRecord
from covey.protocol.messages import Session
from covey.protocol.runs import Run


class SessionList:
    """By id. `current` is the one that the face shows ('': none)."""

    def __init__(self, current: str = "") -> None:
        self.current = current
        self._records: dict[str, SessionRecord] = {}
        self._is_loaded = False

    def __iter__(self) -> Iterator[tuple[Session, SessionRecord]]:
        return ((record.session, record) for record in self._records.values() if record.session)

    def get(self, session_id: str) -> SessionRecord | None:
        return self._records.get(session_id)

    def of(self, session_id: str) -> SessionRecord:
        return self._records.setdefault(session_id, SessionRecord())

    def find_run(self, session_id: str, run_id: str) -> RunRecord | None:
        record = self._records.get(session_id)
        return record.runs.get(run_id) if record else None

    def put(self, session: Session) -> None:
        self.of(session.id).session = session

    def remove(self, session_id: str) -> None:
        self._records.pop(session_id, None)

    def show(self, session_id: str) -> None:
        """From now on its ended runs are kept, and those of the one before are not."""
        if before := self._records.get(self.current):
            before.forget_ended_runs()
        self.current = session_id
        if session_id:
            record = self.of(session_id)
            record.seen_seq = record.ended_seq

    def put_run(self, run: Run) -> None:
        record = self.of(run.session_id)
        is_shown = run.session_id == self.current
        if run.ended:
            record.ended(run)
            if is_shown:
                record.seen_seq = record.ended_seq
        if run.ended and not is_shown:
            record.runs.pop(run.run_id, None)
        elif known := record.runs.get(run.run_id):
            known.run = run
            known.retry = None if run.ended else known.retry
        else:
            record.runs[run.run_id] = RunRecord(run)

    def open_run_ids(self) -> set[str]:
        return {run.run_id for record in self._records.values() for run in record.open_runs}

    def load(self, sessions: Iterable[Session], newer: Collection[str]) -> None:
        """These are all, but for those that events have reported since."""
        found = {session.id: session for session in sessions}
        if self.current not in found and self.current not in newer:
            self.current = ""
        for session_id in [each for each in self._records if each not in found and each not in newer]:
            del self._records[session_id]
        for session in found.values():
            known = self._records.get(session.id)
            is_only_opened = known is not None and known.session is None  # by the user: no event has brought it
            if session.id not in newer or is_only_opened:
                self.put(session)

    def load_open_runs(self, runs: Iterable[Run], newer: Collection[str]) -> None:
        """All that are open are among these. The first time, whatever has ended counts as seen."""
        found = {run.run_id: run for run in runs}
        for record in self._records.values():
            gone = [r.run_id for r in record.open_runs if r.run_id not in found and r.run_id not in newer]
            for run_id in gone:
                del record.runs[run_id]
        self._put_all(found.values(), newer)
        if not self._is_loaded:
            self._is_loaded = True
            for record in self._records.values():
                record.seen_seq = record.ended_seq

    def load_runs_of(self, session_id: str, runs: Iterable[Run], newer: Collection[str]) -> None:
        """The newest of one session: what ended before them is not known any more."""
        found = {run.run_id: run for run in runs}
        record = self.of(session_id)
        kept = {*found, *newer}
        record.runs = {i: known for i, known in record.runs.items() if i in kept or not known.run.ended}
        self._put_all(found.values(), newer)

    def _put_all(self, runs: Iterable[Run], newer: Collection[str]) -> None:
        for run in sorted(runs, key=lambda run: run.seq):
            if run.run_id not in newer:
                self.put_run(run)
