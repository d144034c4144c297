"""The oracle of `covey.doctor.oracle`, as tests use it: anything that is wrong fails the test, all of it at once."""

from __future__ import annotations

from pathlib import Path

from covey.doctor import oracle
from covey.doctor.oracle_record import LogEvent, Record

__all__ = ["LogEvent", "Record", "check", "judge", "read"]


def check(data_dir: Path, *, all_ended: bool) -> None:
    """Fail with everything that is wrong. `all_ended`: the server has stopped in order, so no run may be open."""
    if (data_dir / "covey.db").exists():
        found = oracle.examine(data_dir)
        faults = [str(finding) for finding in found.findings]
        faults += [fault for record in found.records for fault in _still_open(record) if all_ended]
        assert not faults, "the store breaks promises:\n" + "\n".join(faults)


def read(data_dir: Path) -> list[Record]:
    return oracle.examine(data_dir).records if (data_dir / "covey.db").exists() else []


def judge(record: Record, *, all_ended: bool) -> list[str]:
    """All that is wrong with one workspace."""
    return [str(finding) for finding in oracle.judge(record)] + (_still_open(record) if all_ended else [])


def _still_open(record: Record) -> list[str]:
    return [f"{record.workspace_id}: run {run['run_id']} is still open" for run in oracle.open_runs(record)]
